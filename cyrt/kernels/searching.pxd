# How the kernels of search.cu are launched.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Operand

# Of operand 2, `count` contiguous values: how many of the n elements of operand 1, contiguous and
# in order, are before each, or with `right` not after it; into operand 0, int64. Operand 3 has the
# elements' places in order, int64, where they lie in another; its buffer is NULL where not. The
# elements and values are of one type.
cdef int record_search(Recorder encoder, int dtype, const Operand* operands, long long n,
                       long long count, bint right) except -1
# Whether each is among them, or with `invert` not; into operand 0, bool.
cdef int record_contains(Recorder encoder, int dtype, const Operand* operands, long long n,
                         long long count, bint invert) except -1
