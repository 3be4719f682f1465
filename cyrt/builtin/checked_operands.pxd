# Operands of elementwise operations over Buffers, checked against shape and strides.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM, MAX_OPERANDS

cdef class CheckedOperands:
    cdef Operand[MAX_OPERANDS] operands         # they have no memory before `put`
    cdef long long[MAX_NDIM] shape
    cdef long long[MAX_OPERANDS][MAX_NDIM] strides
    cdef int ndim
    cdef object row             # the catalogue's row

    # Set operand i: a Buffer, a Buffer and its first element, or a number of a type.
    cdef int put(self, int i, object value, str dtype) except -1
