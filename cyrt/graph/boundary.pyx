"""Where a batch ends: at its limit, or where a loop comes round."""

from libc.string cimport memcpy

from cyrt.graph.recording cimport Operation

cdef enum:
    EVIDENCE = 8            # commits in a row: more than a plan has execs to learn addresses by
    MOST_PATIENCE = 4096


cdef void set_limit(Boundary* boundary, int max_ops) noexcept:
    boundary.max_ops = max_ops
    set_minimum(boundary)
    if boundary.patience == 0:
        boundary.patience = EVIDENCE
        boundary.detail = BY_GEOMETRY


cdef void set_minimum(Boundary* boundary) noexcept:
    """Long batches cost least; where operations seldom return, more room to meet one."""
    cdef int half = (boundary.max_ops + 1) // 2
    boundary.min_ops = half if boundary.detail == BY_PARAMETERS or boundary.seldom \
        else half + half // 2


cdef unsigned long long mix(unsigned long long h, unsigned long long word) noexcept:
    h = (h ^ word) * 0x9e3779b97f4a7c15u
    return h ^ (h >> 29)


cdef unsigned long long operation_hash(Boundary* boundary, const Operation* operation) noexcept:
    cdef unsigned long long h = mix(<unsigned long long>operation.kind, operation.serial)
    cdef unsigned long long word
    cdef size_t i
    if operation.geometry != NULL and boundary.detail >= BY_GEOMETRY:
        for i in range(3):
            h = mix(h, operation.geometry.grid[i] | <unsigned long long>operation.geometry.block[i]
                    << 32)
    if boundary.detail == BY_PARAMETERS:
        for i in range(operation.param_bytes // 8):
            memcpy(&word, <const char*>operation.params + 8 * i, 8)
            h = mix(h, word)
    return h


cdef bint remembered(Boundary* boundary, unsigned long long h) noexcept:
    cdef int i
    for i in range(min(boundary.num_beginnings, BEGINNINGS)):
        if boundary.beginnings[i] == h:
            return True
    return False


cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept:
    cdef unsigned long long h = operation_hash(boundary, next)
    cdef bint repeats = h == boundary.previous      # in a run of equal operations none is special
    boundary.previous = h
    if nodes < boundary.min_ops and not full:
        return False
    boundary.found = remembered(boundary, h)
    if full or nodes >= boundary.max_ops:
        return True
    boundary.found = boundary.found and not repeats
    return boundary.found


cdef void begin(Boundary* boundary, const Operation* first) noexcept:
    # One batch that ran into the limit tells of a change, and where it ended nothing; two do.
    if boundary.num_beginnings == 0 or boundary.lost > 1:
        boundary.beginnings[boundary.num_beginnings % BEGINNINGS] = operation_hash(boundary, first)
        boundary.num_beginnings += 1
        if boundary.num_beginnings == 2 * BEGINNINGS:
            boundary.num_beginnings = BEGINNINGS


cdef void compare(Boundary* boundary, Detail detail) noexcept:
    boundary.detail = detail
    boundary.num_beginnings = boundary.patched = boundary.lost = 0
    boundary.seldom = False


cdef void learn(Boundary* boundary, bint equal, bint patched) noexcept:
    if patched:
        boundary.patched += 1
    elif equal:
        boundary.patched = 0
    boundary.lost = 0 if boundary.found else boundary.lost + 1
    if boundary.detail == BY_PARAMETERS:
        if boundary.lost == EVIDENCE:       # try again much later
            boundary.patience = min(4 * boundary.patience, <int>MOST_PATIENCE)
            compare(boundary, BY_KERNEL)
    elif boundary.patched >= boundary.patience:
        compare(boundary, BY_PARAMETERS)
    elif boundary.lost == EVIDENCE:
        boundary.seldom = True
    set_minimum(boundary)
