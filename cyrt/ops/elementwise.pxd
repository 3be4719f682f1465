# Operations element by element: broadcasting, promotion, `out=`.
#
# INVARIANTS
# - No operation writes an operand that it was not told to write.
# - Everything is checked, and memory taken, before anything is recorded.

from cyrt.ndarray cimport Array

cdef Array unary(int op, Array x, Array out)
# NotImplemented where an operand is neither an array nor a number.
cdef object binary(int op, object a, object b, Array out)
# `out`, where a result of that type and shape may be written into it; TypeError, ValueError.
cdef Array check_out(str name, object out, int code, int ndim, const long long* dims)
