# cython: cdivision=True
"""Reads and writes of elements at arrays of indices: the launches of gather.cu."""


from libc.string cimport memset

from cyrt.builtin.entry cimport WIDEST, entry_of, op_code, type_of_size
from cyrt.builtin.launch cimport WARP, Launch, power_of_two, record_launch, set_geometry
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport (
    MAX_NUMERATOR, MAX_OUTER, Divider, Outer3, Outer8, Source, divider, product_of,
)
from cyrt.driver.table cimport cu
from cyrt.graph.commit cimport Recorder

cdef extern from "params/gather.h" nogil:
    enum: GATHER_VALUE, GATHER_TRAP
    cdef struct Index:
        unsigned long long indices
        long long size, stride
    cdef struct Gather1:
        Source here
        unsigned long long there
        Index index[1]
        long long inner_strides[3]
        Outer3 outer
        Divider inner
        unsigned int num_outer, num_indices, flags, kinds, count
    cdef struct Gather6:
        Source here
        unsigned long long there
        Index index[6]
        long long inner_strides[8]
        Outer8 outer
        Divider inner
        unsigned int num_outer, num_indices, flags, kinds, count

# Parameter structs by the number of arrays.
ctypedef fused Parameters:
    Gather1
    Gather6

cdef enum:
    BLOCK = 256             # threads
    SPREAD = 256            # blocks over which a small grid is spread
    ONE_ITEMS = 4  # items of a thread with one array of indices; as in kernels_cu/gather.cu
    MANY_ITEMS = 2          # items of a thread with several arrays

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ONE = 0
    MANY = 1

# The operations TAKEN, WRITTEN and LOCATED.
GATHERINGS = ("take", "put", "offsets")
cdef int[3] ops
for _i, _name in enumerate(GATHERINGS):
    ops[_i] = op_code(_name)

# The sizes in bytes of the kernels' parameters, in their order.
PARAM_BYTES = (sizeof(Gather1), sizeof(Gather6))


cdef inline long long* strides_of(GatherSpace* space, int operand) noexcept:
    if operand == 0:
        return space.here
    if operand == 1:
        return space.there
    return space.indices[operand - 2].strides


cdef inline void keep_dimension(GatherSpace* space, int target, int source) noexcept:
    cdef int k
    space.shape[target] = space.shape[source]
    for k in range(2 + space.count):
        strides_of(space, k)[target] = strides_of(space, k)[source]


cdef inline bint continues(GatherSpace* space, int outer, int inner) noexcept:
    cdef int k
    for k in range(2 + space.count):
        if strides_of(space, k)[outer] != strides_of(space, k)[inner] * space.shape[inner]:
            return False
    return True


cdef void collapse(GatherSpace* space) noexcept:
    """Drop dimensions of size 1, and merge dimensions that allow it. At least one remains."""
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


cdef int word_size(const GatherSpace* space, int itemsize, const Operand* operands) noexcept:
    """Return the bytes of the largest words that divide whole rows of elements."""
    cdef int last = space.ndim - 1, d, i
    cdef bint value = operands[0].buffer == NULL
    cdef long long bits
    if space.there[last] != 1 or not (value or space.here[last] == 1):
        return itemsize
    bits = space.shape[last]
    for i in range(space.count):
        if space.indices[i].strides[last]:
            return itemsize
        bits |= space.indices[i].stride
    for d in range(last):
        bits |= space.there[d] | (0 if value else space.here[d])
    bits = bits * itemsize | <long long>operands[1].address
    if not value:
        bits |= <long long>operands[0].address
    while itemsize < WIDEST and bits & itemsize == 0:
        itemsize *= 2
    return itemsize


cdef void count_in_words(GatherSpace* space, int ratio) noexcept:
    """Convert counts and strides to words of `ratio` elements."""
    cdef int last = space.ndim - 1, d, i
    space.shape[last] //= ratio
    for d in range(last):
        space.here[d] //= ratio
        space.there[d] //= ratio
    for i in range(space.count):
        space.indices[i].stride //= ratio


cdef int record_gather(Recorder encoder, int how, int itemsize, Operand* operands,
                       GatherSpace* space) except -1:
    cdef int size = itemsize, d
    for d in range(space.ndim):
        if space.shape[d] == 0:
            return 0
    collapse(space)
    if how != LOCATED:
        size = word_size(space, itemsize, operands)
        count_in_words(space, size // itemsize)
    return record_parts(encoder, how, size, operands, space)


cdef void drop_first_dimension(GatherSpace* space) noexcept:
    cdef long long* strides
    cdef int d, k
    for k in range(2 + space.count):
        strides = strides_of(space, k)
        for d in range(1, space.ndim):
            strides[d - 1] = strides[d]
    for d in range(1, space.ndim):
        space.shape[d - 1] = space.shape[d]
    space.ndim -= 1


cdef int record_parts(Recorder encoder, int how, int size, Operand* operands,
                      const GatherSpace* space) except -1:
    """Record one launch, or two halves of the first dimension if they exceed one launch."""
    cdef GatherSpace part
    cdef Operand[2 + 6] moved
    cdef long long count = product_of(space.shape, 0, space.ndim), half
    cdef int k, bytes
    if count <= MAX_NUMERATOR and space.ndim - 1 <= MAX_OUTER:
        return record_one(encoder, how, size, operands, space, count)
    part = space[0]
    if part.shape[0] == 1:          # the dimension cannot be halved again
        drop_first_dimension(&part)
        return record_parts(encoder, how, size, operands, &part)
    half = part.shape[0] // 2
    part.shape[0] = half
    record_parts(encoder, how, size, operands, &part)
    part.shape[0] = space.shape[0] - half
    for k in range(2 + part.count):
        moved[k] = operands[k]
        if operands[k].buffer != NULL:
            bytes = size if k < 2 else 1 << (part.indices[k - 2].kind & 3)
            if k == 1 and how == LOCATED:
                bytes = 1
            moved[k].address += <unsigned long long>(strides_of(&part, k)[0] * half * bytes)
    return record_parts(encoder, how, size, moved, &part)


cdef void fill(Parameters* params, const Operand* operands, const GatherSpace* space,
               long long count) noexcept:
    cdef const long long* strides
    cdef int last = space.ndim - 1, d, i, k
    memset(params, 0, sizeof(params[0]))
    if operands[0].buffer == NULL:
        params.here.word[0], params.here.word[1] = operands[0].value[0], operands[0].value[1]
        params.flags = GATHER_VALUE
    else:
        params.here.word[0] = operands[0].address
    if cu.cyrtEmuGuard != NULL:
        params.flags |= GATHER_TRAP
    params.there = operands[1].address
    for i in range(space.count):
        params.index[i].indices = operands[2 + i].address
        params.index[i].size = space.indices[i].size
        params.index[i].stride = space.indices[i].stride
        params.kinds |= <unsigned int>space.indices[i].kind << 4 * i
    for k in range(2 + space.count):
        strides = strides_of(<GatherSpace*>space, k)
        params.inner_strides[k] = strides[last]
        for d in range(last):
            params.outer.strides[d][k] = strides[last - 1 - d]
    for d in range(last):
        params.outer.dims[d] = divider(<unsigned int>space.shape[last - 1 - d])
    params.inner = divider(<unsigned int>space.shape[last])
    params.num_outer = <unsigned int>last
    params.num_indices = <unsigned int>space.count
    params.count = <unsigned int>count


cdef int record_one(Recorder encoder, int how, int size, const Operand* operands,
                    const GatherSpace* space, long long count) except -1:
    cdef Gather1 one
    cdef Gather6 many
    cdef Launch launch
    cdef const void* params = &one
    cdef long long threads
    cdef unsigned int block
    launch.entry = entry_of(encoder.state.ordinal, ops[how], type_of_size[size])
    if space.count > 1:
        launch.variant = MANY
        fill(&many, operands, space, count)
        params = &many
        threads = (count - 1) // MANY_ITEMS + 1
    else:
        launch.variant = ONE
        fill(&one, operands, space, count)
        threads = (count - 1) // ONE_ITEMS + 1
    block = power_of_two((threads - 1) // SPREAD + 1, WARP, BLOCK)
    set_geometry(&launch.geometry, (threads - 1) // block + 1, block, 1)
    return record_launch(encoder, &launch, params, operands, 2 + space.count,
                         2 if how == WRITTEN else 1)
