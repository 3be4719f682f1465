# An operand of a built-in operation: memory with strides, or a number.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr

cdef struct Operand:
    PyObject* buffer            # a Buffer, borrowed; NULL: the input is the number in `value`
    CUdeviceptr address         # where the element with index 0 is
    const long long* strides    # elements to the next index, one a dimension; NULL: contiguous
    unsigned long long[2] value
