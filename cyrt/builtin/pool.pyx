# cython: cdivision=True
"""Pooling and its gradients: the launches of pool.cu."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, VECTOR_BYTES, WARP, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.builtin.window cimport Windows, product, reverse, set_windows
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/pool.h" nogil:
    enum: POOL_CHUNK
    cdef struct Pool:
        unsigned long long source, tap, out
        Windows windows
        Divider chunks
        unsigned int outputs, channels, taps

# Kernels, in the order of Row.kernels: in vectors, and then in elements.
cdef enum Variant:
    POOL = 0
    TAPS = 2

cdef enum:
    BLOCK = 256             # threads

cdef int MAX_VJP = op_code("max_pool_vjp"), AVG_VJP = op_code("avg_pool_vjp")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Pool),)


cdef int record_pool(Recorder encoder, int op, int dtype, const Operand* operands,
                     const Pooling* pooling) except -1:
    cdef Pooling back = pooling[0]
    cdef Operand[3] uses
    cdef Memory taps
    cdef int d
    cdef long long step = pooling.channels
    for d in range(3):
        uses[d] = operands[d]
    if op != MAX_VJP and op != AVG_VJP:
        return record(encoder, op, dtype, POOL, uses, 2, 0, pooling)
    back.sliding = reverse(&pooling.sliding)
    if op == AVG_VJP:
        return record(encoder, op, dtype, POOL, uses, 2, 0, &back)
    # The greatest element of each window is found first, so that none is looked for twice.
    taps = allocate_workspace(encoder, pooling.batch * product(pooling.sliding.outputs)
                              * pooling.channels * sizeof(int))
    uses[OUT] = Operand(<PyObject*>taps, taps.address, NULL, [0, 0])
    record(encoder, op, dtype, TAPS, uses, 2, taps.address, pooling)
    for d in range(pooling.sliding.ndim - 1, -1, -1):
        back.steps[d] = step
        step *= pooling.sliding.outputs[d]
    back.batch_step = step
    uses[SOURCE], uses[2] = operands[GRADIENT], uses[OUT]
    uses[OUT] = operands[OUT]
    return record(encoder, op, dtype, POOL, uses, 3, taps.address, &back)


cdef int record(Recorder encoder, int op, int dtype, int variant, const Operand* operands,
                int count, unsigned long long taps, const Pooling* pooling) except -1:
    """Record a launch of kernels whose outputs are those of the windows."""
    cdef Pool args
    cdef Launch launch
    cdef long long outputs = pooling.batch * product(pooling.sliding.outputs), items, blocks
    cdef unsigned long long strides = pooling.batch_step if pooling.batch > 1 else 0
    cdef unsigned int x
    cdef bint forward
    cdef int d
    if outputs == 0 or pooling.channels == 0:
        return 0
    if max(outputs, pooling.channels, product(pooling.sliding.taps)) > MAX_NUMERATOR:
        raise ValueError(f"pool: more than {<long long>MAX_NUMERATOR:,} outputs, channels or "
                         f"elements of a window are not supported, got {outputs:,}, "
                         f"{pooling.channels:,} and {product(pooling.sliding.taps):,}")
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    items = launch.entry.items
    memset(&args, 0, sizeof(args))
    args.source, args.out, args.tap = operands[SOURCE].address, operands[OUT].address, taps
    set_windows(&args.windows, &pooling.sliding, pooling.batch_step, pooling.steps)
    args.outputs, args.channels = <unsigned int>outputs, <unsigned int>pooling.channels
    args.taps = <unsigned int>product(pooling.sliding.taps)
    for d in range(pooling.sliding.ndim):
        if pooling.sliding.sources[d] > 1:
            strides |= pooling.steps[d]
    strides = (strides | pooling.channels) * launch.entry.itemsizes[0] | args.source | args.out
    launch.variant = variant
    forward = op != MAX_VJP and op != AVG_VJP
    if strides % VECTOR_BYTES or forward and args.taps > POOL_CHUNK:
        launch.variant = variant + 1
        items = 1
    x = power_of_two(ceiling(pooling.channels, items), 1, WARP)
    args.chunks = divider(<unsigned int>ceiling(pooling.channels, x * items))
    blocks = args.chunks.size * ceiling(outputs, BLOCK // x)
    if blocks > MAX_BLOCKS:
        raise ValueError(f"pool: more than {<long long>MAX_BLOCKS:,} blocks are not supported, "
                         f"got {blocks:,}")
    set_geometry(&launch.geometry, blocks, x, BLOCK // x)
    return record_launch(encoder, &launch, &args, operands, count, 1)
