"""Other libraries' memory as Buffers: ``__cuda_array_interface__`` and DLPack."""

import math
import re

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
from cyrt.runtime.order cimport order_after
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.stream_state cimport foreign_state

MOST_ELEMENTS = 1 << 58         # as of our own arrays
MOST_BYTES = 1 << 62
_typestr = re.compile(r"([<>|=]?)([A-Za-z])(\d{1,9})").fullmatch


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


cdef class Layout:
    """Another library's account of an array, checked; in Python's ints, which never overflow."""
    cdef str name               # of its class
    cdef object address         # of the first element
    cdef tuple shape
    cdef tuple strides          # in bytes; None: C-contiguous
    cdef str kind               # one of "biufc", "E" (bfloat16), or another one
    cdef object itemsize
    cdef object low, high       # the first byte, and the one after the last, from the address on

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

    cdef Memory memory(self, int ordinal, StreamState* home, owner, list layout):
        """`layout`: takes shape, strides, offset of the first element, kind and itemsize; None:
        the memory is that from the first element on."""
        if layout is None and self.low < 0:
            raise ValueError("memory: an array with negative strides has no single extent")
        if layout is not None:
            layout += [self.shape, self.strides, -self.low, self.kind, self.itemsize]
        return foreign_buffer(self.address + self.low, self.high - self.low, ordinal, home, owner)


cdef tuple whole_numbers(str name, str what, values):
    if isinstance(values, (tuple, list)):
        try:
            return tuple([each.__index__() for each in values])
        except AttributeError:
            pass
    raise TypeError(f"memory: {name}: {what}: expected a tuple of ints, got {values!r}")


cdef object whole_number(str name, str what, value):
    """An int of 64 bits, without a sign."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"memory: {name}: {what}: expected an int, got {value!r}")
    value = value.__index__()
    if not 0 <= value < 1 << 64:
        raise ValueError(f"memory: {name}: {what}: expected an int of 64 bits, got {value}")
    return value


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


cdef Layout layout_of_interface(str name, interface, bint write):
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
                        f"read-only, got {data!r}")
    if data[1] and write:
        raise ValueError(f"memory: {name} offers read-only memory, and the kernel's parameter is "
                         "written")
    if interface.get("mask") is not None:
        raise ValueError(f"memory: {name} has a mask, and masked elements are not known here")
    if not isinstance(typestr, str):
        raise TypeError(f"memory: {name}: typestr: expected a str, got {typestr!r}")
    parts = _typestr(typestr)
    if parts is None:
        raise ValueError(f"memory: {name}: typestr: expected the like of '<f4', got {typestr!r}")
    if parts[1] == ">":
        raise ValueError(f"memory: {name} has elements in the other byte order, {typestr!r}")
    found.name, found.kind, found.itemsize = name, parts[2], int(parts[3])
    if found.kind == "b" and found.itemsize != 1:
        raise ValueError(f"memory: {name}: typestr: a bool has one byte, got {typestr!r}")
    found.address = whole_number(name, "data", data[0])
    found.shape = whole_numbers(name, "shape", interface["shape"])
    if strides is not None:
        found.strides = whole_numbers(name, "strides", strides)
    found.validate()
    return found


cdef Memory from_interface(obj, interface, bint write, list layout):
    """CUDA array interface, version 3 (numba.readthedocs.io, cuda/cuda_array_interface)."""
    cdef str name = type(obj).__name__
    cdef Layout found = layout_of_interface(name, interface, write)
    cdef int ordinal = device_of_address(found.address)
    cdef StreamState* home
    stream = interface.get("stream")
    # No stream named: the producer asks for no wait by the protocol, but old ones mean the legacy
    # one; waiting for it is never wrong.
    stream = 0 if stream is None else whole_number(name, "stream", stream)
    home = foreign_state(ordinal, <CUstream><size_t>stream)
    return found.memory(ordinal, home, (obj, interface), layout)


cdef Memory from_dlpack(obj, bint write, list layout):
    """DLPack: the producer makes our stream wait for the data itself."""
    cdef StreamState* home
    cdef DLTensor* tensor
    cdef uint64_t flags = 0
    cdef int ordinal
    cdef str name = type(obj).__name__
    device = whole_numbers(name, "__dlpack_device__()", obj.__dlpack_device__())
    if len(device) != 2:
        raise TypeError(f"memory: {name}.__dlpack_device__(): expected a kind and an index, got "
                        f"{device}")
    kind, index = device
    if kind not in (KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED):
        raise TypeError(f"memory: {name} lies on DLPack device {device}, not in memory that a CUDA "
                        "device can reach; copy it into a Buffer")
    if kind == KDL_CUDA and not 0 <= index < Device.count():
        raise ValueError(f"memory: {name} lies on CUDA device {index}, and there are "
                         f"{Device.count()}")
    ordinal = index if kind == KDL_CUDA else current_ordinal()
    context_of(ordinal)
    home = current_state(ordinal)
    handle = <size_t>home.handle
    home.idle = False       # the producer makes it wait
    try:
        capsule = obj.__dlpack__(stream=handle, max_version=(1, 1))
    except TypeError:
        capsule = obj.__dlpack__(stream=handle)
    tensor = tensor_in(name, capsule, &flags)
    if write and flags & DLPACK_FLAG_READ_ONLY:
        raise ValueError(f"memory: {name} offers read-only memory, and the kernel's parameter is "
                         "written")
    # The capsule, unconsumed, keeps the tensor and frees it when it goes.
    return layout_of_tensor(name, tensor).memory(ordinal, home, (obj, capsule), layout)


cdef DLTensor* tensor_in(str name, capsule, uint64_t* flags) except NULL:
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
                    f"consumed, got {capsule!r}")


cdef Layout layout_of_tensor(str name, DLTensor* tensor):
    cdef Layout found = Layout()
    cdef int i
    if tensor.ndim < 0 or (tensor.ndim and tensor.shape == NULL):
        raise ValueError(f"memory: {name}: a DLPack tensor of {tensor.ndim} dimensions has no "
                         "shape")
    found.name, found.itemsize = name, (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    # Vectors, and elements that share a byte, are of no kind known here.
    found.kind = "?" if tensor.dtype.bits % 8 or tensor.dtype.lanes != 1 \
        else kinds.get(tensor.dtype.code, "?")
    found.shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    if tensor.strides != NULL:
        found.strides = tuple([tensor.strides[i] * found.itemsize for i in range(tensor.ndim)])
    found.address = <object><size_t>tensor.data + <object>tensor.byte_offset
    found.validate()
    return found


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
        except ValueError:          # CuPy divides negative strides as unsigned numbers
            if not hasattr(obj, "__cuda_array_interface__"):
                raise
    if memory is None:
        memory = from_interface(obj, obj.__cuda_array_interface__, False, layout)
    return (memory, *layout)


_memory.resolve_foreign = as_buffer
