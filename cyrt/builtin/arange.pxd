# Evenly spaced numbers: the launches of arange.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record start + i * step, the operands 1 and 2, into n contiguous elements of operand 0. Both are
# numbers of the widest type of `dtype`'s kind: 64-bit integer, double, or complex of doubles.
cdef int record_arange(Recorder encoder, int dtype, const Operand* operands,
                       long long n) except -1
