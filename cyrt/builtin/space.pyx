# cython: cdivision=True
"""Index spaces: shapes and strides of an operation's operands, simplified before the launch."""

from libc.string cimport memcpy


cdef inline bint goes_before(const Space* space, int i, const long long* stride) noexcept:
    """Return whether dimension i is inner to the one of those strides, by the output's strides."""
    return space.strides[i][0] <= stride[0]


cdef inline bint continues(const Space* space, int outer, int inner) noexcept:
    cdef int k
    for k in range(space.operands):
        if space.strides[outer][k] != space.strides[inner][k] * space.shape[inner]:
            return False
    return True


cdef void simplify(Space* space, int operands, int ndim, const long long* shape,
                   const long long** strides) noexcept:
    cdef long long[MAX_OPERANDS] moved
    cdef long long* stride
    cdef long long contiguous = 1
    cdef int d, i, k, kept
    space.operands = operands
    space.ndim = 0
    for k in range(operands):
        space.offsets[k] = 0
    for d in range(ndim - 1, -1, -1):
        if shape[d] == 1:
            continue
        stride = space.strides[space.ndim]
        for k in range(operands):
            stride[k] = strides[k][d] if strides[k] != NULL else contiguous
        contiguous *= shape[d]
        if stride[0] < 0:
            for k in range(operands):
                space.offsets[k] += stride[k] * (shape[d] - 1)
                stride[k] = -stride[k]
        i = space.ndim
        if i > 0 and not goes_before(space, i - 1, stride):
            memcpy(moved, stride, sizeof(moved))
            while i > 0 and not goes_before(space, i - 1, moved):
                space.shape[i] = space.shape[i - 1]
                space.strides[i] = space.strides[i - 1]
                i -= 1
            memcpy(space.strides[i], moved, sizeof(moved))
        space.shape[i] = shape[d]
        space.ndim += 1
    kept = 0
    for d in range(1, space.ndim):
        if continues(space, d, kept):
            space.shape[kept] *= space.shape[d]
        else:
            kept += 1
            space.shape[kept] = space.shape[d]
            space.strides[kept] = space.strides[d]
    space.ndim = min(space.ndim, kept + 1)


cdef bint next_part(Space* part, const Space* whole, long long* done) noexcept:
    cdef int d, i, split = whole.ndim - 1
    cdef long long size = 1
    if split > MAX_OUTER:
        part.ndim = split
    else:
        for d in range(whole.ndim - 1):
            if whole.shape[d] > whole.shape[split]:
                split = d
        size = (whole.shape[split] + 1) // 2
    if done[0] >= whole.shape[split]:
        return False
    part.shape[split] = min(size, whole.shape[split] - done[0])
    for i in range(whole.operands):
        part.offsets[i] = whole.offsets[i] + done[0] * whole.strides[split][i]
    done[0] += size
    return True
