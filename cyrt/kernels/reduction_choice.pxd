# How the kernels of kernels_cu/reduce.cu are launched: which variant, grid, block and parameters.
#
# INVARIANTS
# - The parameters are the struct Reduce of kernels_cu/reduce.cu, byte for byte; what pads them is
#   zero.
# - Grid and block follow from shape, strides and alignment alone: equal inputs give equal bits.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.space cimport MAX_OUTER, Divider, Space
from cyrt.kernels.entries cimport Entry, Operand

# Kernels, in the order of Row.kernels.
cdef enum ReduceVariant:
    ROWS = 0
    COLUMNS = 1
    PARTS = 2

# What a reduction does besides.
cdef struct Finish:
    double divisor      # of a sum (a mean), of a variance; 1 for none
    bint root           # of a variance

# Outer<2> of kernels_cu/include/strided.cuh.
cdef struct Outer:
    Divider[MAX_OUTER] dims
    long long[MAX_OUTER][2] strides

# Reduce of kernels_cu/reduce.cu; its padding is explicit here.
cdef struct Reduce:
    CUdeviceptr input, output
    long long kept_inner
    long long[2] kept_strides
    long long units
    long long[2] row_strides
    long long tail, place, rows, part_rows, part_units, outputs
    double divisor
    Outer kept, reduced
    unsigned int num_kept, num_reduced, lanes, flags
    Divider parts, unit_parts, chunks
    unsigned int padding

# One launch: of a reduction whose dimensions are simplified.
cdef struct Launch:
    const Entry* entry
    const Operand* operands     # the output, the input
    const Space* kept           # strides of the input and the output
    const Space* reduced        # strides of the input and of logical indices
    bint empty                  # nothing is reduced
    int variant
    int itemsize, items         # of the input; elements of a vector
    unsigned int num_parts
    Geometry geometry
    Reduce params

cdef void begin_launch(Launch* launch, const Entry* entry, const Operand* operands,
                       const Space* kept, const Space* reduced, bint empty, int itemsize,
                       int items, const Finish* finish) noexcept
# Dimensions of a space from `first` on, as a kernel has them; False where it cannot.
cdef bint put_dims(Outer* outer, unsigned int* count, const Space* space, int first) noexcept
# Variant, grid, block and parameters; False where it does not fit.
cdef bint choose(Launch* launch) noexcept
# Of states, part by part.
cdef bint choose_parts(Launch* launch) noexcept
