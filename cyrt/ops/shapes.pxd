# Other shapes of the same memory: every function returns a view if strides allow.
#
# INVARIANTS
# - Only reshape, and functions of dense arrays, launch a kernel, if no view is possible.

from cyrt.ndarray cimport Array

# Return x if it is an Array; TypeError names the function and the type of any other object.
cdef Array array_of(str name, object x)
# Return an axis counted from 0; numpy.exceptions.AxisError if there is no such axis. The TypeError
# for an object that is no axis begins with `name: argument`, which are joined only then.
cdef int axis_at(object axis, int ndim, str name=*, str argument=*) except -1
# Read axes counted from 0, without duplicates: all for None. Return their number.
cdef int axes_at(object axis, int ndim, int* axes) except -1
# Raise a ValueError for more dimensions than an array may have.
cdef int check_ndim(long long ndim) except -1
# Return x in another shape of as many elements: a view if strides allow and `copy` is not true.
cdef Array reshape_array(Array x, int ndim, const long long* dims, bint copy)
# The functions `reshape` and `permute_dims`; errors begin with the name.
cdef object reshape_to(str name, object x, object shape, object order, object copy)
cdef object permute_axes(str name, object x, object axes)
# Return a view with an axis moved to another position, which no tape records.
cdef Array move_axis(Array x, int axis, int to)
# The same for kernels that take contiguous rows. Return x, dense, with its axis moved to the last
# position; such rows, dense, with the last axis moved back, as NumPy's new results are; a dense
# array as one row.
cdef Array axis_last(Array x, int axis)
cdef Array axis_back(Array rows, int axis)
cdef Array flat(Array x)
# Return a part of x along an axis.
cdef Array narrow_axis(Array x, int axis, long long start, long long length)
cdef void contiguous_steps(int ndim, const long long* dims, long long* steps) noexcept
# Return a * b elements; ValueError beyond the limit of an array.
cdef long long times(long long a, long long b) except -1
# Return a + b elements; ValueError beyond the limit of an array.
cdef long long plus(long long a, long long b) except -1
