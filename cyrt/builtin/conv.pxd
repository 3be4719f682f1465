# Convolutions: the launches of conv.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Results do not depend on the order in which blocks run: parts of a sum go to a workspace and are
#   added in one order.
# - A Choice holds as long as `changes` of graph/template is what it was: until then its template is
#   in the store, which keeps it alive.

from cpython.object cimport PyObject

from cyrt.builtin.conv_phases cimport Phases
from cyrt.builtin.convolution cimport Convolution
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider
from cyrt.builtin.window cimport Windows
from cyrt.graph.commit cimport Recorder

cdef extern from "params/conv.h" nogil:
    cdef struct Conv:
        unsigned long long source, other, bias, out
        Windows windows
        long long other_step, other_group, out_step, bias_step
        Divider channels, tiles_m, tiles_n, groups
        unsigned int rows, columns, length, depth, flags, activation
    cdef struct ConvSum:
        unsigned long long input, bias, out
        long long group_step, row_step, column_step, bias_step
        Divider rows, columns
        unsigned int n, count, activation

# The launches by which a convolution is recorded.
cdef enum Way:
    NOTHING                 # there is no result
    KERNEL
    KERNEL_OF_PARTS         # two launches: the second one adds the parts of each sum
    HALVES                  # the halves of the batch, one after the other
    PHASES
    LIBRARY

# A convolution, or a gradient of it, and the launches by which it is recorded. They hold for one
# device, one alignment of each operand, and the same operands absent. The addresses in the
# parameters are 0.
cdef class Choice:
    cdef Convolution conv
    cdef int op, dtype
    cdef Way way
    cdef unsigned long long changes     # their number when the way was chosen; 0: choose it again
    cdef PyObject* template             # borrowed; for the way LIBRARY
    cdef Launch launch, adding
    cdef Conv args
    cdef ConvSum sum
    cdef long long workspace            # bytes for parts
    cdef Phases phases

# Return the index of an activation; ValueError.
cdef int activation_code(str name, object activation) except -1
# Return a Choice whose way is chosen when it is recorded.
cdef Choice new_choice(int op, int dtype, const Convolution* conv)
# Record a convolution, or its gradient.
cdef int record_conv(Recorder encoder, Choice choice, const Operand* operands) except -1
