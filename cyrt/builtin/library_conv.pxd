# Convolutions by cuDNN, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's plan is in the key: the operation, types, every size,
#   stride, dilation and padding, the input's dilation and the output's shape among them, bias,
#   activation, TF32. Operands are aligned to ALIGNMENT. A library that lacks a part that would
#   provide a convolution does not provide it.
# - Plans whose results differ from run to run are not used.
# - The workspace is a block of the pool for each call, so calls on several streams share none.

from cyrt.builtin.convolution cimport Convolution
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.template cimport Template

# The names of activations, in the order of params/activation.h.
cdef tuple ACTIVATIONS
# The multiplications from which on the library is faster.
cdef double least

# Return the template of the convolution, or of its gradient, by the code of the operation; the
# operands are those of record_conv. None: the library does not provide it.
cdef Template template_of(int ordinal, int op, int dtype, const Operand* operands,
                          const Convolution* conv)
# Record the template's call. Return False, and record nothing, if there is no memory for its
# workspace.
cdef bint record_library_conv(Recorder encoder, Template template,
                              const Operand* operands) except -1
