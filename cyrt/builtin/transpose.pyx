# cython: cdivision=True
"""Copies that exchange two dimensions: the launches of transpose.cu."""

from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, ceiling, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, MAX_OUTER, Divider, Outer2, Source, Space, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/transpose.h" nogil:
    enum: TRANSPOSE_ROWS
    cdef struct Transpose:
        Source input
        unsigned long long out
        long long in_stride, out_stride
        Outer2 batch
        Divider tiles_in, tiles_out
        unsigned int size_in, size_out, num_batch

cdef enum:
    SIDE = 64               # rows and columns of a tile, for elements of up to 4 bytes

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    TILED = 0
    TILED_WIDE = 1

cdef int TRANSPOSE = catalogue.OPS.index("transpose")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Transpose),)


cdef long long put_batch(Transpose* params, const Space* space, int along) noexcept:
    """Set the dimensions other than the two that are exchanged. Return the product of their sizes,
    or 0 if there are too many."""
    cdef long long size = 1
    cdef int d, i, batch = 0
    for d in range(1, space.ndim):
        if d == along:
            continue
        if space.shape[d] > MAX_NUMERATOR:
            return 0
        size *= space.shape[d]
        if size > MAX_NUMERATOR:
            return 0
        params.batch.dims[batch] = divider(<unsigned int>space.shape[d])
        for i in range(2):
            params.batch.strides[batch][i] = space.strides[d][i]
        batch += 1
    params.num_batch = batch
    return size


cdef bint is_wide(const Transpose* params, int itemsize) noexcept:
    """Return whether all strides and addresses are multiples of 4 bytes."""
    cdef unsigned long long bits = params.in_stride | params.out_stride
    cdef unsigned int d
    for d in range(params.num_batch):
        bits |= params.batch.strides[d][0] | params.batch.strides[d][1]
    return (bits * itemsize | params.input.word[0] | params.out) % 4 == 0


cdef int record_transpose(Recorder encoder, int dtype, const Operand* operands, const Space* space,
                          int along) except -1:
    cdef Transpose params
    cdef Launch launch
    cdef int itemsize, wide
    cdef long long side, blocks, tiles_in, tiles_out
    if space.ndim - 2 > MAX_OUTER or max(space.shape[0], space.shape[along]) > MAX_NUMERATOR:
        return 0
    launch.entry = entry_of(encoder.state.ordinal, TRANSPOSE, dtype)
    itemsize = launch.entry.itemsizes[0]
    memset(&params, 0, sizeof(params))
    params.input.word[0] = operands[1].address + space.offsets[1] * itemsize
    params.out = operands[0].address + space.offsets[0] * itemsize
    params.in_stride = space.strides[0][1]
    params.out_stride = space.strides[along][0]
    params.size_in = <unsigned int>space.shape[along]
    params.size_out = <unsigned int>space.shape[0]
    blocks = put_batch(&params, space, along)
    if blocks == 0:
        return 0
    wide = 4 // itemsize if itemsize < 4 and is_wide(&params, itemsize) else 1
    launch.variant = TILED_WIDE if wide > 1 else TILED
    side = WARP * wide
    if itemsize <= 4 and side < SIDE:
        side = SIDE
    tiles_in = ceiling(params.size_in, side)
    tiles_out = ceiling(params.size_out, side)
    params.tiles_in = divider(<unsigned int>tiles_in)
    params.tiles_out = divider(<unsigned int>tiles_out)
    if tiles_in * tiles_out > MAX_BLOCKS // blocks:
        return 0
    set_geometry(&launch.geometry, blocks * tiles_in * tiles_out, WARP, TRANSPOSE_ROWS)
    record_launch(encoder, &launch, &params, operands, 2, 1 | WHOLE)
    return 1
