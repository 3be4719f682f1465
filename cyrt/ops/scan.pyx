"""Running sums and products, and differences, along an axis."""

from libc.string cimport memcpy, memset


from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.rows.scan import result as _result
from cyrt.builtin.scan cimport record_scan
from cyrt.builtin.space cimport MAX_NDIM, product_of
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.ops.arguments import axis_of, check_array, check_flags, count_of
from cyrt.ops.copy cimport cast, check_device, write_out
from cyrt.ops.creation import full
from cyrt.ops.promotion cimport BOOL, is_number
from cyrt.ops.shapes cimport axis_back, axis_last, flat, plus
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int SUM = op_code("cumulative_sum"), PRODUCT = op_code("cumulative_prod")
cdef list results = [_dtype(_result(each)).code for each in DTYPES]     # by type


cdef enum:
    NARROW = 16                 # the most columns that are copied to rows first


cdef Array scan_along(int op, Array x, int axis, object dtype, bint initial):
    """Scan after a cast to `dtype`, as the standard requires, but never to a narrower integer."""
    cdef Operand[2] operands
    cdef long long[MAX_NDIM] dims
    cdef Array result
    cdef int ordinal = device_of(x), code = results[x.code] if dtype is None else _dtype(dtype).code
    cdef int along = axis
    cdef long long n = x.dims[axis], inner = product_of(x.dims, axis + 1, x.ndim_)
    if code != <int>results[x.code]:
        x = cast(x, code)
    if inner < NARROW:
        x = axis_last(x, axis)
        along = x.ndim_ - 1
        inner = 1
    x = as_contiguous(x)
    memcpy(dims, x.dims, x.ndim_ * sizeof(long long))
    dims[along] += initial
    result = new_array(ordinal, results[x.code], x.ndim_, dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], x)
    record_scan(encoder_of(current_state(ordinal)), op, x.code, operands,
                product_of(dims, 0, along), n, inner, initial)
    result = cast(result, code)
    return result if along == axis else axis_back(result, axis)


cdef Array cumulative(int op, str name, object x, object axis, object dtype, object initial):
    cdef Array array = check_array(x, f"{name}: x")
    check_flags(name, include_initial=initial)
    if array.ndim_ == 0:
        array = flat(array)
    elif axis is None and array.ndim_ > 1:
        raise ValueError(f"{name}: axis: expected an int for an array of shape {shape_of(array)}, "
                         "got None")
    return scan_along(op, array, 0 if axis is None else axis_of(axis, array.ndim_), dtype, initial)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Compute the sums of the elements up to each one along an axis.

    16-bit floats are added in float32. The result does not depend on the order in which threads
    run.

    Parameters
    ----------
    x : Array
        An array of a numeric type or bool.
    axis : int, optional
        The axis to sum along; required if x has more than one dimension.
    dtype : DType, optional
        The element type of the result, to which elements are cast first. Default: int64 for bool
        and signed integers, uint64 for unsigned ones, otherwise x's type.
    include_initial : bool
        Whether the result begins with 0 and is one element longer.

    Returns
    -------
    Array
        An array of x's shape, one longer along the axis with `include_initial`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.cumulative_sum(cyrt.asarray([1, 2, 3]))
    Array([1, 3, 6], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(cumulative_sum, (x, axis, dtype, include_initial))
    return cumulative(SUM, "cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Compute the products of the elements up to each one along an axis.

    Parameters
    ----------
    x : Array
        An array of a numeric type or bool.
    axis : int, optional
        The axis to multiply along; required if x has more than one dimension.
    dtype : DType, optional
        The element type of the result, to which elements are cast first. Default: int64 for bool
        and signed integers, uint64 for unsigned ones, otherwise x's type.
    include_initial : bool
        Whether the result begins with 1 and is one element longer.

    Returns
    -------
    Array
        An array of x's shape, one longer along the axis with `include_initial`.
    """
    if recording and is_followed(x):
        return record_call(cumulative_prod, (x, axis, dtype, include_initial))
    return cumulative(PRODUCT, "cumulative_prod", x, axis, dtype, include_initial)


cdef object numpy_cumulative(int op, str name, object x, object axis, object dtype, object out):
    cdef Array result
    if axis is None:
        x = flat(check_array(x, f"{name}: x"))
    result = cumulative(op, name, x, axis, dtype, False)
    return write_out(name, result, out)


def cumsum(x, axis=None, dtype=None, out=None):
    """Compute :func:`cumulative_sum` in NumPy's form: without an axis x is flattened in C order.

    Parameters
    ----------
    x, dtype
        As for :func:`cumulative_sum`.
    axis : int, optional
        The axis. Default: x is flattened in C order first.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.

    Returns
    -------
    Array
    """
    if recording and is_followed(x):
        return record_call(cumsum, (x, axis, dtype, out))
    return numpy_cumulative(SUM, "cumsum", x, axis, dtype, out)


def cumprod(x, axis=None, dtype=None, out=None):
    """Compute :func:`cumulative_prod` in NumPy's form: without an axis x is flattened in C order.

    Parameters
    ----------
    x, dtype
        As for :func:`cumulative_prod`.
    axis : int, optional
        The axis. Default: x is flattened in C order first.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.

    Returns
    -------
    Array
    """
    if recording and is_followed(x):
        return record_call(cumprod, (x, axis, dtype, out))
    return numpy_cumulative(PRODUCT, "cumprod", x, axis, dtype, out)


cdef Array join_along(list parts, int axis):
    """Join arrays of one type, equal except along the axis."""
    cdef long long[MAX_NDIM] dims
    cdef Array first = parts[0], result, part
    cdef long long begin = 0
    memcpy(dims, first.dims, first.ndim_ * sizeof(long long))
    dims[axis] = 0
    for part in parts:
        dims[axis] = plus(dims[axis], part.dims[axis])
    result = new_array(device_of(first), first.code, first.ndim_, dims)
    for part in parts:
        result[along(axis, begin, begin + part.dims[axis])] = part
        begin += part.dims[axis]
    return result


cdef tuple along(int axis, begin, end):
    return (slice(None),) * axis + (slice(begin, end),)


cdef Array convert_joined(object other, str name, Array x, int axis):
    """Convert an array to prepend or to append to x's type."""
    cdef Array array
    if is_number(other):
        return full([1 if d == axis else x.dims[d] for d in range(x.ndim_)], other,
                    dtype=DTYPES[x.code], device=device_of(x))
    array = check_array(other, f"diff: {name}")
    check_device(array, x, f"diff: {name}")
    shape, expected = shape_of(array), shape_of(x)
    if len(shape) != len(expected) or shape[:axis] != expected[:axis] \
            or shape[axis + 1:] != expected[axis + 1:]:
        raise ValueError(f"diff: {name} has shape {shape}, x {expected}: they may differ along "
                         f"axis {axis} only")
    return cast(array, x.code)


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """Compute the differences of neighbouring elements along an axis.

    Parameters
    ----------
    x : Array
        An array of a numeric type or bool. For bool, a difference says whether two neighbours
        differ.
    n : int
        The number of times that differences are computed.
    axis : int
        The axis along which neighbours are compared.
    prepend, append : Array or number, optional
        Arrays that are joined to x first. They have x's shape except along the axis, and are cast
        to x's type. They are ignored if n is 0.

    Returns
    -------
    Array
        An array of x's type and shape, n shorter along the axis than the joined array.

    Raises
    ------
    ValueError
        n is negative, or is more than 0 and x is 0-dimensional.
    """
    cdef Array array = check_array(x, "diff: x")
    cdef int where
    times = count_of(n, "diff: n")
    if times == 0:
        return array
    where = axis_of(axis, array.ndim_)
    parts = [convert_joined(each, name, array, where) if each is not x else array
             for name, each in (("prepend", prepend), ("x", x), ("append", append))
             if each is not None]
    if len(parts) > 1:
        array = join_along(parts, where)
    for _ in range(min(times, array.dims[where])):
        behind, before = array[along(where, 1, None)], array[along(where, None, -1)]
        array = behind != before if array.code == BOOL else behind - before
    return array
