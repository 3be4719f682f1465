# The choice of a reduction's launch: variant, grid, block and parameters.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.
# - Shape, strides and alignment alone determine grid and block: equal inputs give equal bits.

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider, Outer2, Space

cdef extern from "params/reduce.h" nogil:
    cdef struct Reduce:
        unsigned long long input, out
        long long kept_inner
        long long kept_strides[2]
        long long units
        long long row_strides[2]
        long long tail, place, rows, part_rows, part_units, outputs
        double divisor
        Outer2 kept, reduced
        unsigned int num_kept, num_reduced, lanes, flags
        Divider parts, unit_parts, chunks

cdef enum:
    VECTOR_BYTES = 16       # bytes of the widest vector; no greater alignment matters

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ROWS = 0
    COLUMNS = 1
    PARTS = 2

# The final step of a reduction.
cdef struct Finish:
    double divisor      # what a sum is divided by for a mean or a variance; else 1
    bint root           # whether a variance's root is the result

# A reduction whose dimensions are simplified.
cdef struct Reduction:
    const Entry* entry
    int state_size              # bytes of a partial result
    const Space* kept           # strides of the input and the output
    const Space* reduced        # strides of the input and of logical indices
    bint empty                  # nothing is reduced
    const Finish* finish

# One launch of a reduction.
cdef struct ReduceLaunch:
    Launch launch
    Reduce params
    int itemsize, items         # bytes of an element of the input; elements of a vector
    unsigned int num_parts

# `operands` are the output and the input, whose elements have `itemsize` bytes, or are states with
# `states`.
cdef void begin(ReduceLaunch* self, const Reduction* reduction, const Operand* operands,
                bint states) noexcept
# Set the dimensions of a space from `first` on; False if a kernel cannot take them.
cdef bint put_dims(Outer2* outer, unsigned int* count, const Space* space, int first) noexcept
# Choose variant, grid, block and parameters; False if they do not fit.
cdef bint choose(ReduceLaunch* self, const Reduction* reduction) noexcept
# Choose the same for states, part by part.
cdef bint choose_parts(ReduceLaunch* self, const Reduction* reduction) noexcept
