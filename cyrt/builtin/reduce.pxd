# Reductions: the launches of reduce.cu.
#
# INVARIANTS
# - Operands are checked, code is loaded and memory is allocated before the launch that needs them
#   is recorded.
# - The padding of parameters is zero: equal launches have equal bytes.
# - Shape, strides and alignment alone determine grid and block: equal inputs give equal bits.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# The final step of a reduction.
cdef struct Finish:
    double divisor      # the divisor of the sum of a mean or a variance; otherwise 1
    bint root           # whether a variance's root is the result

# Record a reduction. `operands` are the output, and the input of `dtype`, `ndim` and `shape`; bit
# d of `axes` is set if dimension d is reduced. The output has as many strides as the input; NULL:
# it is contiguous in the dimensions that are kept.
cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1
