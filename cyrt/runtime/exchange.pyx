# C-level functions only: see exchange.pxd.
"""Export of memory to other libraries: DLPack and the CUDA array interface."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free

from cyrt.driver.cuda cimport CUstream
from cyrt.error_text import show
from cyrt.runtime.dlpack cimport (
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_COPIED, DLPACK_FLAG_READ_ONLY, DLTensor,
    KDL_BFLOAT, KDL_BOOL, KDL_COMPLEX, KDL_CUDA, KDL_FLOAT, KDL_INT, KDL_UINT,
)
from cyrt.runtime.captures cimport settle
from cyrt.runtime.memory cimport READ_ONLY, Memory, export_address, live_block
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime.order cimport order_consumer as order_uses
from cyrt.runtime.stream_state cimport is_captured, wrapped_state

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil


cdef void drop_owner(void* owner) noexcept nogil:
    if owner != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object>owner)


cdef void delete_unversioned(DLManagedTensor* tensor) noexcept nogil:
    drop_owner(tensor.manager_ctx)
    free(tensor)


cdef void delete_versioned(DLManagedTensorVersioned* tensor) noexcept nogil:
    drop_owner(tensor.manager_ctx)
    free(tensor)


cdef void drop_unversioned(object capsule) noexcept:
    """Delete a capsule's tensor, unless a consumer took it and so renamed the capsule."""
    cdef DLManagedTensor* tensor
    if PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
        tensor.deleter(tensor)


cdef void drop_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* tensor
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        tensor = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        tensor.deleter(tensor)


cdef int order_consumer(Block* block, stream) except -1:
    """Make the consumer's stream wait for the block. The legacy stream does so already, since the
    address was exported."""
    cdef CUstream handle
    cdef StreamState* state
    if stream is None:
        return 0
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"__dlpack__: stream: expected an int or None, got {show(stream)}")
    if stream == 1 or stream == -1:
        return 0
    if stream == 0 or stream < -1:
        raise ValueError(f"__dlpack__: stream: expected -1, 1, 2 or a stream's handle, got "
                         f"{stream}")
    handle = <CUstream><size_t>stream
    state = wrapped_state(block.ordinal, handle)
    if is_captured(state):
        settle(block)
        return 0
    return order_uses(state, block)


cdef void describe(DLTensor* tensor, void* trailer, Memory owner, int ndim, const long long* dims,
                   const long long* steps, uint8_t code, int itemsize, int ordinal) noexcept:
    cdef int d
    tensor.data = <void*>owner.address
    tensor.device.device_type = KDL_CUDA
    tensor.device.device_id = ordinal
    tensor.ndim = ndim
    tensor.dtype.code = code
    tensor.dtype.bits = <uint8_t>(8 * itemsize)
    tensor.dtype.lanes = 1
    tensor.shape = <int64_t*>trailer
    tensor.strides = tensor.shape + ndim
    for d in range(ndim):
        tensor.shape[d] = dims[d]
        tensor.strides[d] = steps[d]


cdef object capsule_of(Memory owner, int ndim, const long long* dims, const long long* steps,
                       str kind, bint brain_float, int itemsize, stream, max_version, bint copied):
    cdef DLManagedTensor* unversioned
    cdef DLManagedTensorVersioned* versioned
    cdef Block* block = live_block(owner)
    cdef size_t trailer = 2 * ndim * sizeof(int64_t)
    cdef uint8_t code = KDL_BFLOAT if brain_float else {
        "b": KDL_BOOL, "i": KDL_INT, "u": KDL_UINT, "f": KDL_FLOAT, "c": KDL_COMPLEX}[kind]
    if max_version is not None and not isinstance(max_version, (tuple, list)):
        raise TypeError("__dlpack__: max_version: expected a tuple of two ints or None, got "
                        f"{max_version!r}")
    versions = max_version is not None and tuple(max_version) >= (1,)
    if owner.traits & READ_ONLY and not versions:
        raise BufferError("__dlpack__: the array is a read-only view, which DLPack below version 1 "
                          "cannot say: hand a copy out, copy=True or x.copy(), or ask for "
                          "max_version=(1, 0)")
    export_address(owner)
    order_consumer(block, stream)
    if not versions:
        unversioned = <DLManagedTensor*>calloc(1, sizeof(DLManagedTensor) + trailer)
        if unversioned == NULL:
            raise MemoryError()
        describe(&unversioned.dl_tensor, unversioned + 1, owner, ndim, dims, steps, code, itemsize,
                 block.ordinal)
        unversioned.deleter = delete_unversioned
        capsule = PyCapsule_New(unversioned, b"dltensor",
                                <void (*)(object) noexcept>drop_unversioned)
        unversioned.manager_ctx = <void*>owner
    else:
        versioned = <DLManagedTensorVersioned*>calloc(
            1, sizeof(DLManagedTensorVersioned) + trailer)
        if versioned == NULL:
            raise MemoryError()
        versioned.major = 1
        versioned.minor = 1
        versioned.flags = (DLPACK_FLAG_COPIED if copied else 0) \
            | (DLPACK_FLAG_READ_ONLY if owner.traits & READ_ONLY else 0)
        describe(&versioned.dl_tensor, versioned + 1, owner, ndim, dims, steps, code, itemsize,
                 block.ordinal)
        versioned.deleter = delete_versioned
        capsule = PyCapsule_New(versioned, b"dltensor_versioned",
                                <void (*)(object) noexcept>drop_versioned)
        versioned.manager_ctx = <void*>owner
    Py_INCREF(owner)
    return capsule


cdef dict interface_of(Memory owner, tuple shape, strides, str typestr):
    # The legacy stream always waits for cyrt's work on exported memory.
    read_only = owner.traits & READ_ONLY != 0
    return {"shape": shape, "typestr": typestr, "data": (export_address(owner), read_only),
            "strides": strides, "version": 3, "stream": 1}
