# C-level functions only: see cupy_arrays.pxd.
"""CuPy's arrays, described by their attributes as DLPack's C exchange API describes tensors."""

import sys

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from cyrt.runtime.dlpack cimport (
    DLPackExchangeAPI, DLTensor, KDL_BFLOAT, KDL_BOOL, KDL_COMPLEX, KDL_CUDA, KDL_FLOAT, KDL_INT,
    KDL_UINT,
)

cdef enum:
    MOST_NDIM = 64
    UNKNOWN = 255           # the code of an element type that DLPack does not have

cdef DLPackExchangeAPI functions
cdef int64_t[MOST_NDIM] shape, strides          # those of the array that was described last
cdef dict codes = {"i": KDL_INT, "u": KDL_UINT, "f": KDL_FLOAT, "c": KDL_COMPLEX, "b": KDL_BOOL}
cdef dict types = {}                            # code and bits of each dtype that was met
cdef object get_current_stream


cdef tuple type_of(dtype):
    cdef tuple found = types.get(dtype)
    if found is None:
        code = KDL_BFLOAT if dtype.name == "bfloat16" else codes.get(dtype.kind, UNKNOWN)
        found = types[dtype] = code, 8 * dtype.itemsize
    return found


cdef int describe(void* value, DLTensor* tensor) except -1:
    cdef object array = <object>value, data = array.data
    cdef tuple dims = array.shape, steps = array.strides, element = type_of(array.dtype)
    cdef int i, ndim = len(dims), itemsize = element[1] // 8
    cdef int64_t step
    if ndim > MOST_NDIM:
        raise BufferError(f"the array has {ndim} dimensions")
    for i in range(ndim):
        shape[i], step = dims[i], steps[i]
        if itemsize == 0 or step % itemsize:
            raise BufferError(f"the array's stride of {step} bytes is not a multiple of its "
                              f"element's {itemsize}")
        strides[i] = step // itemsize
    memset(tensor, 0, sizeof(DLTensor))
    tensor.data = <void*><size_t>data.ptr
    tensor.device.device_type, tensor.device.device_id = KDL_CUDA, data.device_id
    tensor.dtype.code, tensor.dtype.bits = element[0], element[1]
    tensor.dtype.lanes = 1
    tensor.ndim, tensor.shape, tensor.strides = ndim, shape, strides
    return 0


cdef int current_stream(int kind, int32_t ordinal, void** handle) except -1:
    handle[0] = <void*><size_t>get_current_stream(ordinal).ptr
    return 0


cdef const DLPackExchangeAPI* functions_of_cupy(type cls) except? NULL:
    global get_current_stream
    for each in cls.__mro__:
        if each.__module__ == "cupy" and each.__name__ == "ndarray":
            get_current_stream = sys.modules["cupy"].cuda.get_current_stream
            functions.dltensor_from_py_object = <int (*)(void*, DLTensor*) noexcept><void*>describe
            functions.current_work_stream = \
                <int (*)(int, int32_t, void**) noexcept><void*>current_stream
            return &functions
    return NULL
