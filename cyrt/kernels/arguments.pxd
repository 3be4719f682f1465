# Memory among a kernel's arguments.

from cyrt.runtime.memory cimport Buffer

# Of 8 bytes that may be a pointer or a number: whether a pointer is meant.
cdef bint is_memory(object value)
# What is given for a pointer and is no Buffer of cyrt's.
cdef Buffer pointer_argument(object value, bint writes)
