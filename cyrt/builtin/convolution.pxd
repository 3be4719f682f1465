# A convolution, as its launches take it.

from cyrt.builtin.window cimport WINDOW_AXES, Sliding

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
    long long channels, results     # a group's
    long long batch_step            # from one image of the source to the next
    long long[WINDOW_AXES] steps
    long long other_step            # between the weight's rows, or the gradient's outputs
    long long bias_step
    int activation                  # an index of ACTIVATIONS
