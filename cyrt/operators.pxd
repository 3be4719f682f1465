# The operators and methods of arrays, and the functions that they call.
#
# INVARIANTS
# - The functions are in higher layers: cyrt/ops sets the two pointers when it is imported, and
#   cyrt/methods.py binds each attribute of `functions` once, with bind().

cimport cython

from cyrt.runtime.memory cimport Memory


@cython.no_gc
cdef class Operators(Memory):
    pass

cdef struct ArrayCalls:
    # Record a binary operation of the catalogue; NotImplemented if an operand is not supported.
    # With `target`, which is the first operand, the operation is in place.
    object (*binary)(int op, object a, object b, object target)
    object (*unary)(int op, object x)
    # Write a value, broadcast and cast, into all of an Array.
    int (*assign)(object target, object value) except -1

cdef ArrayCalls ops
