# cython: cdivision=True
"""Elements picked by arrays of indices, and put there: which kernel, grid and parameters."""

from libc.string cimport memset

from cyrt.graph.recording cimport Geometry
from cyrt.kernels.row import BY_SIZE
from cyrt.kernels.space cimport MAX_OUTER, Divider, divider
from cyrt.kernels.entries cimport Entry, dtype_code, entry_of, op_code, record_entry

cdef enum:
    PARAM_BYTES = 880
    BLOCK = 256             # threads
    WARP = 32
    SPREAD = 256            # blocks that a small grid is spread over
    ONE_BYTES = 400         # of parameters, with one array of indices
    ONE_ITEMS = 4           # of a thread then, and with many; as in kernels_cu/gather.cu
    MANY_ITEMS = 2
    WORD = 16               # bytes of the largest word
    MAX_COUNT = 0x7fffffff  # words of a launch: what a Divider divides
    VALUE = 1

cdef int[WORD + 1] words    # code of the type of so many bytes
cdef int[2] ops             # take, put


cdef bint load_codes() except -1:
    for size, name in BY_SIZE.items():
        words[<int>size] = dtype_code(name)
    ops[0], ops[1] = op_code("take"), op_code("put")
    return True


load_codes()


cdef inline long long* strides_of(Picks* space, int operand) noexcept:
    if operand == 0:
        return space.here
    if operand == 1:
        return space.there
    return space.index[operand - 2].strides


cdef inline void keep_dimension(Picks* space, int target, int source) noexcept:
    cdef int k
    space.shape[target] = space.shape[source]
    for k in range(2 + space.count):
        strides_of(space, k)[target] = strides_of(space, k)[source]


cdef inline bint continues(Picks* space, int outer, int inner) noexcept:
    cdef int k
    for k in range(2 + space.count):
        if strides_of(space, k)[outer] != strides_of(space, k)[inner] * space.shape[inner]:
            return False
    return True


cdef void collapse(Picks* space) noexcept:
    """No dimension has size 1 but the last of a space of one element; no two could be one."""
    cdef int kept = 0, d, k
    for d in range(space.ndim):
        if space.shape[d] == 1:
            continue
        if kept and continues(space, kept - 1, d):
            space.shape[d] *= space.shape[kept - 1]
            kept -= 1
        keep_dimension(space, kept, d)
        kept += 1
    if kept == 0:
        space.shape[0] = 1
        for k in range(2 + space.count):
            strides_of(space, k)[0] = 0
        kept = 1
    space.ndim = kept


cdef int word_size(const Picks* space, int itemsize, const Operand* operands) noexcept:
    """Bytes of the largest words that whole rows of elements are made of."""
    cdef int last = space.ndim - 1, d, i
    cdef bint value = operands[0].buffer == NULL
    cdef long long bits
    if space.there[last] != 1 or not (value or space.here[last] == 1):
        return itemsize
    bits = space.shape[last]
    for i in range(space.count):
        if space.index[i].strides[last]:
            return itemsize
        bits |= space.index[i].stride
    for d in range(last):
        bits |= space.there[d] | (0 if value else space.here[d])
    bits = bits * itemsize | <long long>operands[1].address
    if not value:
        bits |= <long long>operands[0].address
    while itemsize < WORD and bits & itemsize == 0:
        itemsize *= 2
    return itemsize


cdef void take_words(Picks* space, int ratio) noexcept:
    """Counts and strides in words of `ratio` elements."""
    cdef int last = space.ndim - 1, d, i
    space.shape[last] //= ratio
    for d in range(last):
        space.here[d] //= ratio
        space.there[d] //= ratio
    for i in range(space.count):
        space.index[i].stride //= ratio


cdef int record_picks(Recorder encoder, int ordinal, bint put, int itemsize, Operand* operands,
                      Picks* space, Explained explained) except -1:
    cdef int size, d
    for d in range(space.ndim):
        if space.shape[d] == 0:
            return 0
    collapse(space)
    size = word_size(space, itemsize, operands)
    take_words(space, size // itemsize)
    return record_parts(encoder, ordinal, put, size, operands, space, explained)


cdef int record_parts(Recorder encoder, int ordinal, bint put, int size, Operand* operands,
                      const Picks* space, Explained explained) except -1:
    """One launch, or two halves of the first dimension, and of those, where it is too much."""
    cdef Picks part
    cdef Operand[2 + MAX_INDICES] moved
    cdef long long count = 1, half
    cdef long long* strides
    cdef int d, k, bytes
    for d in range(space.ndim):
        count *= space.shape[d]
    if count <= MAX_COUNT and space.ndim - 1 <= MAX_OUTER:
        return record_one(encoder, ordinal, put, size, operands, space, count, explained)
    part = space[0]
    if part.shape[0] == 1:          # halved often enough
        for k in range(2 + part.count):
            strides = strides_of(&part, k)
            for d in range(1, part.ndim):
                strides[d - 1] = strides[d]
        for d in range(1, part.ndim):
            part.shape[d - 1] = part.shape[d]
        part.ndim -= 1
        return record_parts(encoder, ordinal, put, size, operands, &part, explained)
    half = part.shape[0] // 2
    part.shape[0] = half
    record_parts(encoder, ordinal, put, size, operands, &part, explained)
    part.shape[0] = space.shape[0] - half
    for k in range(2 + part.count):
        moved[k] = operands[k]
        if operands[k].buffer != NULL:
            bytes = size if k < 2 else 1 << (part.index[k - 2].kind & 3)
            moved[k].address += <unsigned long long>(strides_of(&part, k)[0] * half * bytes)
    return record_parts(encoder, ordinal, put, size, moved, &part, explained)


cdef int record_one(Recorder encoder, int ordinal, bint put, int size, Operand* operands,
                    const Picks* space, long long count, Explained explained) except -1:
    cdef char[PARAM_BYTES] params
    cdef unsigned long long* at = <unsigned long long*>params
    cdef Divider* dims
    cdef unsigned int* tail
    cdef const Entry* entry = entry_of(ordinal, ops[put], words[size])
    cdef Geometry geometry
    cdef bint many = space.count > 1
    cdef int slots = MAX_INDICES if many else 1, last = space.ndim - 1, d, i, k
    cdef long long threads
    cdef unsigned int kinds = 0, block = WARP
    memset(params, 0, PARAM_BYTES if many else ONE_BYTES)
    if operands[0].buffer == NULL:
        at[0], at[1] = operands[0].value[0], operands[0].value[1]
    else:
        at[0] = operands[0].address
    at[2] = operands[1].address
    at += 3
    for i in range(space.count):
        at[0] = operands[2 + i].address
        at[1] = <unsigned long long>space.index[i].size
        at[2] = <unsigned long long>space.index[i].stride
        kinds |= <unsigned int>space.index[i].kind << 4 * i
        at += 3
    at += 3 * (slots - space.count)
    for k in range(2 + space.count):
        at[k] = <unsigned long long>strides_of(<Picks*>space, k)[last]
    dims = <Divider*>(at + 2 + slots)
    at = <unsigned long long*>(dims + MAX_OUTER)
    for d in range(last):
        dims[d] = divider(<unsigned int>space.shape[last - 1 - d])
        for k in range(2 + space.count):
            at[k] = <unsigned long long>strides_of(<Picks*>space, k)[last - 1 - d]
        at += 2 + slots
    at += (MAX_OUTER - last) * (2 + slots)
    (<Divider*>at)[0] = divider(<unsigned int>space.shape[last])
    tail = <unsigned int*>(<Divider*>at + 1)
    tail[0] = <unsigned int>last
    tail[1] = <unsigned int>space.count
    tail[2] = VALUE if operands[0].buffer == NULL else 0
    tail[3] = kinds
    tail[4] = <unsigned int>count
    threads = (count - 1) // (MANY_ITEMS if many else ONE_ITEMS) + 1
    while block * <long long>SPREAD < threads and block < BLOCK:
        block *= 2
    geometry.grid[:] = [<unsigned int>((threads - 1) // block + 1), 1, 1]
    geometry.block[:] = [block, 1, 1]
    geometry.smem = 0
    return record_entry(encoder, entry, many, &geometry, params, operands, 2 + space.count,
                        2 if put else 1, explained)
