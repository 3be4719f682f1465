# Attention of a few rows of queries to a cache: the launches of attention.cu.
#
# INVARIANTS
# - Geometry depends on shapes alone, not on the position: a cache that fills up patches scalars.
# - Results do not depend on the order in which blocks run: the states of parts go to a workspace
#   and are combined in one order.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef enum:
    NEW_ROWS = 16           # rows of queries of a head, at most
    MAX_FEATURES = 256      # the most features that the lanes of a warp hold
    MAX_CAPACITY = 1 << 30

# The operands. The output is contiguous; buffers may be NULL from NEW_KEYS on.
cdef enum:
    OUT = 0
    KEYS
    VALUES
    QUERIES
    NEW_KEYS
    NEW_VALUES
    POSITIONS
    FREQS
    SINKS
    ATTENTION_OPERANDS

# Strides in elements; features are contiguous.
cdef struct Steps:
    long long batch, head, row

cdef extern from "params/attention.h" nogil:
    cdef struct AttentionStrides:
        long long batch, head, row

# Set the strides of a kernel's parameter.
cdef inline void set_steps(AttentionStrides* strides, const Steps* steps) noexcept:
    strides.batch, strides.head, strides.row = steps.batch, steps.head, steps.row

cdef struct AttentionSpace:
    long long batches, heads, key_heads, rows, features
    long long capacity      # keys of the cache
    long long fresh         # new rows of keys and values: none, or one for each row of queries
    bint append             # they are written to the cache
    Steps keys, values, queries, new_keys, new_values
    # The position of the first new row: `first`, plus that of each batch if there is the operand.
    long long first, positions_step
    bint wide_positions     # int64; otherwise int32
    # The rotation of queries and new keys, as in RopeSpace; without pairs nothing is rotated.
    long long pairs, freqs_step
    double turns, log2_step
    bint traditional, wide_freqs
    double scale
    long long sinks_step
    bint wide_sinks         # float32; otherwise of the queries' type

cdef int record_attention(Recorder encoder, int dtype, const Operand* operands,
                          const AttentionSpace* space) except -1
