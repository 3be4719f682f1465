"""Making arrays."""

from libc.string cimport memset

import numpy as np

from cyrt.dtypes import DEFAULTS, DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.dispatch cimport record_arange
from cyrt.kernels.families.arange import WIDE
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.table cimport Operand
from cyrt.ndarray cimport Array, array_over, device_of, dims_of, new_array, set_operand
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype, copy as duplicate, to_device
from cyrt.ops.copy cimport fill
from cyrt.ops.promotion cimport code_of_number, is_number, put_number
from cyrt.runtime.device cimport current_ordinal, ordinal_of
from cyrt.runtime.interop cimport tensor_of
from cyrt.runtime.memory cimport Memory, copy_memory
from cyrt.runtime.stream cimport current_state


cdef int code_of(object dtype, object default) except -1:
    return (default if dtype is None else _dtype(dtype)).code


cdef Array from_host(object values, object dtype, int ordinal):
    """A copy of what NumPy understands."""
    cdef long long[MAX_NDIM] dims
    cdef Array x
    if isinstance(values, np.ndarray):
        host = values
    elif is_number(values) or isinstance(values, np.generic):
        host = np.asarray(values)
    else:
        try:
            host = np.array(plain_items(values))
        except ValueError as error:
            raise ValueError(f"asarray: rows of different lengths: {error}") from None
    if host.dtype.kind in "OUSVMm" and getattr(host.dtype, "name", "") != "bfloat16":
        raise TypeError(f"asarray: expected numbers, got {type(values).__name__} of dtype "
                        f"{host.dtype}")
    if dtype is not None:
        target = _dtype(dtype)
    elif hasattr(values, "dtype"):
        target = _dtype(values.dtype)
    else:
        kind = {"u": "i"}.get(host.dtype.kind, host.dtype.kind)
        target = DEFAULTS[kind]
        if host.dtype.kind == "u" or host.dtype.itemsize > 8 and kind == "i":
            raise OverflowError("asarray: an integer is out of range of int64")
    if host.dtype != target.numpy:
        if dtype is not None and target.kind in "iu" and host.dtype.kind in "iu" \
                and not isinstance(values, np.ndarray) and host.size:
            limits = np.iinfo(target.numpy)
            if host.min() < limits.min or host.max() > limits.max:
                raise OverflowError(f"asarray: an integer is out of range of {target}")
        with np.errstate(all="ignore"):
            host = host.astype(target.numpy)
    host = np.ascontiguousarray(host).reshape(host.shape)
    x = new_array(ordinal, target.code, dims_of(host.shape, dims), dims)
    if x.count:
        copy_memory(x, host.reshape(-1).view(np.uint8), None, False)
    return x


cdef object plain_items(object values):
    """Nested sequences with one-element arrays as numbers."""
    if isinstance(values, (list, tuple)):
        return [plain_items(each) for each in values]
    return values.tolist() if isinstance(values, Array) else values


cdef Array from_other(obj, bint copy):
    """Another library's array on a device, as a view of its memory."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Memory memory
    cdef int d, ndim
    memory, shape, strides, first, kind, itemsize = tensor_of(obj)
    name = "bfloat16" if kind == "E" else "bool" if kind == "b" else next(
        (each.name for each in DTYPES if each.kind == kind and each.itemsize == itemsize
         and each.name != "bfloat16"), None)
    if name is None:
        raise TypeError(f"{type(obj).__name__}: its element type (kind {kind!r}, {itemsize} bytes) "
                        "is none of cyrt's")
    ndim = dims_of(shape, dims)
    contiguous = itemsize
    for d in range(ndim - 1, -1, -1):
        step = contiguous if strides is None else strides[d]
        contiguous *= dims[d]
        if step % itemsize:
            raise ValueError(f"{type(obj).__name__}: a stride of {step} bytes is no multiple of "
                             f"the element's {itemsize}")
        steps[d] = step // itemsize
    if (memory.address + <long long>first) % itemsize:
        raise ValueError(f"{type(obj).__name__}: its address is no multiple of the element's "
                         f"{itemsize} bytes")
    return array_over(memory, _dtype(name).code, ndim, dims, steps, first // itemsize)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of what is given.

    Parameters
    ----------
    obj : Array, number, nested sequence, or array of another library
        NumPy's are copied to the device; arrays on a device, with ``__dlpack__`` or
        ``__cuda_array_interface__``, are views of their memory.
    dtype : DType, optional
        Of the result. Left out: an array keeps its own; Python numbers become bool, int64, float32
        or complex64.
    device : Device or int, optional
        Left out: the array's own, else the current device.
    copy : bool, optional
        True: always a copy. False: ValueError where one is needed.

    Raises
    ------
    ValueError
        Rows of different lengths; ``copy=False`` and a copy is needed.
    TypeError
        Elements that are no numbers.
    OverflowError
        An int out of range.
    """
    cdef bint fresh = False
    if isinstance(obj, Array):
        x = obj
    elif not isinstance(obj, np.ndarray) and (
            hasattr(obj, "__cuda_array_interface__") or on_device(obj)):
        x = from_other(obj, False)
    else:
        if copy is False:
            raise ValueError(f"asarray: a {type(obj).__name__} lies on the host, and copy=False "
                             "was given")
        ordinal = current_ordinal() if device is None else ordinal_of(device)
        return from_host(obj, dtype, ordinal)
    if dtype is not None and _dtype(dtype) is not x.dtype:
        if copy is False:
            raise ValueError(f"asarray: {x.dtype} to {_dtype(dtype)} needs a copy, and copy=False "
                             "was given")
        x = astype(x, dtype)
        fresh = True
    if device is not None and ordinal_of(device) != device_of(x):
        if copy is False:
            raise ValueError("asarray: another device needs a copy, and copy=False was given")
        x = to_device(x, device)
        fresh = True
    return duplicate(x) if copy and not fresh else x


cdef bint on_device(obj):
    if not hasattr(obj, "__dlpack_device__"):
        return False
    kind, _ = obj.__dlpack_device__()
    return int(kind) in (2, 3, 13)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over another library's memory, by DLPack.

    Parameters
    ----------
    x : object
        Has ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or int, optional
        Where the result lies; x's own where left out.
    copy : bool, optional
        True: always a copy. False: never, BufferError where one is needed.

    Returns
    -------
    Array
        A view of the memory where it lies on the device; a copy of host memory.
    """
    if not hasattr(x, "__dlpack__"):
        raise AttributeError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    if on_device(x):
        result = x if isinstance(x, Array) else from_other(x, False)
        if device is not None and ordinal_of(device) != device_of(result):
            if copy is False:
                raise BufferError("from_dlpack: another device needs a copy")
            return to_device(result, device)
        return duplicate(result) if copy else result
    if copy is False:
        raise BufferError("from_dlpack: the memory lies on the host, a copy is needed")
    return from_host(np.from_dlpack(x), None,
                     current_ordinal() if device is None else ordinal_of(device))


cdef Array make(shape, int code, device):
    cdef long long[MAX_NDIM] dims
    cdef int ndim = dims_of(shape, dims)
    return new_array(current_ordinal() if device is None else ordinal_of(device), code, ndim, dims)


cdef Array make_like(x, dtype, device):
    cdef Array other = check_array(x, "x")
    return new_array(device_of(other) if device is None else ordinal_of(device),
                     other.code if dtype is None else _dtype(dtype).code, other.ndim_, other.dims)


cdef Array filled(Array x, value):
    fill(x, value)
    return x


def empty(shape, *, dtype=None, device=None):
    """An array that holds anything.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : DType, optional
        float32 where left out.
    device : Device or int, optional
        The current device where left out.
    """
    return make(shape, code_of(dtype, DEFAULTS["f"]), device)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros; see :func:`cyrt.empty`."""
    return filled(make(shape, code_of(dtype, DEFAULTS["f"]), device), 0)


def ones(shape, *, dtype=None, device=None):
    """An array of ones; see :func:`cyrt.empty`."""
    return filled(make(shape, code_of(dtype, DEFAULTS["f"]), device), 1)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of one number; its default type (bool, int64, float32, complex64) where dtype is
    left out; see :func:`cyrt.empty`."""
    cdef int code
    if isinstance(fill_value, Array):
        fill_value = fill_value.item()
    if not is_number(fill_value):
        raise TypeError(f"full: fill_value: expected a number, got {type(fill_value).__name__}")
    code = code_of_number(getattr(fill_value, "item", lambda: fill_value)()) if dtype is None \
        else _dtype(dtype).code
    return filled(make(shape, code, device), fill_value)


def empty_like(x, /, *, dtype=None, device=None):
    """An array of x's shape, type and device that holds anything."""
    return make_like(x, dtype, device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of x's shape, type and device."""
    return filled(make_like(x, dtype, device), 0)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of x's shape, type and device."""
    return filled(make_like(x, dtype, device), 1)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """One number in x's shape, type and on its device."""
    if isinstance(fill_value, Array):
        fill_value = fill_value.item()
    return filled(make_like(x, dtype, device), fill_value)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Evenly spaced numbers, from start up to and without stop.

    Parameters
    ----------
    start, stop, step : number
        With one number it is the stop, and the start is 0.
    dtype : DType, optional
        Left out: int64 where all three are ints, else float32.
    device : Device or int, optional
        The current device where left out.

    Returns
    -------
    Array
        Of ``ceil((stop - start) / step)`` elements.
    """
    cdef Operand[3] operands
    cdef long long count
    cdef Array x
    cdef int wide
    if stop is None:
        start, stop = 0, start
    for name, each in (("start", start), ("stop", stop), ("step", step)):
        if not is_number(each) or isinstance(each, complex):
            raise TypeError(f"arange: {name}: expected a real number, got {type(each).__name__}")
    if step == 0:
        raise ValueError("arange: step is 0")
    whole = all(isinstance(each, (int, np.integer)) for each in (start, stop, step))
    found = _dtype(dtype) if dtype is not None else DEFAULTS["i" if whole else "f"]
    if found.kind == "b":
        raise TypeError("arange: bool has no evenly spaced numbers")
    count = max(0, -((start - stop) // step) if whole else int(np.ceil((stop - start) / step)))
    x = make((count,), found.code, device)
    if count:
        wide = _dtype(WIDE[found.kind]).code
        memset(operands, 0, sizeof(operands))
        set_operand(&operands[0], x)
        put_number(wide, start, operands[1].value)
        put_number(wide, step, operands[2].value)
        record_arange(encoder_of(current_state(device_of(x))), found.code, operands, count)
    return x
