# How the kernels of kernels_cu are launched: which variant, grid, block and parameters.
#
# INVARIANTS
# - The parameters are the structs of kernels_cu, byte for byte; what pads them is zero.
# - Grids are one-dimensional, so the limit of 65,535 is never met; what exceeds a grid, or 32-bit
#   counts of rows and columns, does not fit and is split by the caller.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.space cimport MAX_OPERANDS, Space

cdef enum:
    PARAM_BYTES = 512

# Kernels of an elementwise family, and of the tiled transpose, in the order of Row.kernels.
cdef enum Variant:
    DENSE = 0
    STRIDED = 1
    TILED = 0
    TILED_WIDE = 1

# What a launch needs of an operation on an element type.
cdef struct Entry:
    # LoadedFunction by Variant
    PyObject* functions[2]
    unsigned int epoch          # of the device's context, plus 1
    int num_inputs
    int items, shift            # elements a thread takes: 1 << shift
    int[MAX_OPERANDS] itemsizes     # the output's first

cdef struct Operand:
    PyObject* buffer            # a Buffer, borrowed; NULL: the input is the number in `value`
    CUdeviceptr address         # of the element with index 0
    const long long* strides    # in elements, one a dimension; NULL: contiguous in the shape
    unsigned long long[2] value

cdef struct Choice:
    Entry* entry
    int variant
    Geometry geometry
    unsigned int nbytes         # of parameters
    char[PARAM_BYTES] params

# Bytes of parameters of a family's variants.
cdef list param_bytes(str family, int inputs)
# All operands contiguous but the inputs in `broadcast`, of one element; n is at least 1. Below
# also: False where it does not fit.
cdef bint choose_dense(Choice* choice, const Operand* operands, const long long* offsets,
                       long long n, unsigned int broadcast) noexcept
# Any space of at least one dimension.
cdef bint choose_strided(Choice* choice, const Operand* operands, const Space* space) noexcept
# A copy whose input is contiguous along the space's dimension `along`, the output along the
# first.
cdef bint choose_tiled(Choice* choice, const Operand* operands, const Space* space,
                       int along) noexcept
# A grid over n elements, of threads that take their items `steps` times.
cdef bint cover(Choice* choice, unsigned long long n, unsigned int steps) noexcept
