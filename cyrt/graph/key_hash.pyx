# C-level functions only: see key_hash.pxd.
"""Hashes of keys that consist of words."""

cdef unsigned long long[MOST_HASHED] multipliers


cdef void set_multipliers() noexcept:
    """Set the multipliers to the first numbers of SplitMix64."""
    cdef unsigned long long state = 0, mixed
    cdef int i
    for i in range(MOST_HASHED):
        state += <unsigned long long>0x9e3779b97f4a7c15u
        mixed = (state ^ state >> 30) * <unsigned long long>0xbf58476d1ce4e5b9u
        mixed = (mixed ^ mixed >> 27) * <unsigned long long>0x94d049bb133111ebu
        multipliers[i] = mixed ^ mixed >> 31


set_multipliers()


cdef unsigned long long hash_words(const unsigned long long* words, int count) noexcept:
    # None of the products waits for another one.
    cdef unsigned long long h = count
    cdef int i
    for i in range(count):
        h += words[i] * multipliers[i]
    return h ^ h >> 32
