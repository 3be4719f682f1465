# Type promotion: which element type an operation computes in, and numbers in that type.
#
# INVARIANTS
# - Arrays decide; a Python or NumPy number is weak: only its kind counts, if it is a higher one.

from cyrt.builtin.entry cimport MAX_OPS

cdef enum:
    NUM_DTYPES = 15
    BOOL = 0
    INT64 = 4
    FLOAT32 = 11
    FLOAT64 = 12

cdef char[NUM_DTYPES] kinds             # "b", "i", "u", "f", "c"
cdef int[NUM_DTYPES][NUM_DTYPES] promoted   # -1: the two do not promote
# The element type of an operation's result for an operand type; -1: there is no kernel.
cdef signed char[MAX_OPS][NUM_DTYPES] outputs

# Raise the TypeError of a type for which an operation has no kernel.
cdef int refuse_type(int op, int code) except -1
# Return the promoted type of two types; TypeError names them.
cdef int promote(int a, int b) except -1
# Return the promoted type of an array's type and a weak number.
cdef int promote_number(int code, object value) except -1
# The default type of a number.
cdef int code_of_number(object value) except -1
# Return whether values of a type may be written into the other without a change of kind.
cdef bint same_kind(int code, int target) noexcept
cdef bint is_number(object value)
# Convert a NumPy number to a Python number.
cdef object python_number(object value)
# Write the number as an element in memory, in 16 bytes. OverflowError: an int out of range.
cdef int put_number(int code, object value, unsigned long long* bits) except -1
