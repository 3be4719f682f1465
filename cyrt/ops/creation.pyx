"""Creation of arrays."""

import cmath
import math

from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.number cimport PyIndex_Check
from libc.string cimport memset

import numpy as np

from cyrt.dtypes import DEFAULTS, DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.arange cimport record_arange
from cyrt.builtin.rows.arange import WIDE
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, array_over, device_of, new_array, set_operand, view_of
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype, copy as duplicate, to_device
from cyrt.ops.copy cimport cast, fill
from cyrt.ops.elementwise cimport binary, unary
from cyrt.ops.promotion cimport (
    FLOAT64, INT64, NUM_DTYPES, code_of_number, is_number, python_number, promote, promote_number,
    put_number,
)
from cyrt.runtime.device cimport current_ordinal, ordinal_of
from cyrt.runtime.interop cimport tensor_of
from cyrt.runtime.memory cimport Memory, copy_memory
from cyrt.runtime.stream cimport current_state
from cyrt.shape cimport check_size, dims_of

# Default element types by kind: bool, int, float, complex.
cdef tuple NUMBERS = (False, 0, 0.0, 0j)
# NumPy converts only its own numbers to bfloat16.
cdef dict FROM = {"bfloat16": np.float64}
cdef int ADD = op_code("add"), FLOOR = op_code("floor")
cdef long long SMALL = 1 << 61
# The type that arange's kernel computes in, by element type.
cdef int[NUM_DTYPES] wide_codes
for _each in DTYPES:
    wide_codes[<int>_each.code] = _dtype(WIDE[_each.kind]).code if _each.kind in WIDE else -1


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
        found = _dtype(values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype).code
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
    """Convert a sequence to an operand next to an array: its numbers are weak, as a single one
    is."""
    cdef int code = -1, kind = -1
    join_types(values, 0, &code, &kind)
    code = other.code if code < 0 else code
    if kind >= 0:
        code = promote_number(code, NUMBERS[kind])
    return asarray(values, DTYPES[code], device=device_of(other))


cdef object from_numbers(object values, object target):
    """A NumPy array of the numbers in nested sequences, which may contain arrays."""
    cdef int code = -1, kind = -1
    join_types(values, 0, &code, &kind)
    if target is None:
        if kind >= 0:
            code = code_of_number(NUMBERS[kind]) if code < 0 else \
                promote_number(code, NUMBERS[kind])
        target = DEFAULTS["f"] if code < 0 else DTYPES[code]
    try:
        with np.errstate(all="ignore"):
            return np.array(values, FROM.get(target.name, target.numpy)), target
    except OverflowError as error:
        raise OverflowError(f"asarray: a number is out of range of {target}: {error}") from None
    except ValueError as error:
        ragged = "rows of different lengths: " if "inhomogeneous" in str(error) else ""
        raise ValueError(f"asarray: {ragged}{error}") from None
    except TypeError as error:
        raise TypeError(f"asarray: {error}") from None


cdef Array from_host(object values, object dtype, int ordinal):
    """Copy an object that NumPy understands to a device."""
    cdef long long[MAX_NDIM] dims
    cdef Array x
    target = None if dtype is None else _dtype(dtype)
    if is_number(values):
        if target is None and isinstance(values, np.generic):
            target = _dtype(values.dtype)
        x = new_array(ordinal, code_of_number(values) if target is None else target.code, 0, NULL)
        return filled(x, values)
    if isinstance(values, (list, tuple, range)):
        host, target = from_numbers(values, target)
    else:
        host = np.asarray(values)
        if host.dtype.kind in "OUSVMm" and host.dtype.name != "bfloat16":
            raise TypeError(f"asarray: expected numbers, got {type(values).__name__} of dtype "
                            f"{host.dtype}")
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


cdef Array from_other(obj, bint copy):
    """View the memory of another library's array on a device."""
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
    check_size(ndim, dims)
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


def asarray(obj, /, dtype=None, *, device=None, copy=None):
    """Convert an object to an array.

    Parameters
    ----------
    obj : Array, number, nested sequence, or array of another library
        Host arrays are copied to the device; arrays on a device, with ``__dlpack__`` or
        ``__cuda_array_interface__``, are viewed in place.
    dtype : DType, optional
        Element type of the result. Default: an array's own type; Python numbers become bool, int64,
        float32 or complex64.
    device : Device or int, optional
        Device of the result. Default: the array's own device, or the current device for other
        objects.
    copy : bool, optional
        True always copies. False raises a ValueError if a copy is needed. Default: copy if needed.

    Raises
    ------
    ValueError
        Rows have different lengths, or a copy is needed and ``copy=False``.
    TypeError
        Elements are not numbers.
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
    if isinstance(obj, Array):
        x = obj
    elif not isinstance(obj, np.ndarray) and (
            hasattr(obj, "__cuda_array_interface__") or on_device(obj)):
        x = from_other(obj, False)
    else:
        if copy is False:
            raise ValueError(f"asarray: a {type(obj).__name__} lies on the host, and copy=False "
                             "was given")
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


cdef bint on_device(obj):
    if not hasattr(obj, "__dlpack_device__"):
        return False
    kind, _ = obj.__dlpack_device__()
    return int(kind) in (2, 3, 13)


def from_dlpack(x, /, *, device=None, copy=None):
    """Import an array of another library by DLPack.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or int, optional
        Device of the result. Default: x's device.
    copy : bool, optional
        True always copies. False raises a BufferError if a copy is needed.

    Returns
    -------
    Array
        A view of device memory; a copy of host memory.
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
                     chosen_device(device))


cdef Array make(shape, int code, device):
    cdef long long[MAX_NDIM] dims
    cdef int ndim = dims_of(shape, dims)
    return new_array(chosen_device(device), code, ndim, dims)


cdef inline int chosen_device(object device) except -1:
    return current_ordinal() if device is None else ordinal_of(device)


cdef Array make_like(x, dtype, device):
    cdef Array other = check_array(x, "x")
    return new_array(device_of(other) if device is None else ordinal_of(device),
                     other.code if dtype is None else _dtype(dtype).code, other.ndim_, other.dims)


cdef Array filled(Array x, value):
    fill(x, value)
    return x


def empty(shape, dtype=None, *, device=None):
    """Allocate an array with undefined values.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : DType, optional
        Default: float32.
    device : Device or int, optional
        Default: the current device.

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
    dtype : DType, optional
        Default: float32.
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
    return filled(make(shape, code_of(dtype, DEFAULTS["f"]), device), 0)


def ones(shape, dtype=None, *, device=None):
    """Create an array of ones.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : DType, optional
        Default: float32.
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
    return filled(make(shape, code_of(dtype, DEFAULTS["f"]), device), 1)


def full(shape, fill_value, dtype=None, *, device=None):
    """Create an array of one number.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or Array
        The value of all elements; an Array has no dimensions.
    dtype : DType, optional
        Default: the Array's type, or bool, int64, float32 or complex64 for a Python number.
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
    return filled(make(shape, code, device), value)


def empty_like(x, /, dtype=None, *, device=None):
    """Allocate an array of x's shape, type and device with undefined values."""
    return make_like(x, dtype, device)


def zeros_like(x, /, dtype=None, *, device=None):
    """Create an array of zeros of x's shape, type and device."""
    return filled(make_like(x, dtype, device), 0)


def ones_like(x, /, dtype=None, *, device=None):
    """Create an array of ones of x's shape, type and device."""
    return filled(make_like(x, dtype, device), 1)


def full_like(x, /, fill_value, dtype=None, *, device=None):
    """Create an array of one number of x's shape, type and device."""
    value = number_of(fill_value, "full_like", "fill_value")
    return filled(make_like(x, dtype, device), value)


def arange(start, stop=None, step=1, dtype=None, *, device=None):
    """Create evenly spaced numbers in [start, stop).

    Parameters
    ----------
    start, stop, step : number
        The bounds and the spacing. A single number is the stop, and the start is 0.
    dtype : DType, optional
        Element type. Default: int64 if all three are ints, otherwise float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        A one-dimensional array of ``ceil((stop - start) / step)`` elements.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.arange(5)
    Array([0, 1, 2, 3, 4], dtype=int64)
    >>> cyrt.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    cdef Array x
    if stop is None:
        start, stop = 0, start
    if dtype is None and is_small(start) and is_small(stop) and is_small(step) and step != 0:
        return int_range(start, stop, step, device)
    start, stop, step = [number_of(each, "arange", name) for each, name in (
        (start, "start"), (stop, "stop"), (step, "step"))]
    if isinstance(start, complex) or isinstance(stop, complex) or isinstance(step, complex):
        raise TypeError(f"arange: expected real numbers, got {start}, {stop} and {step}")
    if step == 0:
        raise ValueError("arange: step is 0")
    whole = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
    found = _dtype(dtype) if dtype is not None else DEFAULTS["i" if whole else "f"]
    if found.kind == "b":
        raise TypeError("arange: bool has no evenly spaced numbers")
    if whole:
        count = -((start - stop) // step)
    else:
        count = (stop - start) / step
        if not math.isfinite(count):
            raise ValueError(f"arange: from {start} to {stop} by {step} is not a finite number of "
                             "elements")
        # A step that is infinite, or too large for the quotient, ends after the start.
        count = int(math.copysign(1, count)) if count == 0 != stop - start else math.ceil(count)
    count = max(0, count)
    if count == 1:
        step = 0                # The kernel's product with an infinite step would be NaN.
    x = make((count,), found.code, device)
    if count and found.kind in "iu":
        start, step = int(start), int(start + step) - int(start)
        check_range_of(found, start, count, step)
    write_range(x, start, step)
    return x


cdef inline bint is_small(object number):
    """Return whether a number is an int so small that 64 bits hold the distance of two."""
    cdef int overflow = 0
    cdef long long value
    if not PyLong_CheckExact(number):
        return False
    value = PyLong_AsLongLongAndOverflow(number, &overflow)
    return overflow == 0 and -SMALL < value < SMALL


cdef Array int_range(long long start, long long stop, long long step, object device):
    """Create a range of ints in the default type."""
    cdef long long count
    if step > 0:
        count = (stop - start + step - 1) // step if stop > start else 0
    else:
        count = (start - stop - step - 1) // -step if start > stop else 0
    cdef Array x = new_array(chosen_device(device), INT64, 1, &count)
    cdef Operand[3] operands
    if count:
        memset(operands, 0, sizeof(operands))
        operands[1].value[0] = <unsigned long long>start
        operands[2].value[0] = <unsigned long long>step
        record_range(x, operands)
    return x


cdef int record_range(Array x, Operand* operands) except -1:
    """Record the kernel on the operands of the start and the step."""
    set_operand(&operands[0], x)
    record_arange(encoder_of(current_state(device_of(x))), x.code, operands, x.count)
    return 0


cdef int check_range_of(object dtype, object start, object count, object step) except -1:
    """Raise an OverflowError if the first or the last number is out of the integer type's range."""
    span = 1 << 8 * dtype.itemsize
    least = -span // 2 if dtype.kind == "i" else 0
    for each in (start, start + (count - 1) * step):
        if not least <= each < least + span:
            raise OverflowError(f"arange: the integer {each} is out of range of {dtype}")
    return 0


cdef object wrap_number(object number, object dtype):
    """Wrap an integer to 64 bits: the kernel treats signed and unsigned ones alike."""
    if dtype.kind not in "iu":
        return number
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


cdef int write_range(Array x, start, step) except -1:
    """Write start + i * step into the elements of a dense array."""
    cdef Operand[3] operands
    cdef int wide = wide_codes[x.code]
    if x.count == 0:
        return 0
    dtype = DTYPES[x.code]
    memset(operands, 0, sizeof(operands))
    put_number(wide, wrap_number(start, dtype), operands[1].value)
    put_number(wide, wrap_number(step, dtype), operands[2].value)
    return record_range(x, operands)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, *, device=None):
    """Create evenly spaced numbers over an interval, with exact ends.

    Parameters
    ----------
    start, stop : number
    num : int
        The number of elements.
    dtype : DType, optional
        Element type. Default: float32, or complex64 if an end is complex. Integers are rounded
        down.
    device : Device or int, optional
        Default: the current device.
    endpoint : bool
        Whether stop is the last number; otherwise it would be the next one.
    retstep : bool
        Whether to return the spacing, too.

    Returns
    -------
    Array
        An array of shape ``(num,)``; with `retstep` a tuple of it and the spacing, which is NaN if
        there is none.
    """
    cdef Array x, result
    cdef long long count
    ends = [number_of(each, "linspace", name) for each, name in ((start, "start"), (stop, "stop"))]
    if not PyIndex_Check(num):
        raise TypeError(f"linspace: num: expected an int, got {type(num).__name__}")
    if num < 0:
        raise ValueError(f"linspace: num: expected 0 or more, got {num}")
    complex_ = isinstance(ends[0], complex) or isinstance(ends[1], complex)
    found = _dtype(dtype) if dtype is not None else DEFAULTS["c" if complex_ else "f"]
    if complex_ and found.kind != "c":
        raise TypeError(f"linspace: complex ends for {found}")
    # Integers are converted from floats.
    result = x = make((num,), found.code if found.kind in "fc" else FLOAT64, device)
    count = x.count
    intervals = max(1, count - 1 if endpoint else count)
    step = (ends[1] - ends[0]) / intervals
    if not cmath.isfinite(step) and all(map(cmath.isfinite, ends)):   # The distance overflows.
        step = ends[1] / intervals - ends[0] / intervals
    write_range(x, 0 if found.kind in "iu" else ends[0], step)
    if found.kind in "iu":
        # Whole steps stay exact because the step is rounded before the sum.
        binary(ADD, x, ends[0], x)
        result = cast(unary(FLOOR, x, None), found.code)
        ends = [math.floor(each) for each in ends]
        if count:
            fill(view_of(result, result.code, 0, NULL, NULL, 0), ends[0])
    elif found.kind == "b":
        result = cast(x, found.code)
    if endpoint and count > 1:
        fill(view_of(result, result.code, 0, NULL, NULL, count - 1), ends[1])
    if not retstep:
        return result
    return result, step if count > (1 if endpoint else 0) else math.nan


cdef object number_of(object value, str name, str argument):
    """Return a Python number, also for an Array of no dimensions."""
    if isinstance(value, Array) and (<Array>value).ndim_ == 0:
        return value.item()
    number = python_number(value)
    if not isinstance(number, (int, float, complex)):
        raise TypeError(f"{name}: {argument}: expected a number, got {type(value).__name__}")
    return number
