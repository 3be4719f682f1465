# Elementwise operations: types of operands and results, numbers, broadcasting, `out=` and `where=`.
#
# INVARIANTS
# - No operation writes an operand other than `out`.
# - Arguments are checked, and memory is allocated, before anything is recorded.

from cpython.object cimport PyObject

from cyrt.ndarray cimport Array

# Record an operation on arrays and numbers, at least one array, which are broadcast, and cast to
# the type that it computes in, the condition of a choice to bool. The operands are borrowed.
cdef Array record(int op, int code, int count, PyObject** operands, Array out)
# Apply an operation to one array; to two operands, at least one of them an array: NotImplemented if
# the other is neither an array nor a number. `out` is an Array or None.
cdef object unary(int op, object operand, object out)
cdef object binary(int op, object a, object b, object out)
# These do so while tapes exist, which may follow the operands. They are declared here, so that the
# C compiler does not make them parts of the two above, whose calls would then take longer.
cdef object unary_of_variables(int op, object operand, object out)
cdef object binary_of_variables(int op, object a, object b, object out)
# Choose x1 if the condition is true, otherwise x2.
cdef Array choose_where(object condition, object x1, object x2, int code, Array out)
# 0 for an int in the range of an integer type, -1 for one below it, 1 for one above.
cdef int side_of(int code, object number) except -2
# Return an argument `where` as an Array of bool on x's device; None if all elements count.
cdef Array mask_of(str name, object where, Array x)
cdef int refuse_argument(str name, object value) except -1
