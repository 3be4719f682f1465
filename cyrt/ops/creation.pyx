"""Creation of arrays."""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact

from collections.abc import Iterator, Set, ValuesView

import numpy as np

from cyrt.dtypes import DEFAULTS, DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.error_text import show
from cyrt.ndarray cimport Array, device_of, new_array, view_of
from cyrt.ops.arguments import check_array, check_flags, type_name
from cyrt.ops.copy import astype, copy as duplicate, to_device
from cyrt.ops.copy cimport fill
from cyrt.ops.promotion cimport (
    code_of_number, is_number, promote, promote_number, python_number,
)
from cyrt.operators import functions
from cyrt.ops.tensors cimport from_host_tensor, from_other, from_tensor, on_device
from cyrt.runtime.device cimport current_ordinal, ordinal_of
from cyrt.runtime.memory cimport Buffer, copy_memory
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.shape cimport check_size, dims_of
from cyrt.tape cimport refuse_number

# Default element types by kind: bool, int, float, complex.
cdef tuple NUMBERS = (False, 0, 0.0, 0j)
# NumPy converts only its own numbers to bfloat16.
cdef dict FROM = {"bfloat16": np.float64}


cdef int code_of(object dtype, object default) except -1:
    return (default if dtype is None else _dtype(dtype)).code


cdef int join_types(object values, int depth, int* code, int* kind) except -1:
    """Find the joint type of the arrays in nested sequences, and the highest kind of the
    numbers."""
    cdef int found = 0
    if isinstance(values, (list, tuple, range)):
        if depth == MAX_NDIM:
            raise ValueError(f"asarray: sequences are nested more than {MAX_NDIM} deep")
        for each in values:
            join_types(each, depth + 1, code, kind)
        return 0
    if PyFloat_CheckExact(values):
        found = 2
    elif PyLong_CheckExact(values):
        found = 1
    elif isinstance(values, Array) or not is_number(values) and hasattr(values, "__array__"):
        dtype = values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype
        try:
            found = _dtype(dtype).code
        except TypeError:
            raise TypeError(f"asarray: a sequence has an element of {type_name(values)}, of dtype "
                            f"{dtype}: convert each element by cyrt.asarray(), and join them by "
                            "cyrt.stack()") from None
        code[0] = found if code[0] < 0 else promote(code[0], found)
        return 0
    elif is_number(values):
        number = values if not hasattr(values, "dtype") else \
            {"f": 0.0, "i": 0, "u": 0}.get(_dtype(values.dtype).kind, python_number(values))
        while not isinstance(number, type(NUMBERS[found])):
            found += 1
    else:
        raise TypeError(f"asarray: expected numbers, got {type(values).__name__}")
    kind[0] = max(kind[0], found)
    return 0


def weak_array(Array other not None, values):
    """Convert a sequence to an operand beside an array. Its numbers are weak in promotion, like a
    single number."""
    cdef int code = -1, kind = -1
    join_types(values, 0, &code, &kind)
    code = other.code if code < 0 else code
    if kind >= 0:
        code = promote_number(code, NUMBERS[kind])
    return asarray(values, DTYPES[code], device=device_of(other))


cdef object dtype_of_numbers(object values):
    """Return the element type of nested sequences of numbers and arrays."""
    cdef int code = -1, kind = -1
    join_types(values, 0, &code, &kind)
    if kind >= 0:
        code = code_of_number(NUMBERS[kind]) if code < 0 else promote_number(code, NUMBERS[kind])
    return DEFAULTS["f"] if code < 0 else DTYPES[code]


cdef object from_numbers(object values, object target):
    """A NumPy array of the numbers in nested sequences, which may contain arrays."""
    own = dtype_of_numbers(values)
    target = own if target is None else target
    try:
        with np.errstate(all="ignore"):
            return np.array(values, FROM.get(target.name, target.numpy)), target
    except OverflowError:
        raise OverflowError(f"asarray: a number is out of range of {target}, got "
                            f"{show(values)}") from None
    except ValueError as error:
        ragged = "rows of different lengths: " if "inhomogeneous" in str(error) else ""
        raise ValueError(f"asarray: {ragged}{error}") from None
    except TypeError as error:
        raise TypeError(f"asarray: {error}") from None


cdef Array followed_in(object values):
    """Return an array in nested sequences that the tape follows, or None."""
    if isinstance(values, (list, tuple)):
        for each in values:
            found = followed_in(each)
            if found is not None:
                return found
    elif isinstance(values, Array) and is_followed(values):
        return values
    return None


cdef object stack_nested(object values, object dtype, object device):
    """Convert nested sequences, whose arrays keep their gradients."""
    if not isinstance(values, (list, tuple)):
        return asarray(values, dtype, device=device)
    if not values:
        raise ValueError("asarray: rows of different lengths: an empty one beside arrays")
    return functions.stack([stack_nested(each, dtype, device) for each in values])


cdef object host_array(object values):
    """View an array on the host as NumPy's: by DLPack, which has bfloat16, or by ``__array__``."""
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        try:
            return from_host_tensor(values)
        except BufferError:         # the library hands it out in another way only, if in any
            if not hasattr(values, "__array__"):
                raise
    return np.asarray(values)


cdef Array from_host(object values, object dtype, int ordinal):
    """Copy an object that NumPy understands to a device."""
    cdef long long[MAX_NDIM] dims
    cdef Array x
    target = None if dtype is None else _dtype(dtype)
    if is_number(values):
        if target is None and isinstance(values, np.generic):
            target = _dtype(values.dtype)
        x = new_array(ordinal, code_of_number(values) if target is None else target.code, 0, NULL)
        return fill_array(x, values)
    if isinstance(values, (list, tuple, range)):
        host, target = from_numbers(values, target)
    else:
        host = host_array(values)
        if host.dtype.kind in "OUSVMm" and host.dtype.name != "bfloat16":
            advice = "; list(...) makes a sequence of it" \
                if host.ndim == 0 and isinstance(values, (Set, Iterator, ValuesView)) else ""
            raise TypeError(f"asarray: expected numbers, got {type(values).__name__} of dtype "
                            f"{host.dtype}{advice}")
        if not host.dtype.isnative:
            host = host.astype(host.dtype.newbyteorder("="))
        if target is None:
            target = _dtype(host.dtype)
    if host.dtype != target.numpy:
        with np.errstate(all="ignore"):
            host = host.astype(target.numpy)
    host = np.ascontiguousarray(host).reshape(host.shape)
    x = new_array(ordinal, target.code, dims_of(host.shape, dims), dims)
    if x.count:
        copy_memory(x, host.reshape(-1).view(np.uint8), None, False)
    return x


cdef Array from_buffer(Buffer buffer, object dtype, object shape):
    """View the bytes of a Buffer as elements."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef long long count = 1
    cdef int d, ndim = 1
    if dtype is None:
        raise TypeError("asarray: a Buffer has no element type; expected dtype=, for example "
                        "asarray(buffer, dtype=cyrt.float32)")
    target = _dtype(dtype)
    if shape is None:
        if buffer.size % target.itemsize:
            raise ValueError(f"asarray: {buffer.size:,} bytes are not a multiple of {target}'s "
                             f"{target.itemsize}")
        dims[0] = buffer.size // target.itemsize
    else:
        ndim = dims_of(shape, dims)
        check_size(ndim, dims)
    for d in range(ndim - 1, -1, -1):
        steps[d] = count
        count *= dims[d]
    needed = count * target.itemsize        # a Python int
    if needed != buffer.size:
        raise ValueError(f"asarray: {count:,} elements of {target} have {needed:,} bytes, the "
                         f"Buffer has {buffer.size:,}")
    if buffer.address % target.itemsize:
        raise ValueError(f"asarray: the Buffer's address is not a multiple of {target}'s "
                         f"{target.itemsize} bytes")
    return view_of(buffer, target.code, ndim, dims, steps, 0)


cdef object from_host_buffer(object buffer, object target, object shape):
    """View the bytes of a page-locked or managed Buffer as a NumPy array."""
    if buffer.nbytes % target.itemsize:
        raise ValueError(f"asarray: {buffer.nbytes:,} bytes are not a multiple of {target}'s "
                         f"{target.itemsize}")
    values = np.frombuffer(buffer, target.numpy)
    try:
        return values if shape is None else values.reshape(shape)
    except ValueError:
        raise ValueError(f"asarray: {values.size:,} elements of {target} cannot have the shape "
                         f"{shape}") from None


def asarray(obj, /, dtype=None, *, device=None, copy=None, shape=None):
    """Convert an object to an array.

    Parameters
    ----------
    obj : Array, number, nested sequence, Buffer, or array of another library
        Arrays on the host, and page-locked and managed Buffers, are copied to the device. For other
        Buffers, and for arrays on a device with ``__dlpack__`` or ``__cuda_array_interface__``, the
        result is a view; read-only arrays are copied.
    dtype : DType, optional
        The element type of the result. Default: an array's own type; Python numbers become bool,
        int64, float32 or complex64.
    device : Device or int, optional
        The device of the result. Default: the array's own device, or the current device for other
        objects.
    copy : bool, optional
        With True, the elements are always copied. With False, a ValueError is raised if a copy is
        needed. Default: they are copied if needed.
    shape : int or tuple of int, optional
        The shape of a Buffer's elements, for which `dtype` is required. Default: one dimension.

    Returns
    -------
    Array
        An Array; `obj` itself if it is one and neither its type nor its device changes, and no copy
        is asked for.

    Raises
    ------
    ValueError
        Rows have different lengths, a copy is needed and ``copy=False``, or the size of the
        elements differs from that of the Buffer.
    TypeError
        Elements are not numbers, `dtype` is missing for a Buffer, or `shape` is given for another
        object.
    OverflowError
        An int is out of the type's range.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    >>> cyrt.asarray([1.5, 2.5])
    Array([1.5, 2.5], dtype=float32)
    """
    cdef bint fresh = False
    if copy is not None:
        check_flags("asarray", copy=copy)
        copy = bool(copy)
    if shape is not None and not isinstance(obj, Buffer):
        raise TypeError("asarray: shape= is the shape of a Buffer's elements; an array of this "
                        f"{type(obj).__name__} has reshape()")
    if isinstance(obj, Buffer) and PyObject_CheckBuffer(obj) and dtype is not None:
        obj = from_host_buffer(obj, _dtype(dtype), shape)
    if isinstance(obj, Array):
        x = obj
    elif isinstance(obj, Buffer) and not PyObject_CheckBuffer(obj):
        x = from_buffer(obj, dtype, shape)
    elif (x := from_tensor(obj, True)) is not None:
        pass
    elif not isinstance(obj, np.ndarray) and (
            on_device(obj) or hasattr(obj, "__cuda_array_interface__")):
        x, read_only = from_other(obj, True)
        if read_only:       # an Array can be written
            if copy is False:
                raise ValueError(f"asarray: the {type(obj).__name__} is read-only and needs a "
                                 "copy, and copy=False was given")
            x = duplicate(x)
            fresh = True
    else:
        if copy is False:
            raise ValueError(f"asarray: a {type(obj).__name__} lies on the host, and copy=False "
                             "was given")
        if recording and (first := followed_in(obj)) is not None:
            return stack_nested(obj, dtype_of_numbers(obj) if dtype is None else dtype,
                                first.device if device is None else device)
        ordinal = chosen_device(device)
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


def from_dlpack(x, /, *, device=None, copy=None):
    """Import an array of another library by DLPack.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or int, optional
        The device of the result. Default: x's device.
    copy : bool, optional
        With True, the elements are always copied. With False, a BufferError is raised if a copy is
        needed. Default: they are copied if needed.

    Returns
    -------
    Array
        A view of device memory that can be written; a copy of host memory, and of read-only memory.
    """
    if copy is not None:
        check_flags("from_dlpack", copy=copy)
        copy = bool(copy)
    if not hasattr(x, "__dlpack__"):
        raise AttributeError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    if on_device(x):
        result, read_only = (x, False) if isinstance(x, Array) else from_other(x, True)
        if read_only:
            if copy is False:
                raise BufferError("from_dlpack: the memory is read-only, a copy is needed")
            result = duplicate(result)
            copy = None
        if device is not None and ordinal_of(device) != device_of(result):
            if copy is False:
                raise BufferError("from_dlpack: another device needs a copy")
            return to_device(result, device)
        return duplicate(result) if copy else result
    if copy is False:
        raise BufferError("from_dlpack: the memory lies on the host, a copy is needed")
    return from_host(x, None, chosen_device(device))


cdef Array make(shape, int code, device):
    cdef long long[MAX_NDIM] dims
    cdef int ndim = dims_of(shape, dims)
    return new_array(chosen_device(device), code, ndim, dims)


cdef int chosen_device(object device) except -1:
    return current_ordinal() if device is None else ordinal_of(device)


cdef Array make_like(x, dtype, device):
    cdef Array other = check_array(x, "x")
    return new_array(device_of(other) if device is None else ordinal_of(device),
                     other.code if dtype is None else _dtype(dtype).code, other.ndim_, other.dims)


cdef Array fill_array(Array x, value):
    fill(x, value)
    return x


def empty(shape, dtype=None, *, device=None):
    """Allocate an array with undefined values.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the dimensions.
    dtype : DType, optional
        The element type. Default: float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        An array of the shape and type.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.empty((2, 3), dtype=cyrt.float64)
    >>> x.shape, x.dtype
    ((2, 3), cyrt.float64)
    """
    return make(shape, code_of(dtype, DEFAULTS["f"]), device)


def zeros(shape, dtype=None, *, device=None):
    """Create an array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the dimensions.
    dtype : DType, optional
        The element type. Default: float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        An array of the shape and type.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return fill_array(make(shape, code_of(dtype, DEFAULTS["f"]), device), 0)


def ones(shape, dtype=None, *, device=None):
    """Create an array of ones.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the dimensions.
    dtype : DType, optional
        The element type. Default: float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        An array of the shape and type.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.ones(3, dtype=cyrt.int32)
    Array([1, 1, 1], dtype=int32)
    """
    return fill_array(make(shape, code_of(dtype, DEFAULTS["f"]), device), 1)


def full(shape, fill_value, dtype=None, *, device=None):
    """Create an array of one number.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the dimensions.
    fill_value : number or Array
        The value of all elements; an Array must have no dimensions.
    dtype : DType, optional
        The element type. Default: the Array's type, or bool, int64, float32 or complex64 for a
        Python number.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        An array of the shape and type.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64)
    """
    cdef int code
    value = number_of(fill_value, "full", "fill_value")
    if dtype is not None:
        code = _dtype(dtype).code
    else:
        code = (<Array>fill_value).code if isinstance(fill_value, Array) else code_of_number(value)
    return fill_array(make(shape, code, device), value)


def empty_like(x, /, dtype=None, *, device=None):
    """Allocate an array of x's shape, type and device with undefined values.

    Parameters
    ----------
    x : Array
        The array whose shape, type and device are used.
    dtype : DType, optional
        The element type. Default: x's type.
    device : Device or int, optional
        Default: x's device.

    Returns
    -------
    Array

    Examples
    --------
    >>> import cyrt
    >>> cyrt.empty_like(cyrt.ones((2, 3))).shape
    (2, 3)
    """
    return make_like(x, dtype, device)


def zeros_like(x, /, dtype=None, *, device=None):
    """Create an array of zeros of x's shape, type and device.

    Parameters
    ----------
    x : Array
        The array whose shape, type and device are used.
    dtype : DType, optional
        The element type. Default: x's type.
    device : Device or int, optional
        Default: x's device.

    Returns
    -------
    Array

    Examples
    --------
    >>> import cyrt
    >>> cyrt.zeros_like(cyrt.ones(3))
    Array([0., 0., 0.], dtype=float32)
    """
    return fill_array(make_like(x, dtype, device), 0)


def ones_like(x, /, dtype=None, *, device=None):
    """Create an array of ones of x's shape, type and device.

    Parameters
    ----------
    x : Array
        The array whose shape, type and device are used.
    dtype : DType, optional
        The element type. Default: x's type.
    device : Device or int, optional
        Default: x's device.

    Returns
    -------
    Array

    Examples
    --------
    >>> import cyrt
    >>> cyrt.ones_like(cyrt.zeros(3), dtype="int32")
    Array([1, 1, 1], dtype=int32)
    """
    return fill_array(make_like(x, dtype, device), 1)


def full_like(x, /, fill_value, dtype=None, *, device=None):
    """Create an array of one number, of x's shape, type and device.

    Parameters
    ----------
    x : Array
        The array whose shape, type and device are used.
    fill_value : number or Array
        The value of all elements; an Array must have no dimensions.
    dtype : DType, optional
        The element type. Default: x's type.
    device : Device or int, optional
        Default: x's device.

    Returns
    -------
    Array

    Examples
    --------
    >>> import cyrt
    >>> cyrt.full_like(cyrt.zeros(3), 7)
    Array([7., 7., 7.], dtype=float32)
    """
    value = number_of(fill_value, "full_like", "fill_value")
    return fill_array(make_like(x, dtype, device), value)


cdef object number_of(object value, str name, str argument):
    """Return a Python number, also for an Array of no dimensions."""
    if isinstance(value, Array) and (<Array>value).ndim_ == 0:
        refuse_number(value, f"{name}: {argument}")
        return value.item()
    number = python_number(value)
    if not isinstance(number, (int, float, complex)):
        raise TypeError(f"{name}: {argument}: expected a number, got {type(value).__name__}")
    return number
