# cython: cdivision=True
"""Rotary position embedding: the launches of rope.cu."""


from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    VECTOR_BYTES, WARP, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/rope.h" nogil:
    enum: ROPE_HEADS, ROPE_TRADITIONAL, ROPE_WIDE_FREQS
    cdef struct Rope:
        unsigned long long input, out, offsets, freqs
        long long offsets_step, freqs_step
        long long in_batch, in_head, in_position
        long long out_batch, out_head, out_position
        long long first
        double turns, log2_step
        Divider chunks, positions, groups
        unsigned int heads, pairs, features, flags, count

cdef enum:
    BLOCK = 128             # threads
    SPREAD = 256            # blocks over which a small grid is spread

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ELEMENTS = 0
    VECTORS = 1

cdef int ROPE = catalogue.OPS.index("rope")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Rope),)


cdef bint takes_vectors(const Operand* operands, const RopeSpace* space, int itemsize) noexcept:
    """Return whether all rows of input and output begin at a vector, and divide into vectors."""
    cdef long long bits = space.pairs | space.features
    cdef int i, d
    for i in range(2):
        if operands[i].address % VECTOR_BYTES:
            return False
        for d in range(3):
            bits |= space.strides[d][i]
    return bits * itemsize % VECTOR_BYTES == 0


cdef int record_halves(Recorder encoder, int dtype, const Operand* operands,
                       const RopeSpace* space, int d) except -1:
    """Record two halves of a dimension."""
    cdef Operand[4] moved
    cdef RopeSpace part = space[0]
    cdef long long half = space.shape[d] // 2
    cdef int i, itemsize = entry_of(encoder.state.ordinal, ROPE, dtype).itemsizes[0]
    for i in range(4):
        moved[i] = operands[i]
    part.shape[d] = half
    record_rope(encoder, dtype, operands, &part)
    part.shape[d] = space.shape[d] - half
    for i in range(2):
        moved[i].address += <unsigned long long>(half * space.strides[d][i] * itemsize)
    if d == BATCH and moved[2].buffer != NULL:
        moved[2].address += <unsigned long long>(half * space.offsets_step * 8)
    if d == POSITION:
        part.first += half
    return record_rope(encoder, dtype, moved, &part)


cdef int record_rope(Recorder encoder, int dtype, const Operand* operands,
                     const RopeSpace* space) except -1:
    cdef Rope params
    cdef Launch launch
    cdef long long items = 1, chunks, groups = ceiling(space.shape[HEAD], ROPE_HEADS), count
    cdef int d
    cdef unsigned int block
    launch.entry = entry_of(encoder.state.ordinal, ROPE, dtype)
    launch.variant = ELEMENTS
    if takes_vectors(operands, space, launch.entry.itemsizes[0]):
        launch.variant = VECTORS
        items = launch.entry.items
    chunks = (space.features - space.pairs) // items
    count = chunks * groups
    if count > MAX_NUMERATOR:
        return record_halves(encoder, dtype, operands, space, HEAD)
    for d in (BATCH, POSITION):
        if count and space.shape[d] > MAX_NUMERATOR // count:
            return record_halves(encoder, dtype, operands, space, d)
        count *= space.shape[d]
    if count == 0:
        return 0
    memset(&params, 0, sizeof(params))
    params.out, params.input = operands[0].address, operands[1].address
    if operands[2].buffer != NULL:
        params.offsets, params.offsets_step = operands[2].address, space.offsets_step
    if operands[3].buffer != NULL:
        params.freqs, params.freqs_step = operands[3].address, space.freqs_step
    params.out_batch, params.in_batch = space.strides[BATCH][0], space.strides[BATCH][1]
    params.out_head, params.in_head = space.strides[HEAD][0], space.strides[HEAD][1]
    params.out_position, params.in_position = (space.strides[POSITION][0],
                                               space.strides[POSITION][1])
    params.first, params.turns, params.log2_step = space.first, space.turns, space.log2_step
    params.chunks = divider(<unsigned int>chunks)
    params.positions = divider(<unsigned int>space.shape[POSITION])
    params.groups = divider(<unsigned int>groups)
    params.heads = <unsigned int>space.shape[HEAD]
    params.pairs, params.features = <unsigned int>space.pairs, <unsigned int>space.features
    params.flags = (ROPE_TRADITIONAL if space.traditional else 0) \
        | (ROPE_WIDE_FREQS if space.wide_freqs else 0)
    params.count = <unsigned int>count
    block = power_of_two(ceiling(count, SPREAD), WARP, BLOCK)
    set_geometry(&launch.geometry, ceiling(count, block), block, 1)
    return record_launch(encoder, &launch, &params, operands, 4, 1)
