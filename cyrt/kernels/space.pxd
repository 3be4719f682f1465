# Index spaces: shapes and strides of an operation's operands, made simple before the launch.
#
# INVARIANTS
# - Dimensions are stored innermost first. The output's strides are positive and ascend.
# - No dimension has size 1, and no two neighbours could be one.

from cyrt.driver.cuda cimport CUdeviceptr

cdef enum:
    MAX_NDIM = 64           # of an operand
    MAX_OPERANDS = 4        # the output and up to three inputs
    MAX_OUTER = 8           # dimensions of a kernel but the innermost

cdef struct Space:
    int ndim
    int operands
    long long[MAX_NDIM] shape
    long long[MAX_NDIM][MAX_OPERANDS] strides   # in elements
    long long[MAX_OPERANDS] offsets             # of the first element, in elements

# Division by a constant, as kernels_cu/include/strided.cuh does it.
cdef struct Divider:
    unsigned int size, multiplier, shift

cdef Divider divider(unsigned int size) noexcept
# `strides[i]` of each operand, the output's first; NULL: contiguous in the shape.
cdef void simplify(Space* space, int operands, int ndim, const long long* shape,
                   const long long** strides) noexcept
