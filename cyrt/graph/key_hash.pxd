# Hashes of keys that consist of words.

cdef enum:
    MOST_HASHED = 72        # words of the longest key

# Return the hash of at most MOST_HASHED words.
cdef unsigned long long hash_words(const unsigned long long* words, int count) noexcept
