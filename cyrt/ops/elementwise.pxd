# Operations element by element: broadcasting, promotion, `out=`.
#
# INVARIANTS
# - No operation writes an operand that it was not told to write.
# - Everything is checked, and memory taken, before anything is recorded.

from cyrt.ndarray cimport Array

cdef Array unary(int op, Array x, Array out)
# NotImplemented where an operand is neither an array nor a number.
cdef object binary(int op, object a, object b, Array out)
# Any number of operands, cast to `types`, computed in `code`; `result` is the type that it gives.
cdef Array perform(int op, int code, int result, list operands, list types, Array out)
# Element type that an operation gives of a type; -1: there is no kernel.
cdef int result_code(int op, int code) noexcept
# Of an int: 0 in the range of an integer type, -1 below it, 1 above.
cdef int side_of(int code, object number) except -2
# `out`, where a result of that type and shape may be written into it; TypeError, ValueError.
cdef Array check_out(str name, object out, int code, int ndim, const long long* dims)
cdef int check_out_type(str name, object out) except -1
cdef int refuse_type(int op, int code) except -1
cdef int refuse_operand(str name, object value) except -1
cdef int refuse_argument(str name, object value) except -1
