# The operators and methods of arrays, and the functions that they call.
#
# INVARIANTS
# - The functions are in higher layers: cyrt/ops sets the pointers when it is imported, and
#   cyrt/methods.py binds each attribute of `functions` once, with bind(), and makes functions whose
#   signature is the method's methods, with attach().

cimport cython

from cyrt.runtime.memory cimport Memory


@cython.no_gc
cdef class Operators(Memory):
    pass

cdef struct ArrayCalls:
    # Record a binary operation of the catalogue; NotImplemented if an operand is not supported.
    # With `out`, which is the first operand, the operation is in place.
    object (*binary)(int op, object a, object b, object out)
    object (*unary)(int op, object operand, object out)
    # Write a value, broadcast and cast, into all of an Array.
    int (*assign)(object target, object value) except -1
    # These take the arguments of cyrt's functions of the same names, and return their results;
    # the last two also the name that errors begin with.
    object (*matmul)(object a, object b, object out, object dtype)
    object (*reshape)(str name, object x, object shape, object order, object copy)
    object (*permute_dims)(str name, object x, object axes)

cdef ArrayCalls ops
