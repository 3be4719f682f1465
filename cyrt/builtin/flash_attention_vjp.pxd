# Gradients of attention of many rows of queries: the launches of flash_attention_vjp.cu.
#
# INVARIANTS
# - A block's order of rows and keys is fixed, and no two blocks share a result: results repeat.

from cyrt.builtin.attention cimport Steps
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# The operands. The first three are outputs, and contiguous.
cdef enum:
    OF_QUERIES = 0
    OF_KEYS
    OF_VALUES
    VJP_GRADIENT
    VJP_QUERIES
    VJP_KEYS
    VJP_VALUES
    VJP_OPERANDS

cdef struct VjpSpace:
    long long batches, heads, key_heads, rows, keys, features
    Steps gradient, queries, key_steps, values
    bint causal
    double scale

cdef int record_flash_attention_vjp(Recorder encoder, int dtype, const Operand* operands,
                                    const VjpSpace* space) except -1
