# Cumulative sums and products: the launches of scan.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record the cumulative sums or products, `op`, of operand 1, shaped (rows, n, inner), along its
# middle dimension into operand 0, of the type that rows.scan.result returns; with `initial` the
# result is one element longer and begins with 0 or 1. Both are contiguous.
cdef int record_scan(Recorder encoder, int op, int dtype, const Operand* operands, long long rows,
                     long long n, long long inner, bint initial) except -1
