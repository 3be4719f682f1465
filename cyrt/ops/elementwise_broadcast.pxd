# Elementwise operations whose operands are broadcast, cast, or written into `out`.
#
# INVARIANTS
# - No operation writes an operand other than `out`.
# - Arguments are checked, and memory is allocated, before anything is recorded.

from cpython.object cimport PyObject

from cyrt.ndarray cimport Array
from cyrt.ops.promotion cimport NUM_DTYPES

cdef enum:
    MAX_OPS = 256

# The element type of an operation's result for an operand type; -1: there is no kernel.
cdef signed char[MAX_OPS][NUM_DTYPES] outputs
# Record an operation on arrays and numbers, at least one array, cast to `types` and computed in
# `code`; `result` is the type of its result. The operands are borrowed.
cdef Array record_broadcast(int op, int code, int result, int count, PyObject** operands,
                            const int* types, Array out)
# Record an operation on two arrays of one type that needs no cast, for example with a bias, a mean
# or a scale of each row, in one loop where `record_broadcast` has several. `out` is None, or x if y
# is x or does not overlap it, and the result has x's type.
cdef Array record_pair(int op, Array x, Array y, Array out)
# Return `out` if it can receive a result of that type, shape and device; TypeError, ValueError.
cdef Array check_out(str name, object out, int code, int ndim, const long long* dims,
                     int ordinal=*)
# Raise the error of an operand on another device than those before it.
cdef int refuse_devices(int op, int operand, int found, int expected) except -1
