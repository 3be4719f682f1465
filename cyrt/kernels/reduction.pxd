# Reductions: from an operation, an array and its axes to recorded kernels.
#
# INVARIANTS
# - Everything is checked, code loaded and memory allocated, before the launch that needs it is
#   recorded.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.reduction_choice cimport Finish
from cyrt.kernels.entries cimport Explained, Operand

# Records a reduction. `operands`: the output and the input, of which `ndim`, `shape` and `dtype`
# tell; bit d of `axes` says that dimension d is reduced. The output's strides, where given, are as
# many as the input's; else it is contiguous in what is kept.
cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1
# With `explained` the encoder may be None.
cdef int perform_reduction(Recorder encoder, int ordinal, int op, int dtype,
                           const Operand* operands, int ndim, const long long* shape,
                           unsigned long long axes, const Finish* finish,
                           Explained explained) except -1
