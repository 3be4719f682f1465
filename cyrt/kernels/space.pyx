# cython: cdivision=True
"""Index spaces: shapes and strides of an operation's operands, made simple before the launch."""


cdef Divider divider(unsigned int size) noexcept:
    """Of numerators below 2**31: (high half of n * multiplier + n) >> shift."""
    cdef Divider result
    cdef unsigned long long power = 1
    result.size = size
    result.shift = 0
    while power < size:
        power *= 2
        result.shift += 1
    result.multiplier = <unsigned int>(((power - size) << 32) // size + 1)
    return result


cdef inline bint goes_before(const Space* space, int i, const long long* stride) noexcept:
    """Whether dimension i lies inside the one of those strides: the output decides."""
    return space.strides[i][0] <= stride[0]


cdef inline bint continues(const Space* space, int outer, int inner) noexcept:
    cdef int k
    for k in range(space.operands):
        if space.strides[outer][k] != space.strides[inner][k] * space.shape[inner]:
            return False
    return True


cdef void simplify(Space* space, int operands, int ndim, const long long* shape,
                   const long long** strides) noexcept:
    cdef long long[MAX_OPERANDS] stride
    cdef long long contiguous = 1
    cdef int d, i, k, kept
    space.operands = operands
    space.ndim = 0
    for k in range(operands):
        space.offsets[k] = 0
    for d in range(ndim - 1, -1, -1):
        for k in range(operands):
            stride[k] = strides[k][d] if strides[k] != NULL else contiguous
        contiguous *= shape[d]
        if shape[d] == 1:
            continue
        if stride[0] < 0:
            for k in range(operands):
                space.offsets[k] += stride[k] * (shape[d] - 1)
                stride[k] = -stride[k]
        i = space.ndim
        while i > 0 and not goes_before(space, i - 1, stride):
            space.shape[i] = space.shape[i - 1]
            space.strides[i] = space.strides[i - 1]
            i -= 1
        space.shape[i] = shape[d]
        for k in range(operands):
            space.strides[i][k] = stride[k]
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
