# Shapes of Python code, and the limit of their number of elements.

# Return a shape, an int or an iterable of ints, as a tuple.
cdef tuple tuple_of_shape(object shape)
# Read sizes from an int or an iterable; errors name the argument. Return their number.
cdef int dims_of(object shape, long long* dims) except -1
# Read the sizes of a tuple. With `unknown`, which is -1, one size may be -1: it is set to 1, and
# `unknown` to its dimension.
cdef int read_sizes(tuple shape, long long* dims, int* unknown) except -1
# Raise a ValueError for a shape of more elements than an array may have.
cdef int check_size(int ndim, const long long* dims) except -1
# Raise that error.
cdef int refuse_size(int ndim, const long long* dims) except -1

cdef extern from *:
    """
    #define CYRT_MOST_ELEMENTS (1LL << 58)
    """
    const long long MOST "CYRT_MOST_ELEMENTS"
    bint __builtin_mul_overflow(long long a, long long b, long long* product) noexcept

# Return whether so many elements times a size other than 0 are within the limit.
cdef inline bint multiply(long long* count, long long size) noexcept:
    return not __builtin_mul_overflow(count[0], size, count) and count[0] <= MOST
