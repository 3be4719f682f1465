# Softmax of rows: the launches of softmax.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Sums are added in one order: equal inputs on equal devices give equal bits.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport Rows
from cyrt.graph.commit cimport Recorder

# Record a softmax, a cross entropy, or the gradient of one: `op`. The operands are
#   the result: rows, or of losses a number a row;
#   x: rows, or for softmax_vjp the softmax;
#   the gradient of the result: rows for softmax_vjp, contiguous numbers for cross_entropy_vjp;
#   the targets, contiguous, int64 with `wide_targets`, otherwise int32.
# The last two may be absent: their buffer is NULL. Where the target is `ignored`, the loss and the
# gradient are 0.
cdef int record_softmax(Recorder encoder, int op, int dtype, const Operand* operands,
                        const Rows* rows, bint wide_targets, long long ignored) except -1
