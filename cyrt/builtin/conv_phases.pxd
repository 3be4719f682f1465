# Convolutions of a source whose elements are a stride apart, to few channels: the launches of
# conv_phases.cuh. They are the input's gradients of strided convolutions, and transposed ones.

from cyrt.builtin.conv cimport Convolution
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record a convolution, or the gradient of an input, by the code of the operation. `view` has the
# windows of the result's places over the source; the rest and the operands are those of
# record_conv. Return False, and record nothing, if the kernels do not provide it, or would be
# slower than others.
cdef bint record_phases(Recorder encoder, int op, int dtype, const Operand* operands,
                        const Convolution* view) except -1
