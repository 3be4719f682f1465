# Convolutions of a source whose elements are a stride apart, to few channels: the launches of
# conv_phases.cuh. They are the input's gradients of strided convolutions, and transposed ones.

from cyrt.builtin.convolution cimport Convolution
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/conv.h" nogil:
    cdef struct ConvPhases:
        unsigned long long source, other, bias, out
        long long batch_step, bias_step
        long long[2] step
        Divider tiles_m, tiles_n, width, run, channels
        int[2] first
        unsigned int[2] taps, sources, outputs, shift
        unsigned int[2][4] used
        unsigned int stride, vectors, steps, activation
    cdef struct ConvPhaseWeight:
        unsigned long long weight, out
        long long source_step, result_step, tap_step
        unsigned int sources, results
        unsigned int[2] taps, filter
        int[2] first
        unsigned int backwards, stride, sums, n

# The two launches: of the weight's arrangement in a workspace, and of the convolution. Addresses
# are 0.
cdef struct Phases:
    Launch arranging, launch
    ConvPhaseWeight weight
    ConvPhases args
    long long workspace         # bytes

# Choose the launches of a convolution, or of the gradient of an input, by the code of the
# operation, for a source at an address of that alignment. `view` has the windows of the result's
# positions over the source; the rest is that of record_conv. Return False if the kernels do not
# provide it, or would be slower than others.
cdef bint choose_phases(Phases* phases, int ordinal, int op, int dtype,
                        unsigned long long source, const Convolution* view) except -1
# Record them; the operands are those of record_conv. The phases receive addresses.
cdef int record_phases(Recorder encoder, Phases* phases, const Operand* operands) except -1
