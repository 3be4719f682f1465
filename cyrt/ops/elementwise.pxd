# Elementwise operations: types of operands and results, numbers, `out=` and `where=`.

from cyrt.ndarray cimport Array

cdef Array unary(int op, Array x, Array out)
# Return NotImplemented if an operand is neither an array nor a number.
cdef object binary(int op, object a, object b, Array out)
# Choose x1 if the condition is true, otherwise x2.
cdef Array choose_where(object condition, object x1, object x2, int code, Array out)
# The element type of an operation's result for an operand type; -1: there is no kernel.
cdef int result_code(int op, int code) noexcept
# 0 for an int in the range of an integer type, -1 for one below it, 1 for one above.
cdef int side_of(int code, object number) except -2
cdef int check_out_type(str name, object out) except -1
cdef int refuse_type(int op, int code) except -1
cdef int refuse_operand(str name, object value) except -1
cdef int refuse_argument(str name, object value) except -1
# The operators of arrays.
cdef object apply_unary(int op, object x)
cdef object apply_binary(int op, object a, object b, object target)
