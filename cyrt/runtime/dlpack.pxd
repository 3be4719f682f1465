# Declarations of dlpack.h, DLPack 1.3 (github.com/dmlc/dlpack). No wheel contains that header.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept

cdef struct DLManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor dl_tensor

# The C exchange API: a capsule of a type's `__dlpack_c_exchange_api__`. The functions need the GIL,
# wait for no stream, and return 0, or another number with an exception set. The last but one may be
# NULL. What it tells is valid while the object is not changed.
cdef struct DLPackExchangeAPI:
    uint32_t major
    uint32_t minor
    DLPackExchangeAPI* previous     # the functions of an older version; NULL: none
    void* allocate
    int (*managed_tensor_from_py_object)(void*, DLManagedTensorVersioned**) noexcept
    int (*managed_tensor_to_py_object)(DLManagedTensorVersioned*, void**) noexcept
    int (*dltensor_from_py_object)(void*, DLTensor*) noexcept
    int (*current_work_stream)(int, int32_t, void**) noexcept

cdef enum:
    KDL_CPU = 1
    KDL_CUDA = 2
    KDL_CUDA_HOST = 3
    KDL_CUDA_MANAGED = 13
    DLPACK_FLAG_READ_ONLY = 1
    DLPACK_FLAG_COPIED = 2
    KDL_INT = 0
    KDL_UINT = 1
    KDL_FLOAT = 2
    KDL_BFLOAT = 4
    KDL_COMPLEX = 5
    KDL_BOOL = 6
