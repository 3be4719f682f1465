# cython: cdivision=True
"""Pooling and its gradients: the launches of pool.cu."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport dtype_code, entry_of, op_code
from cyrt.builtin.explain import expect_shapes
from cyrt.builtin.grid cimport MAX_BLOCKS, ceiling, power_of_two, set_geometry
from cyrt.builtin.launch cimport Explainer, Launch, record_launch, set_example_memory
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.builtin.window cimport Windows, product, reverse, set_sliding, set_windows
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
    WARP = 32
    BLOCK = 256             # threads
    VECTOR_BYTES = 16

cdef int MAX_VJP = op_code("max_pool_vjp"), AVG_VJP = op_code("avg_pool_vjp")


def param_bytes(row):
    """Return the size in bytes of the parameter of each kernel of a row."""
    return (sizeof(Pool),) * len(row.kernels)


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
    cdef unsigned long long places = pooling.batch_step if pooling.batch > 1 else 0
    cdef unsigned int x
    cdef bint forward
    cdef int d
    if outputs == 0 or pooling.channels == 0:
        return 0
    if max(outputs, pooling.channels, product(pooling.sliding.taps)) > MAX_NUMERATOR:
        raise ValueError(f"pool: more than {<long long>MAX_NUMERATOR:,} outputs, channels or "
                         f"elements of a window are not provided for, got {outputs:,}, "
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
            places |= pooling.steps[d]
    places = (places | pooling.channels) * launch.entry.itemsizes[0] | args.source | args.out
    launch.variant = variant
    forward = op != MAX_VJP and op != AVG_VJP
    if places % VECTOR_BYTES or forward and args.taps > POOL_CHUNK:
        launch.variant = variant + 1
        items = 1
    x = power_of_two(ceiling(pooling.channels, items), 1, WARP)
    args.chunks = divider(<unsigned int>ceiling(pooling.channels, x * items))
    blocks = args.chunks.size * ceiling(outputs, BLOCK // x)
    if blocks > MAX_BLOCKS:
        raise ValueError(f"pool: more than {<long long>MAX_BLOCKS:,} blocks are not provided for, "
                         f"got {blocks:,}")
    set_geometry(&launch.geometry, blocks, x, BLOCK // x)
    return record_launch(encoder, &launch, &args, operands, count, 1)


def explain(Explainer explainer, str op, str dtype, shapes, stride=None, padding=0):
    """List the launches of pooling, or of its gradient; the shapes are the input's and the
    window's."""
    cdef Operand[3] operands
    cdef Pooling pooling
    cdef long long[3] sizes, taps
    cdef long long step
    cdef int d, ndim
    shape, window = expect_shapes(op, shapes, "the input", "the window")
    ndim = len(window)
    if not 1 <= ndim <= 3 or len(shape) != ndim + 2:
        raise ValueError(f"{op}: expected shapes (N, ..., C) and (...) of 1 to 3 spatial "
                         f"dimensions, got {shape} and {window}")
    for d in range(ndim):
        sizes[d], taps[d] = shape[d + 1], window[d]
    memset(&pooling, 0, sizeof(pooling))
    set_sliding(&pooling.sliding, op, ndim, sizes, taps, window if stride is None else stride,
                padding, 1, 1, False)
    pooling.batch, pooling.channels = shape[0], shape[ndim + 1]
    step = pooling.channels
    for d in range(ndim - 1, -1, -1):
        pooling.steps[d] = step
        step *= pooling.sliding.outputs[d] if op == "avg_pool_vjp" else sizes[d]
    pooling.batch_step = step
    set_example_memory(operands, 3)
    record_pool(explainer, op_code(op), dtype_code(dtype), operands, &pooling)
    return dtype
