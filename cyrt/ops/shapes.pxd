# Other shapes over the same memory: every function gives a view where strides allow.
#
# INVARIANTS
# - Nothing is launched but by reshape, where no view is possible.

from cyrt.ndarray cimport Array

# An Array; TypeError names what was given instead.
cdef Array array_of(object x)
# An axis counted from 0; numpy.exceptions.AxisError where there is none of that number.
cdef int axis_at(object axis, int ndim) except -1
# Axes counted from 0, each once: all for None. Returns how many.
cdef int axes_at(object axis, int ndim, int* axes) except -1
# ValueError for more dimensions than an array may have.
cdef int check_ndim(long long ndim) except -1
# x with another shape of as many elements: a view where strides allow and no copy is asked for.
cdef Array reshaped(Array x, int ndim, const long long* dims, bint copy)
# Part of x along an axis.
cdef Array narrowed(Array x, int axis, long long start, long long length)
cdef void contiguous_steps(int ndim, const long long* dims, long long* steps) noexcept
# a * b elements; ValueError beyond what memory can hold.
cdef long long times(long long a, long long b) except -1
# a + b elements; ValueError beyond what memory can hold.
cdef long long plus(long long a, long long b) except -1
