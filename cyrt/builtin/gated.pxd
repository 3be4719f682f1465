# Gradients of gated linear units: the launch of gated.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef enum:
    GATED_MOST = 1 << 30    # elements of a row that are not contiguous with the next, at most

# Record the gradients of swiglu: operands 0 and 1, contiguous, receive those of the gate and of up;
# operands 2 to 4 are gate, up and the gradient of the result, `rows` rows of n elements side by
# side, whose distances are `steps`. n is at most GATED_MOST unless all rows are contiguous. A
# gradient may be in the memory of an operand that has its layout.
cdef int record_swiglu_vjp(Recorder encoder, int dtype, const Operand* operands, long long rows,
                           long long n, const long long* steps) except -1
