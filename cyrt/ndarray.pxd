# The n-d array: shape, strides and element type of a block of memory.
#
# INVARIANTS
# - The memory that an array views, its shape and its strides never change: operations return new
#   arrays.
# - Every element is within the block: views are derived from arrays by steps that stay inside.
# - An array has at most 2**58 elements, also a view whose elements share memory: its bytes, up to
#   16 per element, and its offsets stay within 64 bits. Sizes of 0 are left out of the product, so
#   that the limit does not depend on the order of the dimensions. New arrays are checked;
#   functions whose views may have more elements than their source call check_size.
# - A view whose elements share memory is READ_ONLY, and so is every view of it: what writes to an
#   array that the user passes calls check_writable (ops/copy), or is a kernel whose parameter
#   refuses it. `view_of` inherits the trait and finds stride 0; windows, diag and views of
#   other libraries' arrays set it.
# - cyrt/ops implements assignment: ops/seam sets the pointer to it on import.

cimport cython
from cpython.object cimport PyObject

from cyrt.builtin.operand cimport Operand
from cyrt.operators cimport Operators
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport StreamState

cdef enum:
    INLINE = 4                  # dimensions kept in the object itself


@cython.no_gc
cdef class Array(Operators):    # `address` is that of the element with index 0
    cdef int code               # element type: index in cyrt.dtypes.DTYPES
    cdef int ndim_
    cdef bint dense             # contiguous in C order
    cdef long long count        # elements
    cdef long long* dims        # shape
    cdef long long* steps       # strides in elements
    cdef long long[2 * INLINE] room

# Bytes of an element, by code.
cdef int[32] itemsizes

# Allocate an uninitialised dense array in memory of the device's current stream, or of that
# stream.
cdef Array new_array(int ordinal, int code, int ndim, const long long* dims)
cdef Array new_array_on(StreamState* stream, int code, int ndim, const long long* dims)
# Return such an array without memory, and give it memory of the stream. The second function takes
# the shape of another dense array.
cdef Array unallocated(int code, int ndim, const long long* dims)
cdef Array unallocated_like(int code, Array x)
cdef int give_memory(Array x, StreamState* stream) except -1
# Return a view of an array or of other memory; `offset` is in elements of `code` from the first
# byte.
cdef Array view_of(Memory memory, int code, int ndim, const long long* dims,
                   const long long* steps, long long offset)
# Return the device of the memory.
cdef int device_of(Array x) except -1
cdef inline void set_operand(Operand* operand, Array x) noexcept:
    operand.buffer = <PyObject*>x
    operand.address = x.address
    operand.strides = NULL if x.dense else x.steps
cdef inline bint has_shape(Array x, int ndim, const long long* dims) noexcept:
    cdef int d
    if x.ndim_ != ndim:
        return False
    for d in range(ndim):
        if x.dims[d] != dims[d]:
            return False
    return True
# Return whether two arrays may share bytes.
cdef bint overlaps(Array a, Array b) noexcept
# Return whether no two elements share memory: each step leads beyond what all shorter ones reach
# together.
cdef bint are_apart(Array x) noexcept
cdef tuple shape_of(Array x)
# Return x itself if it is dense, otherwise a dense copy.
cdef Array as_contiguous(Array x)
