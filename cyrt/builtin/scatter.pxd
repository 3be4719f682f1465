# Values combined into the elements that keys name: the launches of scatter.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record out[key] = out[key] op value for n keys and their values. Operands: `out`, an address from
# which keys count elements; the keys, uint32 or with `wide` uint64, in any order; the indices that
# sort them, int64, stable; the values, n or with `step` 0 one for all. All are contiguous, and
# `out` shares no memory with the others.
cdef int record_scatter(Recorder encoder, int op, int dtype, const Operand* operands, long long n,
                        bint wide, bint step) except -1
