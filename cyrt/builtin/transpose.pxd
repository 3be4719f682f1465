# Copies that exchange two dimensions: the launches of transpose.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Space
from cyrt.graph.commit cimport Recorder

# Record a copy whose input is contiguous along the space's dimension `along`, the output along the
# first one. `dtype` is the unsigned type of an element's size. Return 0 if it does not fit one
# launch.
cdef int record_transpose(Recorder encoder, int dtype, const Operand* operands, const Space* space,
                          int along) except -1
