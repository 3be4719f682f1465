# Arrays as rows for kernels: rows along the last axis, at equal distances in memory.

from cyrt.builtin.row_grid cimport Rows
from cyrt.ndarray cimport Array

# Set the number and the length of x's rows.
cdef void count_rows(Rows* rows, Array x) noexcept
# Return x if the elements of each row are contiguous and rows are evenly spaced; otherwise a dense
# copy. Set the distance of rows in elements.
cdef Array spaced_rows(Array x, long long* step)
# Return whether a kernel that reads the operand row by row may write the target: elements that they
# share have one index in both. None: there is no operand.
cdef bint is_replaceable(Array target, Array operand) noexcept
# Return whether a result may be written into x, each element on its own, and into rows of it.
cdef bint takes_rows(Array x, long long* step) noexcept
# Return an argument of an operation, if it is an Array; otherwise raise a TypeError.
cdef Array array_of(int op, str argument, object x)
# Raise a TypeError if the operation has no kernel for x's type, a ValueError if x has no axis.
cdef int check_rows(int op, str argument, Array x) except -1
# Raise a TypeError if an argument differs from another, x, in type.
cdef int check_type(int op, str argument, Array other, str first, Array x) except -1
# Raise an error if an argument differs from another, x, in type or shape.
cdef int check_alike(int op, str argument, Array other, str first, Array x) except -1
