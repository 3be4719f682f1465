# Selection of elements by masks.

from cyrt.ndarray cimport Array

# Return the flat positions, in C order, at which a bool array is true: int64, one dimension.
cdef Array positions_where(Array mask)
# Return x's elements at which a bool array of its shape is true: one dimension.
cdef Array select_where(Array x, Array mask)
