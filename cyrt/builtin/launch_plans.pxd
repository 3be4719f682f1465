# The launches that were planned last: programs repeat their shapes. A plan is a family's struct: a
# launch without its addresses and numbers.
#
# INVARIANT: a plan depends on its key only: the kernel's types, and all else that the choice of the
# launch reads. An Entry belongs to one family, so a key that begins with it finds that family's
# struct.

from cyrt.builtin.entry cimport Entry

cdef enum:
    MOST_WORDS = 32
    PLAN_WORDS = 96             # words of the largest struct that is stored

cdef struct Key:
    int count                   # words in use; more than MOST_WORDS: no plan is stored
    unsigned long long[MOST_WORDS] words
    unsigned long long hash

# Begin a key with the kernel's types and a word.
cdef inline void begin_key(Key* key, const Entry* entry, unsigned long long word) noexcept:
    key.words[0], key.words[1] = <size_t>entry, word
    key.count = 2

cdef inline void add_word(Key* key, unsigned long long word) noexcept:
    if key.count < MOST_WORDS:
        key.words[key.count] = word
    key.count += 1

cdef inline void add_words(Key* key, const long long* words, int count) noexcept:
    cdef int i
    if key.count + count <= MOST_WORDS:
        for i in range(count):
            key.words[key.count + i] = words[i]
    key.count += count

# Set the hash of a complete key, and return the plan stored for it, or NULL. The next store may
# replace it.
cdef const void* find_plan(Key* key) noexcept
# Store a plan for a key that `find_plan` did not find; it replaces another one.
cdef void store_plan(const Key* key, const void* plan, size_t nbytes) noexcept
