# Reductions: the launches of reduce.cu.
#
# INVARIANTS
# - Operands are checked, code is loaded and memory is allocated before the launch that needs them
#   is recorded.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.reduce_choice cimport Finish
from cyrt.graph.commit cimport Recorder

# Record a reduction. `operands` are the output, and the input of `dtype`, `ndim` and `shape`; bit
# d of `axes` is set if dimension d is reduced. The output has as many strides as the input; NULL:
# it is contiguous in the dimensions that are kept.
cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1
