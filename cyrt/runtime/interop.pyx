"""Import of other libraries' memory as Buffers: ``__cuda_array_interface__`` and DLPack."""

import math
import re

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uint64_t

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport check, cu, ensure_open
from cyrt.error_text import show
from cyrt.runtime.device cimport Device, context_of, current_ordinal
from cyrt.runtime.dlpack cimport (
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_READ_ONLY, DLPackExchangeAPI, DLTensor,
    KDL_BFLOAT, KDL_BOOL, KDL_COMPLEX, KDL_CPU, KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED,
    KDL_FLOAT, KDL_INT, KDL_UINT,
)
from cyrt.runtime import memory as _memory
from cyrt.runtime.memory cimport Memory, foreign_buffer
from cyrt.runtime.order cimport order_after
from cyrt.runtime.producer cimport Producer, describe, producer_of, work_stream
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.stream_state cimport legacy_state, wrapped_state

MOST_ELEMENTS = 1 << 58         # the limit of cyrt's arrays, too
MOST_BYTES = 1 << 62
_typestr = re.compile(r"([<>|=]?)([A-Za-z])(\d{1,9})").fullmatch


cpdef Memory as_buffer(obj, bint write, list layout=None):
    """Return the memory of another library's array.

    Parameters
    ----------
    obj : object
        A Buffer or array of cyrt, or an object with ``__cuda_array_interface__`` or ``__dlpack__``.
    write : bool
        Whether the memory is going to be written.
    layout : list, optional
        An empty list, to which the function adds the shape, the strides in bytes (None:
        C-contiguous), the offset in bytes of the first element, the kind (see `tensor_of`), the
        itemsize and whether the memory is read-only. Without a list, negative strides raise an
        error.

    Returns
    -------
    Memory
        The bytes from the start of the lowest to the end of the highest element; the object keeps
        ``obj`` alive.

    Raises
    ------
    TypeError
        The object supports neither protocol, or the device cannot access its memory.
    ValueError
        The memory is read-only and ``write`` is True, or the object's description is invalid.
    """
    if isinstance(obj, Memory):
        return <Memory>obj
    ensure_open()
    if producer_of(<PyObject*>obj).api != NULL:
        return from_producer(obj, write, layout)
    try:
        interface = obj.__cuda_array_interface__
    except AttributeError:
        interface = None
    except Exception:
        # PyTorch raises for tensors that require a gradient and for dtypes that NumPy lacks: use
        # DLPack for those.
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


cdef class Layout:
    """Another library's description of an array, checked, in Python ints, which never overflow."""
    cdef str name               # the name of the array's class
    cdef object address         # the first element's
    cdef tuple shape
    cdef tuple strides          # bytes; None: C-contiguous
    cdef str kind               # one of "biufc", "E" (bfloat16), or another character
    cdef object itemsize
    cdef bint read_only
    cdef object low, high       # offsets from the address: the first byte, the end of the last one

    cdef int validate(self) except -1:
        cdef tuple shape = self.shape
        if min(shape, default=0) < 0:
            raise ValueError(f"memory: {self.name} has the shape {shape}; expected sizes of 0 or "
                             "more")
        if math.prod([max(count, 1) for count in shape]) > MOST_ELEMENTS:
            raise ValueError(f"memory: {self.name} has the shape {shape}, which has more elements "
                             "than memory can hold")
        if self.strides is not None and len(self.strides) != len(shape):
            raise ValueError(f"memory: {self.name} has the shape {shape} and the strides "
                             f"{self.strides}")
        self.low = self.high = 0
        if 0 not in shape:
            self.high = self.itemsize * (math.prod(shape) if self.strides is None else 1)
            for count, step in zip(shape, self.strides or ()):
                if step < 0:
                    self.low += (count - 1) * step
                else:
                    self.high += (count - 1) * step
        if self.high - self.low > MOST_BYTES or self.address + self.low < 0 \
                or self.address + self.high > 1 << 64 \
                or any([abs(step) > MOST_BYTES for step in self.strides or ()]):
            raise ValueError(f"memory: {self.name} at {self.address:#x} has the shape {shape} and "
                             f"the strides {self.strides}, which leave the address space")
        if self.address == 0 and self.high > self.low:
            raise ValueError(f"memory: {self.name} has {self.high - self.low:,} bytes at address "
                             "0, where there is no memory")
        return 0

    cdef Memory memory(self, int ordinal, StreamState* home, owner, bint write, list layout):
        """Return a Buffer over the array. `layout` is a list to which shape, strides, offset of the
        first element, kind, itemsize and whether it is read-only are added, or None; see
        `as_buffer`."""
        if write and self.read_only:
            raise ValueError(f"memory: {self.name} offers read-only memory, which would be written")
        if layout is None and self.low < 0:
            raise ValueError("memory: an array with negative strides has no single extent")
        if layout is not None:
            layout += [self.shape, self.strides, -self.low, self.kind, self.itemsize,
                       self.read_only]
        return foreign_buffer(self.address + self.low, self.high - self.low, ordinal, home, owner)


cdef tuple whole_numbers(str name, str what, values):
    if isinstance(values, (tuple, list)):
        try:
            return tuple([each.__index__() for each in values])
        except AttributeError:
            pass
    raise TypeError(f"memory: {name}: {what}: expected a tuple of ints, got {show(values)}")


cdef object whole_number(str name, str what, value):
    """Return the value if it is an unsigned 64-bit int, else raise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"memory: {name}: {what}: expected an int, got {show(value)}")
    value = value.__index__()
    if not 0 <= value < 1 << 64:
        raise ValueError(f"memory: {name}: {what}: expected an int of 64 bits, got {value}")
    return value


cdef int device_of_address(CUdeviceptr address) except -1:
    """Return the device of an address, or the current one if the driver does not report any."""
    cdef int ordinal = -1
    cdef CUresult result
    if address == 0:
        return current_ordinal()
    context_of(current_ordinal())
    result = cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)
    if result == CUDA_ERROR_INVALID_VALUE:
        raise ValueError(f"memory: {address:#x} is not an address that the device knows")
    check(result, b"cuPointerGetAttribute")
    return ordinal if ordinal >= 0 else current_ordinal()


cdef Layout layout_of_interface(str name, interface):
    cdef Layout found = Layout()
    if not isinstance(interface, dict):
        raise TypeError(f"memory: {name}.__cuda_array_interface__: expected a dict, got "
                        f"{type(interface).__name__}")
    missing = [key for key in ("shape", "typestr", "data") if key not in interface]
    if missing:
        raise ValueError(f"memory: {name}.__cuda_array_interface__ has no {', '.join(missing)}")
    data, typestr, strides = interface["data"], interface["typestr"], interface.get("strides")
    if not (isinstance(data, tuple) and len(data) == 2):
        raise TypeError(f"memory: {name}: data: expected a tuple of the address and whether it is "
                        f"read-only, got {show(data)}")
    found.read_only = bool(data[1])
    if interface.get("mask") is not None:
        raise ValueError(f"memory: {name} has a mask, and masked elements are not known here")
    if not isinstance(typestr, str):
        raise TypeError(f"memory: {name}: typestr: expected a str, got {show(typestr)}")
    parts = _typestr(typestr)
    if parts is None:
        raise ValueError(f"memory: {name}: typestr: expected the like of '<f4', got "
                         f"{show(typestr)}")
    if parts[1] == ">":
        raise ValueError(f"memory: {name} has elements in the other byte order, {typestr!r}")
    found.name, found.kind, found.itemsize = name, parts[2], int(parts[3])
    if found.kind == "b" and found.itemsize != 1:
        raise ValueError(f"memory: {name}: typestr: a bool has one byte, got {show(typestr)}")
    found.address = whole_number(name, "data", data[0])
    found.shape = whole_numbers(name, "shape", interface["shape"])
    if strides is not None:
        found.strides = whole_numbers(name, "strides", strides)
    found.validate()
    return found


cdef Memory from_interface(obj, interface, bint write, list layout):
    """Import by the CUDA array interface, version 3 (numba.readthedocs.io,
    cuda/cuda_array_interface)."""
    cdef str name = type(obj).__name__
    cdef Layout found = layout_of_interface(name, interface)
    cdef int ordinal = device_of_address(found.address)
    cdef StreamState* home
    stream = interface.get("stream")
    # Without a stream the protocol requires no wait, but in older versions it means the legacy
    # stream. Waiting for that stream is always correct.
    stream = 0 if stream is None else whole_number(name, "stream", stream)
    home = wrapped_state(ordinal, <CUstream><size_t>stream)
    return found.memory(ordinal, home, (obj, interface), write, layout)


cdef int check_device(str name, kind, index, structured) except -1:
    """Raise an error unless a CUDA device can reach the memory. `structured`: it has fields."""
    if kind not in (KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED):
        advice = "" if kind != KDL_CPU else (
            "; make a cyrt.Buffer(x.nbytes), whose copy_from(x) copies the bytes to the device"
            if structured else "; cyrt.asarray() copies it to the device")
        location = "in host memory" if kind == KDL_CPU else f"on DLPack device {(kind, index)}"
        raise TypeError(f"memory: {name} lies {location}, which a CUDA device cannot reach{advice}")
    if kind == KDL_CUDA and not 0 <= index < Device.count():
        raise ValueError(f"memory: {name} lies on CUDA device {index}, and there are "
                         f"{Device.count()}")
    return 0


cdef Memory from_producer(obj, bint write, list layout):
    """Import by the C exchange API: uses are ordered with the library's current stream."""
    cdef const Producer* producer = producer_of(<PyObject*>obj)
    cdef const DLPackExchangeAPI* api = producer.api
    cdef DLTensor tensor
    cdef Layout found
    cdef int ordinal
    cdef str name = type(obj).__name__
    describe(producer, <PyObject*>obj, &tensor)
    found = layout_of_tensor(name, &tensor)
    check_device(name, tensor.device.device_type, tensor.device.device_id, None)
    ordinal = tensor.device.device_id if tensor.device.device_type == KDL_CUDA \
        else current_ordinal()
    context_of(ordinal)
    return found.memory(ordinal, work_stream(api, ordinal), obj, write, layout)


cdef Memory from_dlpack(obj, bint write, list layout):
    """Import by DLPack: the producer makes cyrt's stream wait for the data."""
    cdef StreamState* home
    cdef DLTensor* tensor
    cdef Layout found
    cdef uint64_t flags = 0
    cdef int ordinal
    cdef str name = type(obj).__name__
    device = whole_numbers(name, "__dlpack_device__()", obj.__dlpack_device__())
    if len(device) != 2:
        raise TypeError(f"memory: {name}.__dlpack_device__(): expected a kind and an index, got "
                        f"{device}")
    kind, index = device
    check_device(name, kind, index, getattr(getattr(obj, "dtype", None), "names", None))
    ordinal = index if kind == KDL_CUDA else current_ordinal()
    context_of(ordinal)
    home = current_state(ordinal)
    handle = <size_t>home.handle
    home.idle = False       # the producer puts a wait on the stream
    capsule = capsule_of(obj, stream=handle)
    tensor = tensor_of_capsule(name, capsule, &flags)
    found = layout_of_tensor(name, tensor)
    found.read_only = flags & DLPACK_FLAG_READ_ONLY != 0
    # The capsule is not consumed, so it keeps the tensor alive and deletes it at its own end.
    return found.memory(ordinal, home, (obj, capsule), write, layout)


def capsule_of(obj, **options):
    """Return the DLPack capsule of an object, whose library may know only version 0."""
    try:
        return obj.__dlpack__(max_version=(1, 1), **options)
    except TypeError:
        return obj.__dlpack__(**options)


cdef tuple host_tensor_of(obj):
    cdef uint64_t flags = 0
    cdef str name = type(obj).__name__
    device = whole_numbers(name, "__dlpack_device__()", obj.__dlpack_device__())
    if device != (KDL_CPU, 0):
        raise TypeError(f"memory: {name} lies on DLPack device {device}, neither in memory of a "
                        "GPU nor in the host's")
    capsule = capsule_of(obj)
    cdef Layout found = layout_of_tensor(name, tensor_of_capsule(name, capsule, &flags))
    return capsule, found.address, found.shape, found.strides, found.kind, found.itemsize


cdef DLTensor* tensor_of_capsule(str name, capsule, uint64_t* flags) except NULL:
    cdef DLManagedTensorVersioned* versioned
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        if versioned.major != 1:
            raise ValueError(f"memory: {name} speaks DLPack {versioned.major}.{versioned.minor}, "
                             "cyrt knows version 1")
        flags[0] = versioned.flags
        return &versioned.dl_tensor
    if PyCapsule_IsValid(capsule, b"dltensor"):
        return &(<DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")).dl_tensor
    raise TypeError(f"memory: {name}.__dlpack__(): expected a DLPack capsule that nobody has "
                    f"consumed, got {show(capsule)}")


cdef Layout layout_of_tensor(str name, DLTensor* tensor):
    cdef Layout found = Layout()
    cdef int i
    if tensor.ndim < 0 or (tensor.ndim and tensor.shape == NULL):
        raise ValueError(f"memory: {name}: a DLPack tensor of {tensor.ndim} dimensions has no "
                         "shape")
    found.name, found.itemsize = name, (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    # cyrt has no kind for vectors or for elements that share a byte.
    found.kind = "?" if tensor.dtype.bits % 8 or tensor.dtype.lanes != 1 \
        else kinds.get(tensor.dtype.code, "?")
    found.shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    if tensor.strides != NULL:
        found.strides = tuple([tensor.strides[i] * found.itemsize for i in range(tensor.ndim)])
    found.address = <object><size_t>tensor.data + <object>tensor.byte_offset
    found.validate()
    return found


# The kind of each DLPack type code; "E" is bfloat16.
cdef dict kinds = {KDL_INT: "i", KDL_UINT: "u", KDL_FLOAT: "f", KDL_BFLOAT: "E",
                   KDL_COMPLEX: "c", KDL_BOOL: "b"}


cdef int order_after_legacy(Memory memory) except -1:
    """Order later uses after the legacy stream. The producer made one of cyrt's streams wait only
    once, but its memory may be written again while the view exists, and other libraries use the
    legacy stream by default."""
    cdef StreamState* legacy = legacy_state(memory.block.ordinal)
    order_after(legacy, memory.block.home)
    memory.block.home = legacy
    return 0


cdef tuple tensor_of(obj, bint lasting):
    cdef list layout = []
    ensure_open()
    memory = None
    if producer_of(<PyObject*>obj).api != NULL:
        memory = from_producer(obj, False, layout)
        if lasting:
            order_after_legacy(memory)
    elif hasattr(obj, "__dlpack__"):
        try:
            memory = from_dlpack(obj, False, layout)
            order_after_legacy(memory)
        except ValueError:          # CuPy's export divides negative strides as unsigned numbers
            if not hasattr(obj, "__cuda_array_interface__"):
                raise
    if memory is None:
        memory = from_interface(obj, obj.__cuda_array_interface__, False, layout)
    return (memory, *layout)


_memory.resolve_foreign = as_buffer
