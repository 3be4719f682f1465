# cython: cdivision=True
"""Attention of many rows of queries: the launch of flash_attention.cu."""

from libc.float cimport FLT_MIN
from libc.math cimport M_LOG2E, fabs
from libc.string cimport memset

from cyrt.builtin.attention cimport AttentionStrides, Steps, set_steps
from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport WHOLE, Launch, ceiling, record_launch, set_geometry
from cyrt.builtin.library_attention cimport record_library_attention
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/attention.h" nogil:
    enum: ATTENTION_WIDE_SINKS, ATTENTION_CAUSAL, ATTENTION_NEGATE

cdef extern from "params/flash_attention.h" nogil:
    enum: FLASH_ROWS, FLASH_NARROW, FLASH_MASK_BOOL, FLASH_MASK_OWN, FLASH_MASK_FLOAT
    cdef struct FlashAttention:
        unsigned long long out, q, k, v, mask, sinks
        AttentionStrides q_step, k_step, v_step, mask_step
        long long mask_key_step, sinks_step
        float scale
        int rows, keys
        unsigned int features, flags, mask_type
        Divider tiles, heads, group

# Kernels, in the order of Row.kernels: a sum of these.
cdef enum Variant:
    WIDE = 1
    MASKED = 2

cdef int FLASH_ATTENTION = op_code("flash_attention")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(FlashAttention),)


cdef int record_flash_attention(Recorder encoder, int dtype, const Operand* operands,
                                const FlashSpace* space) except -1:
    cdef FlashAttention params
    cdef Launch launch
    cdef long long units = space.batches * space.heads, tiles = ceiling(space.rows, FLASH_ROWS)
    cdef bint wide = space.features > FLASH_NARROW
    if units == 0 or tiles == 0 or space.features == 0:
        return 0
    if record_library_attention(encoder, dtype, operands, space):
        return 0
    if units > MAX_NUMERATOR // tiles:
        raise ValueError(f"attention: {units:,} heads of {space.rows:,} rows of queries are more "
                         "than a grid has blocks")
    memset(&params, 0, sizeof(params))
    params.out, params.q = operands[OUT].address, operands[QUERIES].address
    params.k, params.v = operands[KEYS].address, operands[VALUES].address
    set_steps(&params.q_step, &space.queries)
    set_steps(&params.k_step, &space.key_steps)
    set_steps(&params.v_step, &space.values)
    launch.variant = WIDE if wide else 0
    if operands[MASK].buffer != NULL:
        launch.variant += MASKED
        params.mask, params.mask_key_step = operands[MASK].address, space.mask_key_step
        set_steps(&params.mask_step, &space.mask)
        params.mask_type = (FLASH_MASK_BOOL if space.mask_type == BOOL_MASK
                            else FLASH_MASK_OWN if space.mask_type == OWN_MASK
                            else FLASH_MASK_FLOAT)
    if operands[SINKS].buffer != NULL:
        params.sinks, params.sinks_step = operands[SINKS].address, space.sinks_step
    if space.causal:
        params.flags |= ATTENTION_CAUSAL
    if space.wide_sinks:
        params.flags |= ATTENTION_WIDE_SINKS
    if space.scale < 0:
        params.flags |= ATTENTION_NEGATE
    # The kernel looks for the largest product, and multiplies those that are hidden, -infinity.
    params.scale = max(<float>(fabs(space.scale) * M_LOG2E), <float>FLT_MIN)
    params.rows, params.keys = <int>space.rows, <int>space.keys
    params.features = <unsigned int>space.features
    params.tiles = divider(<unsigned int>tiles)
    params.heads = divider(<unsigned int>space.heads)
    params.group = divider(<unsigned int>(space.heads // space.key_heads))
    launch.entry = entry_of(encoder.state.ordinal, FLASH_ATTENTION, dtype)
    set_geometry(&launch.geometry, units * tiles, FLASH_ROWS * (2 if wide else 1), 1)
    return record_launch(encoder, &launch, &params, operands, FLASH_OPERANDS, 1 << OUT | WHOLE)


cdef void set_dense(Steps* steps, long long heads, long long rows, long long features) noexcept:
    steps.row, steps.head, steps.batch = features, rows * features, heads * rows * features
