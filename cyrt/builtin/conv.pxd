# Convolutions: the launches of conv.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Results do not depend on the order in which blocks run: parts of a sum go to a workspace and are
#   added in one order.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.window cimport WINDOW_AXES, Sliding
from cyrt.graph.commit cimport Recorder

# Operands. The source, whose channels are adjacent, is the input; or, for the input's gradient, the
# result's. The other one is the weight, whose rows are dense; or, for the weight's gradient, the
# result's. The bias' buffer may be NULL.
cdef enum:
    OUT = 0                 # contiguous
    SOURCE
    OTHER
    BIAS

# A convolution. Steps are in elements.
cdef struct Convolution:
    Sliding sliding
    long long batch, groups
    long long channels, results     # of a group
    long long batch_step            # of the source
    long long[WINDOW_AXES] steps
    long long other_step            # of the weight's rows, or of the gradient's outputs
    long long bias_step
    int activation                  # an index of ACTIVATIONS

# Return the index of an activation; ValueError.
cdef int activation_code(str name, object activation) except -1
# Record a convolution, or its gradient, by the code of the operation.
cdef int record_conv(Recorder encoder, int op, int dtype, const Operand* operands,
                     const Convolution* conv) except -1
