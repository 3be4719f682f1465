# Convolutions: the launches of conv.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Results do not depend on the order in which blocks run: parts of a sum go to a workspace and are
#   added in one order.
# - A plan is valid for one device, one alignment of each operand, and the same operands absent.
#   Whoever stores it holds its template (see graph/exact_key).

from cpython.object cimport PyObject

from cyrt.builtin.conv_phases cimport Phases
from cyrt.builtin.convolution cimport Convolution
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider
from cyrt.builtin.window cimport Windows
from cyrt.graph.commit cimport Recorder
from cyrt.graph.template cimport Template

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
    KERNELS
    HALVES                  # the halves of the batch, one after the other
    PHASES
    LIBRARY

# One launch; or two, if there is a workspace: the second one adds the parts of each sum.
cdef struct Kernels:
    Launch launch, adding
    Conv args
    ConvSum sum
    long long workspace         # bytes for parts

cdef union Launches:
    Kernels kernels
    Phases phases

# A convolution, or a gradient of it, and the launches by which it is recorded. The addresses in the
# parameters are 0.
cdef struct ConvPlan:
    Convolution conv
    int op, dtype
    Way way
    PyObject* template          # borrowed; for the way LIBRARY
    Launches launches

# Return the index of an activation; ValueError.
cdef int activation_code(str name, object activation) except -1
# Choose the launches of a plan's convolution, operation and type. Return the plan's template, or
# None.
cdef Template choose(ConvPlan* plan, int ordinal, const Operand* operands)
# Record a convolution, or its gradient. The plan, which is the caller's own, receives addresses.
cdef int record_conv(Recorder encoder, ConvPlan* plan, Template template,
                     const Operand* operands) except -1
