# Normalisation of rows: the launches of norm.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Sums are added in one order: equal inputs on equal devices give equal bits.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport Rows
from cyrt.graph.commit cimport Recorder

# Record a normalisation. The operands are the result, x, weight and bias. The last two have n
# contiguous elements, aligned to 16 bytes; a buffer of NULL: there is none.
cdef int record_norm(Recorder encoder, int op, int dtype, const Operand* operands,
                     const Rows* rows, double eps) except -1
# Record its gradients. The operands are the gradient of x, x, the result's gradient, weight, and
# the gradients of weight and bias. The last three may be absent; the weight and its gradient are
# both there or both absent. The gradient of x may have the address and steps of x, or of the
# result's gradient.
cdef int record_norm_vjp(Recorder encoder, int op, int dtype, const Operand* operands,
                         const Rows* rows, double eps) except -1
