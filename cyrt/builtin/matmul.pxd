# Products of matrices and vectors: the launches of matmul.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Results do not depend on the order in which blocks run: parts of a sum go to a workspace and are
#   added in one order.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record out = a @ b: operands 0, 1 and 2. `shape` is the result's, with at least two dimensions, m
# and n the last; `length` is the size of the summed dimension. The result is contiguous. The
# strides of a end with m and the summed dimension, those of b with the summed one and n; they are
# 0 for broadcast dimensions. With `conjugate` a is conjugated; m and n are 1 then. The caller
# checks that operands are inside their memory.
cdef int record_product(Recorder encoder, int dtype, const Operand* operands, int ndim,
                        const long long* shape, long long length, bint conjugate) except -1
