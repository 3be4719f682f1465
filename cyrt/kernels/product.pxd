# Products of matrices and vectors: which kernel of kernels_cu/matmul.cu, and how it is launched.
#
# INVARIANTS
# - The parameters are the structs of kernels_cu, byte for byte; what pads them is zero.
# - Results do not depend on the order in which blocks run: parts of a sum go to memory of their own
#   and are added in one order.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Explained, Operand

# Records out = a @ b: operands 0, 1 and 2. `shape` is the result's, with at least two dimensions, m
# and n the last; `length` is what is summed over. The result is contiguous; strides of a have m and
# the summed dimension last, those of b the summed one and n, 0 where it is broadcast. With
# `conjugate` a is conjugated; m and n are 1 then. That operands lie within their memory is the
# caller's to check. With `explained` the encoder may be None.
cdef int record_product(Recorder encoder, int ordinal, int dtype, const Operand* operands,
                        int ndim, const long long* shape, long long length, bint conjugate,
                        Explained explained) except -1
