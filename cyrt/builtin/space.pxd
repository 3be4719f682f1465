# Index spaces: shapes and strides of an operation's operands, simplified before the launch.
#
# INVARIANTS
# - Dimensions are stored innermost first. The output's strides are positive and ascend.
# - No dimension has size 1, and no two neighbouring dimensions can be merged.

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

cdef enum:
    MAX_NDIM = 64           # the most dimensions of an operand
    MAX_OPERANDS = 4        # the output and up to three inputs
    MAX_NUMERATOR = 0x7fffffff      # the greatest number that a Divider divides

cdef struct Space:
    int ndim
    int operands
    long long[MAX_NDIM] shape
    long long[MAX_NDIM][MAX_OPERANDS] strides   # all in elements
    long long[MAX_OPERANDS] offsets             # each operand's first element

cdef extern from "params/space.h" nogil:
    enum: MAX_OUTER         # the most dimensions of a kernel's space other than the innermost
    cdef struct Divider:
        unsigned int size, multiplier, shift
    cdef struct Outer2:
        Divider dims[MAX_OUTER]
        long long strides[MAX_OUTER][2]
    cdef struct Outer3:
        Divider dims[MAX_OUTER]
        long long strides[MAX_OUTER][3]
    cdef struct Outer8:
        Divider dims[MAX_OUTER]
        long long strides[MAX_OUTER][8]
    cdef struct Source:
        unsigned long long word[2]

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept

# The division of a kernel by a size: see params/space.h.
cdef inline Divider divider(unsigned int size) noexcept:
    cdef Divider result
    result.size = size
    result.shift = 64 - __builtin_clzll(size - 1) if size > 1 else 0
    result.multiplier = <unsigned int>(
        (((<unsigned long long>1 << result.shift) - size) << 32) // size + 1)
    return result
# `strides[i]` are those of each operand, the output's first; NULL: contiguous in the shape.
cdef void simplify(Space* space, int operands, int ndim, const long long* shape,
                   const long long** strides) noexcept
# Set `part`, which begins as a copy of the whole space, to the next part of one that a launch
# cannot take: one for each index of the outermost dimension if there are too many dimensions;
# otherwise two halves. `done` begins as 0; False: there are no more.
cdef bint next_part(Space* part, const Space* whole, long long* done) noexcept

# Return the product of sizes `first` to `last` - 1.
cdef inline long long product_of(const long long* sizes, int first, int last) noexcept:
    cdef long long result = 1
    cdef int d
    for d in range(first, last):
        result *= sizes[d]
    return result

# Return sizes as a tuple.
cdef inline tuple tuple_of_sizes(int ndim, const long long* sizes):
    cdef tuple found = PyTuple_New(ndim)
    cdef object size
    cdef int d
    for d in range(ndim):
        size = sizes[d]
        Py_INCREF(size)         # the tuple has the reference
        PyTuple_SET_ITEM(found, d, size)
    return found
