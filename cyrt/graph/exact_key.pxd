# Exact keys, what is stored under them, and the launches that were planned last.
#
# INVARIANTS
# - A key has all inputs of what is stored under it. It begins with an address that tells the
#   family, so that no two families have equal keys.
# - A hash selects a set; all words of the keys in it are compared with those of the key.
# - A plan is a family's struct: a launch without its addresses and numbers. The next store, which
#   other threads may make as soon as something is recorded, may end it: it is copied before that.
# - A stored plan holds the template that it launches; see graph/template.

from cpython.object cimport PyObject

cdef enum:
    MOST_WORDS = 72
    SETS = 512                  # a power of two
    NO_LIMIT = 0x7fffffff

cdef struct Key:
    int count                   # words in use; more than MOST_WORDS: nothing is stored
    unsigned long long hash     # set by `find`
    unsigned long long[MOST_WORDS] words

# An entry: a key, and the plan and the object that are stored under it.
cdef struct Slot:
    unsigned long long hash
    int count                   # words of the key
    unsigned long long* words   # the key's, and behind them the plan
    PyObject* held              # an owned reference, or NULL

# The slots of keys whose hashes are equal modulo SETS; the newest is the first.
cdef struct Set:
    int count
    Slot* slots

cdef inline void begin_key(Key* key, const void* family, unsigned long long word) noexcept:
    key.words[0], key.words[1] = <size_t>family, word
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

# Set the hash of a complete key, and return its slot among SETS sets, or NULL.
cdef Slot* find(Set* sets, Key* key) noexcept
# Store what `find` did not find: a copy of a plan, and an object or None. Before that the oldest
# ones leave the set if it has `most`.
cdef int insert(Set* sets, const Key* key, const void* plan, size_t nbytes, object held,
                int most) except -1
# Empty a slot; finalizers may run then.
cdef void remove(Set* set, int index) noexcept

# How often all plans were forgotten.
cdef unsigned long long times_forgotten
# Return the plan of a key, or NULL.
cdef const void* find_plan(Key* key) noexcept
# Store the plan of a key that `find_plan` did not find; another one may leave.
cdef int store_plan(const Key* key, const void* plan, size_t nbytes, object held=*) except -1
# Forget all plans: what they were chosen by has changed.
cdef void forget_launch_plans() noexcept
