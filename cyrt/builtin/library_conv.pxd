# Convolutions by cuDNN, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's plan is in the key: the operation, types, every size,
#   stride, dilation and padding, the input's dilation and the output's shape among them, bias,
#   activation, TF32. Operands are aligned to ALIGNMENT. The verdict that it does not provide a
#   convolution, or lacks a part that would, is kept under the same key; any other status of the
#   library is raised.
# - Plans whose results differ from run to run are not used.
# - The workspace is a block of the pool for each call, so calls on several streams share none.

from cyrt.builtin.conv cimport Convolution
from cyrt.builtin.operand cimport Operand
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.graph.commit cimport Recorder

# Whether a device's convolutions run by the library: 1 yes, -1 no, 0 not decided yet.
cdef signed char[MAX_DEVICES] decisions
cdef bint decide_for(int ordinal) except -1

# The multiplications from which on the library is faster.
cdef double least

# Return whether a convolution of so many multiplications may run by a library on the device.
cdef inline bint is_served(int ordinal, double multiplications) except -1:
    return multiplications >= least and (
        decisions[ordinal] > 0 or (decisions[ordinal] == 0 and decide_for(ordinal)))
# Record the convolution, or its gradient, by the code of the operation; the operands are those of
# record_conv. Return False, and record nothing, if the library does not provide it, or if there is
# no memory for its workspace.
cdef bint record_library_conv(Recorder encoder, int op, int dtype, const Operand* operands,
                              const Convolution* conv) except -1
