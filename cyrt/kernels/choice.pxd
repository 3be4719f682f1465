# How the kernels of kernels_cu are launched: which variant, grid, block and parameters.
#
# INVARIANTS
# - The parameters are the structs of kernels_cu, byte for byte; what pads them is zero.
# - Grids are one-dimensional, so the limit of 65,535 is never met; what exceeds a grid, or 32-bit
#   counts of rows and columns, does not fit and is split by the caller.

from cyrt.graph.recording cimport Geometry
from cyrt.kernels.space cimport Space
from cyrt.kernels.entries cimport Entry, Operand

cdef enum:
    PARAM_BYTES = 512
    SMALL = 1 << 20         # vectors that the ALIGNED kernel takes at most
    VALUE = 4               # flag of kernels_cu/elementwise.cu: the first input is a number

# Kernels of an elementwise family, and of the tiled transpose, in the order of Row.kernels.
cdef enum Variant:
    DENSE = 0
    STRIDED = 1
    ALIGNED = 2
    TILED = 0
    TILED_WIDE = 1

cdef struct Choice:
    Entry* entry
    int variant
    Geometry geometry
    char[PARAM_BYTES] params

# All operands contiguous but the inputs in `broadcast`, of one element; n is at least 1. Below
# also: False where it does not fit.
cdef bint choose_dense(Choice* choice, const Operand* operands, const long long* offsets,
                       long long n, unsigned int broadcast) noexcept
# The geometry and the variant of n elements in whole vectors, all aligned; the parameters are the
# inputs' addresses, the output's, n over the elements of a vector, and flags.
cdef void choose_aligned(Choice* choice, long long n) noexcept
# Whether the entry has a kernel for that.
cdef inline bint takes_aligned(const Entry* entry, long long n) noexcept:
    return entry.functions[<int>ALIGNED] != NULL and n >> entry.shift < SMALL \
        and n & (entry.items - 1) == 0
# Any space of at least one dimension.
cdef bint choose_strided(Choice* choice, const Operand* operands, const Space* space) noexcept
# A copy whose input is contiguous along the space's dimension `along`, the output along the
# first.
cdef bint choose_tiled(Choice* choice, const Operand* operands, const Space* space,
                       int along) noexcept
# A grid over n elements, of threads that take their items `steps` times.
cdef bint cover(Choice* choice, unsigned long long n, unsigned int steps) noexcept
