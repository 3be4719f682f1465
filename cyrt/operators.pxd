# What an array's operators and methods call.
#
# INVARIANTS
# - What they do is cyrt/ops': it puts itself into the pointers and the namespace here when it is
#   imported.

cimport cython

from cyrt.runtime.memory cimport Memory


@cython.no_gc
cdef class Operators(Memory):
    pass

# A binary operation of the catalogue; NotImplemented where an operand is not for arrays. With
# `target`, which is the first operand, in place.
cdef object (*apply_binary)(int op, object a, object b, object target)
cdef object (*apply_unary)(int op, object x)
