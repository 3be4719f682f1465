# cython: cdivision=True
"""The launches that were planned last, in a small hash table."""

from libc.string cimport memcmp, memcpy

from cyrt.graph.key_hash cimport hash_words

cdef enum:
    SETS = 256              # a power of two
    WAYS = 4                # plans of a set

cdef struct StoredPlan:
    Key key
    unsigned long long[PLAN_WORDS] plan

cdef StoredPlan stored[SETS][WAYS]
cdef unsigned char[SETS] oldest     # the way of each set that is stored next


cdef const void* find_plan(Key* key) noexcept:
    cdef const StoredPlan* found
    cdef int i
    if key.count > MOST_WORDS:
        return NULL
    key.hash = hash_words(key.words, key.count)
    for i in range(WAYS):
        found = &stored[key.hash % SETS][i]
        if found.key.hash == key.hash and found.key.count == key.count \
                and memcmp(found.key.words, key.words, key.count * sizeof(key.words[0])) == 0:
            return found.plan
    return NULL


cdef void store_plan(const Key* key, const void* plan, size_t nbytes) noexcept:
    cdef StoredPlan* slot
    cdef int place = <int>(key.hash % SETS)
    if key.count <= MOST_WORDS and nbytes <= PLAN_WORDS * sizeof(slot.plan[0]):
        slot = &stored[place][oldest[place]]
        oldest[place] = (oldest[place] + 1) % WAYS
        slot.key = key[0]
        memcpy(slot.plan, plan, nbytes)
