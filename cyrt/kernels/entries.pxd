# The table of loaded kernels, and recording one of them.
#
# INVARIANTS
# - What a launch needs of a kernel lies in a table at [operation, element type]: one indexed load.
# - Code is loaded, and everything checked, before anything is recorded.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.recorder cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.space cimport MAX_OPERANDS

cdef enum:
    VARIANTS = 16           # kernels of a row, at most
    MAX_USES = 8            # operands of a launch, at most
    WHOLE = 1 << 16         # beside the bits of what is written: all elements of operand 0 are

# What a launch needs of an operation on an element type.
cdef struct Entry:
    PyObject* functions[VARIANTS]   # LoadedFunction, in the order of Row.kernels
    unsigned int epoch              # of the device's context, plus 1
    int num_inputs
    int items, shift                # elements a vector of the widest type has: 1 << shift
    int[MAX_OPERANDS] itemsizes     # the output's first

cdef struct Operand:
    PyObject* buffer            # a Buffer, borrowed; NULL: the input is the number in `value`
    CUdeviceptr address         # of the element with index 0
    const long long* strides    # in elements, one a dimension; NULL: contiguous in the shape
    unsigned long long[2] value

# What would be launched, collected instead of recorded.
cdef class Explained:
    cdef list launches          # (kernel, grid, block)

# Codes of an operation of the catalogue, and of an element type; ValueError, TypeError.
cdef int op_code(str name) except -1
cdef int dtype_code(str name) except -1
# The kernels of an operation on a type on a device; loaded at first use.
cdef Entry* entry_of(int ordinal, int op, int dtype) except NULL
# Where their code comes from.
cdef str origin_of(int ordinal, int op, int dtype)
# Records a launch of one of them. `operands`: the memory it uses; bit i of `writes`: operand i is
# written. With `explained` the encoder may be None.
cdef int record_entry(Recorder encoder, const Entry* entry, int variant, const Geometry* geometry,
                      const char* params, const Operand* operands, int count, unsigned int writes,
                      Explained explained) except -1
