# How the kernels of sort.cu are launched.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Operand

# As KeyOrder of kernels_cu/include/sort_key.cuh.
cdef struct KeyOrder:
    unsigned long long if_negative, if_positive, magnitude, largest, reverse

# The order of an element type; TypeError for a complex one.
cdef int key_order(KeyOrder* order, int dtype, bint descending) except -1
# The unsigned type of an element's size, whose kernels serve it.
cdef int key_type(int dtype) except -1
# Sorts `rows` rows of n elements, stable: operand 1 into operand 0, both contiguous. With `places`
# operand 0 gets the places that elements come from within their row, int64.
cdef int record_sort(Recorder encoder, int dtype, const Operand* operands, long long rows,
                     long long n, bint places, bint descending) except -1
