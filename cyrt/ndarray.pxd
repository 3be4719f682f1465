# The n-d array: shape, strides and element type over memory.
#
# INVARIANTS
# - An array never changes what it is a view of, nor its shape and strides: operations make new
#   ones.
# - Every element lies within the block: views are made from arrays by steps that stay inside.
# - An array has 2**58 elements at most, also a view whose elements share memory: its bytes, up to
#   16 an element, and its offsets stay within 64 bits. The product leaves sizes of 0 out, so that
#   every order of the same dimensions is an array, or none is. New arrays are checked; views that
#   may have more elements than what they are made from call check_size.
# - What assignment does is cyrt/ops': it puts itself into the pointer below on import.

cimport cython
from cpython.object cimport PyObject

from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand
from cyrt.operators cimport Operators
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport StreamState

cdef enum:
    INLINE = 4                  # dimensions kept in the object itself


@cython.no_gc
cdef class Array(Operators):    # `address` is that of the element whose indices are all 0
    cdef int code               # element type: index in cyrt.dtypes.DTYPES
    cdef int ndim_
    cdef bint dense             # contiguous in C order
    cdef long long count        # elements
    cdef long long* dims        # shape
    cdef long long* steps       # strides in elements
    cdef long long[2 * INLINE] room

# Bytes of an element, by code.
cdef int[32] itemsizes

# Uninitialised and dense; memory of the device's current stream, or of that stream.
cdef Array new_array(int ordinal, int code, int ndim, const long long* dims)
cdef Array new_array_on(StreamState* stream, int code, int ndim, const long long* dims)
# A view; `offset` in elements of `code` from x's first.
cdef Array view_of(Array x, int code, int ndim, const long long* dims, const long long* steps,
                   long long offset)
# An array over memory, or a part of it, that something else owns.
cdef Array array_over(Memory memory, int code, int ndim, const long long* dims,
                      const long long* steps, long long offset)
# ValueError for a shape of more elements than an array may have.
cdef int check_size(int ndim, const long long* dims) except -1
# The device whose memory it is.
cdef int device_of(Array x) except -1
cdef int set_operand(Operand* operand, Array x) except -1
# Whether they may share bytes.
cdef bint overlaps(Array a, Array b) noexcept
cdef tuple shape_of(Array x)
# x itself where it is dense, else a dense copy.
cdef Array densed(Array x)
# Sizes given as an int or a sequence; ValueError names `what`. Returns how many.
cdef int dims_of(object shape, long long* dims) except -1

# Writes what is given, broadcast and cast, into all of the target.
cdef int (*assign)(Array target, object value) except -1
