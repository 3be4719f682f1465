# cython: cdivision=True
"""Gradients of attention of many rows of queries: the launches of flash_attention_vjp.cu."""

from cpython.object cimport PyObject
from libc.float cimport FLT_MIN
from libc.math cimport M_LOG2E, fabs
from libc.string cimport memset

from cyrt.builtin.attention cimport AttentionStrides, set_steps
from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport WHOLE, Launch, ceiling, record_launch, set_geometry
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/attention.h" nogil:
    enum: ATTENTION_CAUSAL, ATTENTION_NEGATE

cdef extern from "params/flash_attention_vjp.h" nogil:
    enum: FLASH_VJP_ROWS, FLASH_VJP_NARROW
    cdef struct FlashAttentionVjp:
        unsigned long long gq, gk, gv, g, q, k, v, sums
        AttentionStrides g_step, q_step, k_step, v_step
        float scale, factor
        int rows, keys, all_rows
        unsigned int features, flags
        Divider units, heads, group

cdef enum:
    SUMS_BYTES = 8          # what the first kernel leaves of a row of queries

# Kernels, in the order of Row.kernels: a sum of these.
cdef enum Variant:
    OF_THE_KEYS = 1
    WIDE = 2

cdef int FLASH_ATTENTION_VJP = op_code("flash_attention_vjp")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(FlashAttentionVjp),)


cdef int record_flash_attention_vjp(Recorder encoder, int dtype, const Operand* operands,
                                    const VjpSpace* space) except -1:
    cdef FlashAttentionVjp params
    cdef Launch launch
    cdef Operand[6] uses
    cdef Memory sums = None
    cdef bint wide = space.features > FLASH_VJP_NARROW
    cdef long long units = space.batches * space.heads, key_units = space.batches * space.key_heads
    cdef long long tiles = ceiling(space.rows, FLASH_VJP_ROWS)
    cdef long long key_tiles = ceiling(space.keys, FLASH_VJP_ROWS)
    if space.batches == 0 or space.key_heads == 0 or space.features == 0:
        return 0
    if units > MAX_NUMERATOR // max(1, tiles) or key_units > MAX_NUMERATOR // max(1, key_tiles):
        raise ValueError(f"attention_vjp: {units:,} heads of {space.rows:,} rows of queries and "
                         f"{space.keys:,} keys are more than a grid has blocks")
    memset(&params, 0, sizeof(params))
    params.gq, params.gk = operands[OF_QUERIES].address, operands[OF_KEYS].address
    params.gv, params.g = operands[OF_VALUES].address, operands[VJP_GRADIENT].address
    params.q, params.k = operands[VJP_QUERIES].address, operands[VJP_KEYS].address
    params.v = operands[VJP_VALUES].address
    set_steps(&params.g_step, &space.gradient)
    set_steps(&params.q_step, &space.queries)
    set_steps(&params.k_step, &space.key_steps)
    set_steps(&params.v_step, &space.values)
    if space.causal:
        params.flags |= ATTENTION_CAUSAL
    if space.scale < 0:
        params.flags |= ATTENTION_NEGATE
    # The kernels look for the largest product, and multiply those that are hidden, -infinity.
    params.scale = max(<float>(fabs(space.scale) * M_LOG2E), <float>FLT_MIN)
    params.factor = <float>space.scale
    params.rows, params.keys = <int>space.rows, <int>space.keys
    params.all_rows = <int>(tiles * FLASH_VJP_ROWS)
    params.features = <unsigned int>space.features
    params.group = divider(<unsigned int>max(1, space.heads // space.key_heads))
    launch.entry = entry_of(encoder.state.ordinal, FLASH_ATTENTION_VJP, dtype)
    if units * tiles:
        sums = allocate_workspace(encoder, units * params.all_rows * SUMS_BYTES)
        params.sums = sums.address
        params.units = divider(<unsigned int>units)
        params.heads = divider(<unsigned int>space.heads)
        launch.variant = WIDE if wide else 0
        set_geometry(&launch.geometry, units * tiles, FLASH_VJP_ROWS * (2 if wide else 1), 1)
        uses[0] = operands[OF_QUERIES]
        uses[1] = Operand(<PyObject*>sums, sums.address, NULL, [0, 0])
        uses[2], uses[3] = operands[VJP_GRADIENT], operands[VJP_QUERIES]
        uses[4], uses[5] = operands[VJP_KEYS], operands[VJP_VALUES]
        record_launch(encoder, &launch, &params, uses, 6, 1 << 0 | 1 << 1 | WHOLE)
    if key_tiles == 0:
        return 0
    if units == 0:
        params.rows = 0         # the heads of keys have no heads of queries
    params.units = divider(<unsigned int>key_units)
    params.heads = divider(<unsigned int>space.key_heads)
    launch.variant = OF_THE_KEYS + (WIDE if wide else 0)
    set_geometry(&launch.geometry, key_units * key_tiles, FLASH_VJP_ROWS * (2 if wide else 1), 1)
    return record_key_gradients(encoder, &launch, &params, operands, sums)


cdef int record_key_gradients(Recorder encoder, const Launch* launch,
                              const FlashAttentionVjp* params, const Operand* operands,
                              Memory sums) except -1:
    cdef Operand[VJP_OPERANDS] uses
    memset(uses, 0, sizeof(uses))
    uses[0], uses[1] = operands[OF_KEYS], operands[OF_VALUES]
    uses[2], uses[3] = operands[VJP_GRADIENT], operands[VJP_QUERIES]
    uses[4], uses[5] = operands[VJP_KEYS], operands[VJP_VALUES]
    if sums is not None:
        uses[6] = Operand(<PyObject*>sums, sums.address, NULL, [0, 0])
    return record_launch(encoder, launch, params, uses, VJP_OPERANDS, 1 << 0 | 1 << 1 | WHOLE)
