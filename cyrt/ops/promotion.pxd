# Which element type an operation computes in, and numbers in it.
#
# INVARIANTS
# - Arrays decide; a Python or NumPy number is weak: only its kind counts, where it is a higher one.

cdef enum:
    NUM_DTYPES = 15
    BOOL = 0
    INT64 = 4
    FLOAT32 = 11
    FLOAT64 = 12

cdef char[NUM_DTYPES] kinds             # "b", "i", "u", "f", "c"
cdef int[NUM_DTYPES][NUM_DTYPES] promoted   # -1: the two do not promote

# The type of both; TypeError names them.
cdef int promote(int a, int b) except -1
# The type of an array's type and a weak number.
cdef int promote_number(int code, object value) except -1
# The default type of a number.
cdef int code_of_number(object value) except -1
# Whether values of a type may be written into the other without a change of kind.
cdef bint same_kind(int code, int target) noexcept
cdef bint is_number(object value)
# A Python number for a NumPy one.
cdef object plain(object value)
# The number as an element lies in memory, in 16 bytes. OverflowError: an int out of range.
cdef int put_number(int code, object value, unsigned long long* bits) except -1
