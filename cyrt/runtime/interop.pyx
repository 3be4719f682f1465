"""Other libraries' memory as Buffers: ``__cuda_array_interface__`` and DLPack."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uint64_t

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport check, cu, ensure_open
from cyrt.runtime.device cimport Device, context_of, current_ordinal
from cyrt.runtime.dlpack cimport (
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_READ_ONLY, DLTensor, KDL_BFLOAT,
    KDL_BOOL, KDL_COMPLEX, KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED, KDL_FLOAT, KDL_INT, KDL_UINT,
)
from cyrt.runtime import memory as _memory
from cyrt.runtime.memory cimport Memory, foreign_buffer
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state, foreign_state, order_after


cpdef Memory as_buffer(obj, bint write, list layout=None):
    """The memory of another library's array.

    Parameters
    ----------
    obj : object
        Memory of cyrt's, or what offers ``__cuda_array_interface__`` or ``__dlpack__``.
    write : bool
        The memory is going to be written.
    layout : list, optional
        Takes the shape, the strides in bytes (None: C-contiguous), the offset in bytes of the
        first element, the kind (as `tensor_of` has it) and the itemsize. Without it negative
        strides are refused.

    Returns
    -------
    Memory
        From the array's first element to the end of its last; keeps ``obj`` alive.

    Raises
    ------
    TypeError
        It offers neither, or memory that the device cannot reach.
    ValueError
        It is read-only and ``write`` is asked.
    """
    if isinstance(obj, Memory):
        return <Memory>obj
    ensure_open()
    try:
        interface = obj.__cuda_array_interface__
    except AttributeError:
        interface = None
    except Exception:
        # PyTorch refuses tensors that require a gradient and dtypes NumPy lacks; DLPack serves.
        if not hasattr(obj, "__dlpack__"):
            raise
        interface = None
    if interface is not None:
        return from_interface(obj, interface, write, layout)
    if hasattr(obj, "__dlpack__"):
        try:
            return from_dlpack(obj, write, layout)
        except (BufferError, RuntimeError) as error:
            raise ValueError(f"memory: {type(obj).__name__} does not hand it out: {error}") \
                from None
    raise TypeError(
        "expected a Buffer, an array with __cuda_array_interface__ or __dlpack__, "
        f"cyrt.pointer(address, nbytes) or None, got {type(obj).__name__}")


cdef tuple bounds(shape, strides, Py_ssize_t itemsize):
    """The first byte, and the one after the last, relative to the first element's."""
    cdef Py_ssize_t count, step, low = 0, high = itemsize
    if 0 in shape:
        return 0, 0
    if strides is None:
        for count in shape:
            high *= count
        return 0, high
    for count, step in zip(shape, strides):
        if step < 0:
            low += (count - 1) * step
        else:
            high += (count - 1) * step
    return low, high


cdef Memory memory_over(CUdeviceptr address, shape, strides, Py_ssize_t itemsize, str kind,
                        int ordinal, StreamState* home, owner, list layout):
    """`layout`: takes shape, strides in bytes, offset of the first element, kind and itemsize;
    None: the memory is that from the first element on."""
    low, high = bounds(shape, strides, itemsize)
    if layout is None and low < 0:
        raise ValueError("memory: an array with negative strides has no single extent")
    if layout is not None:
        layout += [tuple(shape), strides, -low, kind, itemsize]
    return foreign_buffer(address + <Py_ssize_t>low, high - low, ordinal, home, owner)


cdef int device_of_address(CUdeviceptr address) except -1:
    """The device that an address belongs to; the current one for memory it does not tell of."""
    cdef int ordinal = -1
    cdef CUresult result
    if address == 0:
        return current_ordinal()
    context_of(current_ordinal())
    result = cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)
    if result == CUDA_ERROR_INVALID_VALUE:
        raise ValueError(f"memory: {address:#x} is no address that the device knows")
    check(result, b"cuPointerGetAttribute")
    return ordinal if ordinal >= 0 else current_ordinal()


cdef Memory from_interface(obj, dict interface, bint write, list layout):
    """CUDA array interface, version 3 (numba.readthedocs.io, cuda/cuda_array_interface)."""
    cdef CUdeviceptr address
    cdef int ordinal
    cdef StreamState* home
    address, read_only = interface["data"]
    if read_only and write:
        raise ValueError(f"memory: {type(obj).__name__} offers read-only memory, and the kernel's "
                         "parameter is written")
    typestr = interface["typestr"]
    shape, strides = interface["shape"], interface.get("strides")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"memory: {type(obj).__name__} has the shape {shape} and the strides "
                         f"{strides}")
    if typestr.startswith(">"):
        raise ValueError(f"memory: {type(obj).__name__} has elements in the other byte order, "
                         f"{typestr!r}")
    ordinal = device_of_address(address)
    stream = interface.get("stream")
    # No stream named: the producer asks for no wait by the protocol, but old ones mean the legacy
    # one; waiting for it is never wrong.
    home = foreign_state(ordinal, <CUstream><size_t>(stream if stream else 0))
    return memory_over(address, shape, strides, int(typestr[2:]), typestr[1], ordinal, home,
                       (obj, interface), layout)


cdef Memory from_dlpack(obj, bint write, list layout):
    """DLPack: the producer makes our stream wait for the data itself."""
    cdef StreamState* home
    cdef DLTensor* tensor
    cdef DLManagedTensor* plain
    cdef DLManagedTensorVersioned* versioned
    cdef CUdeviceptr address
    cdef uint64_t flags = 0
    cdef int ordinal, i
    kind, index = obj.__dlpack_device__()
    if kind not in (KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED):
        raise TypeError(f"memory: {type(obj).__name__} lies on DLPack device {(int(kind), index)}, "
                        "not in memory that a CUDA device can reach; copy it into a Buffer")
    ordinal = index if kind == KDL_CUDA else current_ordinal()
    if not 0 <= ordinal < Device.count():
        raise ValueError(f"memory: {type(obj).__name__} lies on CUDA device {index}, "
                         f"and there are {Device.count()}")
    context_of(ordinal)
    home = current_state(ordinal)
    handle = <size_t>home.handle
    home.idle = False       # the producer makes it wait
    try:
        capsule = obj.__dlpack__(stream=handle, max_version=(1, 1))
    except TypeError:
        capsule = obj.__dlpack__(stream=handle)
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        tensor = &versioned.dl_tensor
        flags = versioned.flags
    else:
        plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
        tensor = &plain.dl_tensor
    if write and flags & DLPACK_FLAG_READ_ONLY:
        raise ValueError(f"memory: {type(obj).__name__} offers read-only memory, and the kernel's "
                         "parameter is written")
    itemsize = (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    strides = None
    if tensor.strides != NULL:
        strides = [tensor.strides[i] * itemsize for i in range(tensor.ndim)]
    address = <CUdeviceptr>tensor.data + tensor.byte_offset
    # The capsule, unconsumed, keeps the tensor and frees it when it goes.
    return memory_over(address, shape, strides, itemsize, kinds.get(tensor.dtype.code, "?"),
                       ordinal, home, (obj, capsule), layout)


# The kinds of DLPack's type codes; "E": bfloat16.
cdef dict kinds = {KDL_INT: "i", KDL_UINT: "u", KDL_FLOAT: "f", KDL_BFLOAT: "E",
                   KDL_COMPLEX: "c", KDL_BOOL: "b"}


cdef int stay_in_order(Memory memory) except -1:
    """The producer made one of our streams wait once; a view outlives that, and its memory is
    written again. Where others work by default is the legacy stream."""
    cdef StreamState* legacy = foreign_state(memory.block.ordinal, NULL)
    order_after(legacy, memory.block.home)
    memory.block.home = legacy
    return 0


cdef tuple tensor_of(obj):
    cdef list layout = []
    ensure_open()
    memory = None
    if hasattr(obj, "__dlpack__"):
        try:
            memory = from_dlpack(obj, False, layout)
            stay_in_order(memory)
        except OverflowError:       # CuPy divides negative strides as unsigned numbers
            if not hasattr(obj, "__cuda_array_interface__"):
                raise
    if memory is None:
        memory = from_interface(obj, obj.__cuda_array_interface__, False, layout)
    return (memory, *layout)


_memory.resolve_foreign = as_buffer
