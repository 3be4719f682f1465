# Discrete Fourier transforms by cuFFT, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's plan is in the key: types, direction, sizes, steps,
#   alignments.
# - The library reads all of half a spectrum whose result is real, and writes over it: the caller
#   gives it a copy without the imaginary parts that the definition ignores.
# - The workspace is a block of the pool for each call, so calls on several streams share none.

from cyrt.builtin.fft cimport Transform
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef enum:
    MOST_AXES = 3           # axes of a transform of the library's

# Return whether the library serves the device and is the faster one for transforms along `rank`
# adjacent axes of `ndim`, of which `transform` has the last one. `lines`: the number of elements of
# the input divided by the points of the transform along this axis.
cdef bint prefers_library(int ordinal, const Transform* transform, int rank, int ndim,
                          long long lines) except -1
# Record a transform of operand 1 into operand 0, which is contiguous, without its factor. Return
# False, and record nothing, if the library does not provide it.
cdef bint record_library_fft(Recorder encoder, int dtype, const Operand* operands, int ndim,
                             const long long* shape, const Transform* transform,
                             int rank) except -1
