# Operations along an axis, for kernels that take contiguous rows.

from cyrt.ndarray cimport Array

# x, dense, with its axis moved to the last place.
cdef Array rows_along(Array x, int axis)
# A view of such rows with the last axis moved back.
cdef Array rows_back(Array rows, int axis)
# A dense array as one row.
cdef Array flat(Array x)
