# Linear layers of a few rows: the launches of linear.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/linear.h" nogil:
    enum: FEW_LINEAR_ROWS       # the most rows

# The operands.
cdef enum:
    OUT = 0
    X
    RESIDUAL                    # absent operands have no buffer and address 0
    WEIGHT                      # (out, in); it and what follows may be loaded early
    NORM                        # the norm's weight
    NORM_BIAS                   # a layer_norm's bias: see takes_layer_norm
    BIAS
    NUM_OPERANDS

# out = residual + activation(norm(x) @ weight.T + bias), of a few rows.
cdef struct Layer:
    Operand[7] operands         # contiguous, but for the distances of the rows of x and of weight
    int dtype, itemsize
    long long rows, length, features        # rows of x, their elements, and those of the result's
    long long x_step, weight_step
    bint gated                  # weight has a gate and a gated row for each feature
    unsigned int activation     # a number of params/activation.h
    double eps

# Return whether one kernel computes such a layer, by its type, its sizes and the alignment of the
# weight; that of x and norm is 16 bytes.
cdef bint is_fused(const Layer* p) noexcept
# Return whether the norm of such a layer may be a layer_norm.
cdef bint takes_layer_norm(int ordinal, const Layer* p) except -1
# Record it.
cdef int record_linear(Recorder encoder, const Layer* p) except -1
# Return the number of an activation's name; ValueError, of the function `name`, if there is none.
cdef int activation_code(str name, object activation) except -1
