# Arrays as rows for kernels: rows along the last axis, at equal distances in memory.

from cyrt.builtin.row_grid cimport Rows
from cyrt.ndarray cimport Array

# Set the number and the length of x's rows.
cdef void count_rows(Rows* rows, Array x) noexcept
# Return x if the elements of each row are contiguous and rows are evenly spaced; otherwise a dense
# copy. Set the distance of rows in elements.
cdef Array spaced_rows(Array x, long long* step)
# Return whether a kernel that reads each row of the operand before it writes that row of the target
# may do so: they share no memory, or have one layout. None: there is no operand.
cdef bint may_overwrite(Array target, Array operand) noexcept
# Return whether x's elements share no memory, and its rows are contiguous and evenly spaced; set
# the distance of rows in elements.
cdef bint writable_rows(Array x, long long* step) noexcept
# Return an argument of an operation, if it is an Array; otherwise raise a TypeError.
cdef Array array_of(int op, str argument, object x)
# Raise a TypeError if the operation has no kernel for x's type, a ValueError if x has no axis.
cdef int check_rows(int op, str argument, Array x) except -1
# Return a bool, Python's or NumPy's; raise a TypeError if an argument is something else.
cdef bint bool_of(str name, str argument, object value) except -1
# Raise an error if an argument differs from another, x, in type or device.
cdef int check_type(int op, str argument, Array other, str first, Array x) except -1
# Raise an error if an argument differs from another, x, in type, device or shape.
cdef int check_alike(int op, str argument, Array other, str first, Array x) except -1
