# Operations along an axis, for kernels that take contiguous rows.

from cyrt.ndarray cimport Array

# Return a view with an axis moved to another position.
cdef Array move_axis(Array x, int axis, int to)
# Return x, dense, with its axis moved to the last position.
cdef Array axis_last(Array x, int axis)
# Return such rows, dense, with the last axis moved back: new results are C-contiguous, as NumPy's.
cdef Array axis_back(Array rows, int axis)
# Return a dense array as one row.
cdef Array flat(Array x)
