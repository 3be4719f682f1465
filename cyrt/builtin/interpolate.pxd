# Images in another size: the launches of interpolate.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/interpolate.h" nogil:
    enum: INTERPOLATE_AXES
    cdef struct InterpolateAxis:
        int input, output
        double scale

# Kernels, in the order of Row.kernels.
cdef enum:
    NEAREST = 0
    LINEAR
    CUBIC

# Images of some channels; further axes have the size 1.
cdef struct Interpolation:
    int neighbours          # the kernel
    InterpolateAxis[INTERPOLATE_AXES] axis
    long long batch, channels
    bint corners, halfway

# Record the operation, or its gradient, on operand 1 into operand 0; both are contiguous.
cdef int record_interpolate(Recorder encoder, int op, int dtype, const Operand* operands,
                            const Interpolation* images) except -1
