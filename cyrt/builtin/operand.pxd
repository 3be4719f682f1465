# An operand of a built-in operation: memory with strides, or a number.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr

cdef struct Operand:
    PyObject* buffer            # a Buffer, borrowed; NULL: the input is the number in `value`
    CUdeviceptr address         # of the element with index 0
    const long long* strides    # in elements, one a dimension; NULL: contiguous in the shape
    unsigned long long[2] value
