# cython: cdivision=True
"""The launches that were planned last, in a small hash table."""

from libc.string cimport memcmp, memcpy

cdef enum:
    PLANS = 256             # a power of two

cdef struct StoredPlan:
    Key key
    unsigned long long[PLAN_WORDS] plan

cdef StoredPlan[PLANS] stored


cdef const void* find_plan(Key* key) noexcept:
    cdef const StoredPlan* found
    cdef unsigned long long h = 0
    cdef int i
    if key.count > MOST_WORDS:
        return NULL
    for i in range(key.count):
        h = (h ^ key.words[i]) * 0x9E3779B97F4A7C15u
    key.hash = h ^ h >> 32
    found = &stored[key.hash % PLANS]
    if found.key.hash != key.hash or found.key.count != key.count \
            or memcmp(found.key.words, key.words, key.count * sizeof(key.words[0])) != 0:
        return NULL
    return found.plan


cdef void store_plan(const Key* key, const void* plan, size_t nbytes) noexcept:
    cdef StoredPlan* slot
    if key.count <= MOST_WORDS and nbytes <= PLAN_WORDS * sizeof(stored[0].plan[0]):
        slot = &stored[key.hash % PLANS]
        slot.key = key[0]
        memcpy(slot.plan, plan, nbytes)
