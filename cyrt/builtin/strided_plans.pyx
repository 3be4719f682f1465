# cython: cdivision=True
"""The strided launches that were planned last, in a small hash table."""

from libc.string cimport memcpy

cdef enum:
    PLANS = 128             # a power of two

cdef struct StoredPlan:
    Key key
    StridedPlan plan

cdef StoredPlan[PLANS] stored


cdef unsigned int set_key(Key* key, const Entry* entry, const Operand* operands, int ndim,
                          const long long* shape) noexcept:
    cdef unsigned int numbers = 0, strided = 0
    cdef unsigned long long h
    cdef int d, i, count = 2
    for i in range(entry.num_inputs + 1):
        if operands[i].buffer == NULL:
            numbers |= 1u << i
        elif operands[i].strides != NULL:
            strided |= 1u << i
    key.count = 0
    if ndim > MOST_DIMS:
        return numbers
    key.words[0] = <size_t>entry
    key.words[1] = <unsigned int>ndim << 16 | numbers << 8 | strided
    for d in range(ndim):
        key.words[count + d] = shape[d]
    count += ndim
    for i in range(entry.num_inputs + 1):
        if strided >> i & 1:
            for d in range(ndim):
                key.words[count + d] = operands[i].strides[d]
            count += ndim
    h = 0
    for i in range(count):
        h = (h ^ key.words[i]) * 0x9E3779B97F4A7C15u
    key.hash = h ^ h >> 32
    key.count = count
    return numbers


cdef const StridedPlan* find_plan(const Key* key) noexcept:
    cdef const StoredPlan* found = &stored[key.hash % PLANS]
    cdef int i
    if key.count == 0 or found.key.count != key.count or found.key.hash != key.hash:
        return NULL
    for i in range(key.count):
        if found.key.words[i] != key.words[i]:
            return NULL
    return &found.plan


cdef void store_plan(const Key* key, const StridedPlan* plan) noexcept:
    cdef StoredPlan* slot = &stored[key.hash % PLANS]
    if key.count:
        memcpy(&slot.key, key, sizeof(Key))
        memcpy(&slot.plan, plan, sizeof(StridedPlan))
