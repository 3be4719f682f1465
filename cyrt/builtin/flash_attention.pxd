# Attention of many rows of queries: the launch of flash_attention.cu.
#
# INVARIANTS
# - A block's order of keys is fixed, and no two blocks share a result: results repeat.

from cyrt.builtin.attention cimport Steps
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef enum:
    MOST_FEATURES = 128     # the most features of a head
    MOST_KEYS = 1 << 30     # the most keys of a head, and the most rows of queries

# The operands. The output is contiguous; buffers may be NULL from MASK on.
cdef enum:
    OUT = 0
    QUERIES
    KEYS
    VALUES
    MASK
    SINKS
    FLASH_OPERANDS

cdef enum MaskType:
    BOOL_MASK = 0           # a key counts where it is true
    OWN_MASK                # added, of the queries' type
    FLOAT_MASK              # added, float32

cdef struct FlashSpace:
    long long batches, heads, key_heads, rows, keys, features
    Steps queries, key_steps, values, mask      # rows of the mask are those of queries
    long long mask_key_step, sinks_step
    MaskType mask_type
    bint hides              # the mask is 0 and -infinity
    bint causal
    bint wide_sinks         # float32; otherwise of the queries' type
    double scale

cdef int record_flash_attention(Recorder encoder, int dtype, const Operand* operands,
                                const FlashSpace* space) except -1
