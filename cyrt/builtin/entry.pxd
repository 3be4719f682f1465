# The table of loaded kernels.
#
# INVARIANTS
# - A table at [operation, element type] holds a kernel's data for launches: one indexed load.
# - A kernel is loaded, and its parameters are checked, before its first launch is recorded.

from cpython.object cimport PyObject

from cyrt.builtin.space cimport MAX_OPERANDS
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.device cimport contexts

cdef enum:
    VARIANTS = 20           # the most kernels of a row
    MAX_OPS = 256           # the most operations
    MAX_DTYPES = 16         # the most element types
    WIDEST = 16             # bytes of an element of the widest type

# The launch data of an operation on an element type.
cdef struct Entry:
    PyObject* functions[VARIANTS]   # LoadedFunction, in the order of Row.kernels
    unsigned int epoch              # the context's epoch plus 1
    int num_inputs
    int items, shift                # elements in a vector of the widest type: 1 << shift
    int[MAX_OPERANDS] itemsizes     # bytes of an element; the output's come first

# Return the code of an operation of the catalogue, or of an element type; ValueError, TypeError.
cdef int op_code(str name) except -1
cdef int dtype_code(str name) except -1
# The code of the type whose kernels copy elements of 1, 2, 4, 8 or 16 bytes.
cdef int[WIDEST + 1] type_of_size
# The entries of each device; NULL: none was loaded.
cdef Entry* tables[MAX_DEVICES]
# Return the kernels of an operation on a type on a device; they are loaded at first use.
cdef inline Entry* entry_of(int ordinal, int op, int dtype) except NULL:
    cdef Entry* entry = tables[ordinal]
    if entry != NULL:
        entry += op * MAX_DTYPES + dtype
        if entry.epoch == contexts[ordinal].epoch + 1:
            return entry
    return load_entry(ordinal, op, dtype)
cdef Entry* load_entry(int ordinal, int op, int dtype) except NULL
