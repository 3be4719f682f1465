# Memory that a kernel uses: its pointer arguments, and the memory declared in `reads=`, `writes=`.

from libc.stdint cimport int64_t

from cyrt.graph.recording cimport Use
from cyrt.kernels.packing cimport Param
from cyrt.runtime.dlpack cimport DLDataType, DLTensor, KDL_BOOL
from cyrt.runtime.memory cimport OTHER_TYPE, Memory
from cyrt.runtime.state cimport Block

cdef extern from *:
    bint __builtin_mul_overflow(long long, long long, long long*) noexcept

# True if a value for an 8-byte parameter of unknown kind (pointer or integer) is a pointer.
cdef bint is_memory(object value)
# Sets which arrays a pointer accepts. `fit` is a jit.signature.Elements, or None for all arrays.
cdef int set_checks(Param* param, object fit, bint strided) except -1
# True if the memory may not fit, so that check_array has to be called.
cdef inline bint is_doubtful(const Param* param, Memory memory) noexcept:
    return ((memory.traits & param.refused) | ((memory.address | memory.size) & param.coarse)) != 0
# Raises TypeError or ValueError if an array does not fit. `description` is the dtype, shape and
# strides of another library's array; with None they are read from the Array.
cdef int check_array(const Param* param, Memory memory, tuple description) except -1
cdef enum:
    CODES = KDL_BOOL + 1
# The traits of element types, by DLPack's code and the bytes of an element.
cdef unsigned int[CODES][17] dtype_traits

# Whether a tensor is C-contiguous; `size` is set to its bytes.
cdef inline bint is_plain(const DLTensor* tensor, size_t* size) noexcept:
    cdef const int64_t* shape = tensor.shape
    cdef const int64_t* strides = tensor.strides
    cdef long long count = 1
    cdef int i = tensor.ndim
    if i < 0 or (i and shape == NULL) or tensor.dtype.lanes != 1 or tensor.dtype.bits & 7:
        return False
    while i > 0 and count:
        i -= 1
        if shape[i] == 1:
            continue
        # The bytes of fewer than 1 << 58 elements are a number of 64 bits.
        if strides != NULL and strides[i] != count or shape[i] < 0 \
                or __builtin_mul_overflow(count, shape[i], &count) or count >> 58:
            return False
    size[0] = <size_t>count * (tensor.dtype.bits >> 3)
    return True
# The trait of an element type; OTHER_TYPE: cyrt has no such type.
cdef inline unsigned int traits_of_type(const DLDataType* element) noexcept:
    if element.code < CODES and element.bits <= 128 and element.lanes == 1:
        return dtype_traits[element.code][element.bits >> 3]
    return OTHER_TYPE
# The checked memory of a pointer argument that is neither an Array nor a Buffer of cyrt.
cdef Memory pointer_argument(object value, const Param* param)
# Raises the error for memory of one device that is passed to a kernel on another device.
cdef object wrong_device(const Block* block, int ordinal)
# [(Buffer, True if it is written)] from `reads=` and `writes=`; None if both are absent.
cdef list declared_memory(str name, reads, writes)
# Adds them to a launch's foreign Buffers (or None) and uses. Returns both; the uses as a count.
cdef tuple use_declared(str name, list declared, int ordinal, list foreign, Use* uses, int count)
# The Buffers that a launch writes, as far as its arguments and `writes=` show.
cdef list written_memory(str name, const Param* params, tuple args, reads, writes)
