# Convolutions by cuDNN, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's plan is in the key: the operation, types, every size,
#   stride, dilation and padding, the input's dilation and the output's shape among them, bias,
#   activation, TF32. Operands are aligned to ALIGNMENT. A library that lacks a part that would
#   provide a convolution does not provide it.
# - Plans whose results differ from run to run are not used.
# - The workspace is a block of the pool for each call, so calls on several streams share none.

from cyrt.builtin.conv cimport Convolution
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# The multiplications from which on the library is faster.
cdef double least

# Record the convolution, or its gradient, by the code of the operation; the operands are those of
# record_conv. Return False, and record nothing, if the library does not provide it, or if there is
# no memory for its workspace.
cdef bint record_library_conv(Recorder encoder, int op, int dtype, const Operand* operands,
                              const Convolution* conv) except -1
