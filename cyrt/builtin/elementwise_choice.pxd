# The choice of an elementwise launch: variant, grid, block and parameters.
#
# INVARIANTS
# - Grids are one-dimensional, so the limit of 65,535 does not apply; a space that exceeds a grid,
#   or 32-bit counts of rows and columns, does not fit and is split by the caller.
# - The padding of parameters is zero: equal launches have equal bytes.

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport (
    MAX_OPERANDS, Divider, Outer2, Outer3, Outer4, Source, Space,
)
from cyrt.graph.recording cimport Geometry

cdef extern from "params/elementwise.h" nogil:
    enum: ELEMENTWISE_VALUE
    cdef struct Dense1:
        Source inputs[1]
        unsigned long long out
        long long n
        unsigned int flags, steps
    cdef struct Dense2:
        Source inputs[2]
        unsigned long long out
        long long n
        unsigned int flags, steps
    cdef struct Dense3:
        Source inputs[3]
        unsigned long long out
        long long n
        unsigned int flags, steps
    cdef struct Aligned1:
        unsigned long long inputs[1]
        unsigned long long out
        unsigned int vectors, flags
    cdef struct Aligned2:
        unsigned long long inputs[2]
        unsigned long long out
        unsigned int vectors, flags
    cdef struct Aligned3:
        unsigned long long inputs[3]
        unsigned long long out
        unsigned int vectors, flags
    cdef struct Strided1:
        Source inputs[1]
        unsigned long long out
        long long inner_strides[2]
        Outer2 outer
        unsigned int num_outer, rows, inner, flags
        Divider chunks
    cdef struct Strided2:
        Source inputs[2]
        unsigned long long out
        long long inner_strides[3]
        Outer3 outer
        unsigned int num_outer, rows, inner, flags
        Divider chunks
    cdef struct Strided3:
        Source inputs[3]
        unsigned long long out
        long long inner_strides[4]
        Outer4 outer
        unsigned int num_outer, rows, inner, flags
        Divider chunks

cdef enum:
    SMALL = 1 << 20         # the most vectors of the ALIGNED kernel

# Kernels of an elementwise operation, in the order of Row.kernels.
cdef enum Variant:
    DENSE = 0
    STRIDED = 1
    ALIGNED = 2

# The parameters of any of them.
cdef union Parameters:
    Dense1 dense1
    Dense2 dense2
    Dense3 dense3
    Aligned1 aligned1
    Aligned2 aligned2
    Aligned3 aligned3
    Strided1 strided1
    Strided2 strided2
    Strided3 strided3

# Set the geometry for n elements; each thread processes a vector of them `steps` times. False if a
# grid cannot cover them.
cdef bint set_grid(Launch* launch, unsigned long long n, unsigned int steps) noexcept
# Choose for contiguous operands, except that the inputs in `broadcast` have one element for all; n
# is at least 1. False, here and below: the elements do not fit one launch.
cdef bint choose_dense(Launch* launch, Parameters* params, const Operand* operands,
                       const long long* offsets, long long n, unsigned int broadcast) noexcept
# Set geometry and variant for n elements of contiguous, aligned operands in whole vectors.
cdef void choose_aligned(Launch* launch, long long n) noexcept
# Return whether the entry has a kernel for that.
cdef inline bint takes_aligned(const Entry* entry, long long n) noexcept:
    return entry.functions[<int>ALIGNED] != NULL and n >> entry.shift < SMALL \
        and n & (entry.items - 1) == 0
# A strided launch without its addresses and numbers.
cdef struct StridedPlan:
    Geometry geometry
    Parameters params
    long long offsets[MAX_OPERANDS]     # each operand's first element
    unsigned int vectors        # a bit for each operand that vectors need aligned; 0: no vectors

# Plan a launch for operands of any space of at least one dimension; bit i of `numbers` is set if
# operand i is a number.
cdef bint plan_strided(StridedPlan* plan, const Entry* entry, unsigned int numbers,
                       const Space* space) noexcept
# Complete a planned launch with the operands' addresses and numbers.
cdef void choose_planned(Launch* launch, Parameters* params, const StridedPlan* plan,
                         const Operand* operands) noexcept
