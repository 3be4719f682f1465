# Sorting of rows: the launches of sort.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/sort_key.h" nogil:
    cdef struct KeyOrder:
        unsigned long long if_negative, if_positive, magnitude, largest, reverse

# Set the order of an element type; TypeError for a complex one.
cdef int key_order(KeyOrder* order, int dtype, bint descending) except -1
# Return the unsigned type of an element's size, which the kernels sort.
cdef int key_type(int dtype) except -1
# Record a stable sort of `rows` rows of n elements: operand 1 into operand 0, both contiguous.
# With `indices` operand 0 receives the elements' indices within their row before the sort, int64.
cdef int record_sort(Recorder encoder, int dtype, const Operand* operands, long long rows,
                     long long n, bint indices, bint descending) except -1
