# Discrete Fourier transforms along an axis: the launches of fft.cu.
#
# INVARIANTS
# - A block reads its lines completely before it writes them: a transform in one launch may have its
#   input as its output.
# - The tables of a plan live as long as it, and while it is recorded.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Space
from cyrt.graph.commit cimport Recorder

cdef extern from "params/fft.h" nogil:
    enum: FFT_REAL_IN, FFT_REAL_OUT, FFT_HERMITIAN

cdef enum:
    MOST_FFT_NDIM = 8       # dimensions of an input whose elements are not contiguous
    MOST_POINTS = 1 << 30

# A transform along an axis. One along several axes, of which this is the last one, is a library's.
cdef struct Transform:
    int axis
    long long n             # its points: elements that the input lacks are 0
    long long inputs        # elements of the input along the axis
    long long outputs       # those of the output
    unsigned int kind       # flags FFT_REAL_IN, FFT_REAL_OUT and FFT_HERMITIAN
    bint half               # the input or the output is the first half of a spectrum
    bint inverse            # the sign of the exponent
    double scale            # by which results are multiplied

# The lines of a transform along `rank` axes, of an input of this shape: their number, the spaces
# between them in the output and in the input, and the steps between points of the last axis, in
# elements.
cdef struct Lines:
    long long count
    Space space
    long long out_step, in_step
cdef void find_lines(Lines* lines, const Operand* operands, int ndim, const long long* shape,
                     const Transform* transform, int rank) noexcept
# Record a transform of operand 1 into operand 0, which is contiguous. `dtype` is the complex type,
# `shape` the input's.
cdef int record_fft(Recorder encoder, int dtype, const Operand* operands, int ndim,
                    const long long* shape, const Transform* transform) except -1
