# C-level functions only: see tensors.pxd.
"""Views of other libraries' arrays on a device."""

from types import SimpleNamespace

import numpy as np

from cpython.object cimport PyObject

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.kernels.arguments cimport is_plain, traits_of_type
from cyrt.ndarray cimport Array, are_apart, view_of
from cyrt.ops.arguments import refuse_output
from cyrt.ops.promotion cimport is_number
from cyrt.runtime.device cimport contexts
from cyrt.runtime.dlpack cimport (
    DLPackExchangeAPI, DLTensor, KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED,
)
from cyrt.runtime.interop cimport host_tensor_of, order_after_legacy, tensor_of
from cyrt.runtime.memory cimport OTHER_TYPE, READ_ONLY, Buffer, Memory, foreign_buffer
from cyrt.runtime.producer cimport Producer, describe, producer_of, work_stream
from cyrt.shape cimport check_size, dims_of

cdef extern from *:
    int __builtin_ctz(unsigned int) noexcept


cdef Array from_tensor(obj, bint lasting):
    cdef const Producer* producer = producer_of(<PyObject*>obj)
    cdef const DLPackExchangeAPI* api = producer.api
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef long long count = 1
    cdef DLTensor tensor
    cdef CUdeviceptr address
    cdef unsigned int trait
    cdef size_t size
    cdef int d, ordinal
    cdef Buffer memory
    if api == NULL:
        return None
    describe(producer, <PyObject*>obj, &tensor)
    ordinal = tensor.device.device_id
    if tensor.device.device_type != KDL_CUDA or not 0 <= ordinal < MAX_DEVICES \
            or contexts[ordinal].handle == NULL or tensor.ndim > MAX_NDIM \
            or not is_plain(&tensor, &size) or size == 0:
        return None
    address = <CUdeviceptr>tensor.data + tensor.byte_offset
    trait = traits_of_type(&tensor.dtype)
    if trait & OTHER_TYPE or address == 0 or address % (tensor.dtype.bits // 8):
        return None
    for d in range(tensor.ndim - 1, -1, -1):
        dims[d], steps[d] = tensor.shape[d], count
        count *= dims[d]
    d = tensor.ndim
    memory = foreign_buffer(address, size, ordinal, work_stream(api, ordinal), obj)
    if lasting:
        order_after_legacy(memory)
    return view_of(memory, __builtin_ctz(trait), d, dims, steps, 0)


cdef object dtype_of_kind(str name, kind, itemsize):
    """Return the element type that another library's array describes by its kind and size."""
    found = "bfloat16" if kind == "E" else "bool" if kind == "b" else next(
        (each.name for each in DTYPES if each.kind == kind and each.itemsize == itemsize
         and each.name != "bfloat16"), None)
    if found is None:
        raise TypeError(f"{name}: its element type (kind {kind!r}, {itemsize} bytes) has no "
                        "counterpart in cyrt")
    return _dtype(found)


cdef object from_host_tensor(obj):
    capsule, address, shape, strides, kind, itemsize = host_tensor_of(obj)
    dtype = dtype_of_kind(type(obj).__name__, kind, itemsize)
    # NumPy has no character for bfloat16 in this description.
    described = {"version": 3, "shape": shape, "strides": strides, "data": (address, True),
                 "typestr": f"<{'u' if kind == 'E' else kind}{itemsize}"}
    return np.asarray(SimpleNamespace(__array_interface__=described, capsule=capsule)) \
        .view(dtype.numpy)


cdef tuple from_other(obj, bint lasting):
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Memory memory
    cdef Array view
    cdef int d, ndim
    memory, shape, strides, first, kind, itemsize, read_only = tensor_of(obj, lasting)
    dtype = dtype_of_kind(type(obj).__name__, kind, itemsize)
    ndim = dims_of(shape, dims)
    check_size(ndim, dims)
    contiguous = itemsize
    for d in range(ndim - 1, -1, -1):
        step = contiguous if strides is None else strides[d]
        contiguous *= dims[d]
        if step % itemsize:
            raise ValueError(f"{type(obj).__name__}: a stride of {step} bytes is not a multiple of "
                             f"the element's {itemsize}")
        steps[d] = step // itemsize
    if (memory.address + <long long>first) % itemsize:
        raise ValueError(f"{type(obj).__name__}: its address is not a multiple of the element's "
                         f"{itemsize} bytes")
    view = view_of(memory, dtype.code, ndim, dims, steps, first // itemsize)
    if not are_apart(view):
        view.traits |= READ_ONLY
    return view, read_only


cdef bint on_device(obj):
    cdef const Producer* producer = producer_of(<PyObject*>obj)
    cdef DLTensor tensor
    if producer.api != NULL:
        describe(producer, <PyObject*>obj, &tensor)
        return tensor.device.device_type in (KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED)
    if not hasattr(obj, "__dlpack_device__"):
        return False
    kind, _ = obj.__dlpack_device__()
    return int(kind) in (KDL_CUDA, KDL_CUDA_HOST, KDL_CUDA_MANAGED)


cdef tuple other_view(object value):
    """View another library's array for one operation. Return the view, and whether the memory is
    read-only; None for any other value."""
    cdef Array x
    if isinstance(value, (Memory, list, tuple, np.ndarray)) or is_number(value):
        return None
    x = from_tensor(value, False)
    if x is not None:
        return x, False
    if on_device(value) or hasattr(value, "__cuda_array_interface__"):
        return from_other(value, False)
    return None


cdef object view_other(object value):
    found = other_view(value)
    return value if found is None else found[0]


cdef Array view_output(str name, object out):
    if isinstance(out, Array):
        return <Array>out
    found = other_view(out)
    if found is None:
        refuse_output(out, name)
    if found[1]:
        raise ValueError(f"{name}: out: the {type(out).__name__} is read-only")
    return found[0]
