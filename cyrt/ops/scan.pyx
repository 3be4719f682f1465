"""Running sums and products, and differences, along an axis."""

from libc.string cimport memcpy, memset

from operator import index

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.families.scan import result as _result
from cyrt.kernels.scanning cimport record_scan
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand, op_code
from cyrt.ndarray cimport Array, densed, device_of, new_array, set_operand, shape_of
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy cimport assign_array, cast
from cyrt.ops.creation import full
from cyrt.ops.elementwise cimport check_out
from cyrt.ops.promotion cimport BOOL, is_number
from cyrt.ops.rows cimport flat, rows_along, rows_back
from cyrt.ops.shapes cimport plus
from cyrt.runtime.stream cimport current_state

cdef int SUM = op_code("cumulative_sum"), PRODUCT = op_code("cumulative_prod")
cdef list results = [_dtype(_result(each)).code for each in DTYPES]     # by type


cdef enum:
    NARROW = 16                 # columns: fewer are laid out as rows


cdef Array scan_along(int op, Array x, int axis, object dtype, bint initial):
    """Cast first, as the standard has it, but to no narrower an integer than is summed up."""
    cdef Operand[2] operands
    cdef long long[MAX_NDIM] dims
    cdef Array result
    cdef int ordinal = device_of(x), code = results[x.code] if dtype is None else _dtype(dtype).code
    cdef int d, last = x.ndim_ - 1, along = axis
    cdef long long rows = 1, n = x.dims[axis], inner = 1
    if code != <int>results[x.code]:
        x = cast(x, code)
    for d in range(axis + 1, x.ndim_):
        inner *= x.dims[d]
    if inner < NARROW:
        x = rows_along(x, axis)
        along = last
        inner = 1
    x = densed(x)
    memcpy(dims, x.dims, x.ndim_ * sizeof(long long))
    for d in range(along):
        rows *= dims[d]
    dims[along] += initial
    result = new_array(ordinal, results[x.code], x.ndim_, dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], x)
    record_scan(encoder_of(current_state(ordinal)), op, x.code, operands, rows, n, inner, initial)
    result = cast(result, code)
    return result if along == axis else rows_back(result, axis)


cdef Array cumulative(int op, str name, object x, object axis, object dtype, bint initial):
    cdef Array array = check_array(x, f"{name}: x")
    if array.ndim_ == 0:
        array = flat(array)
    elif axis is None and array.ndim_ > 1:
        raise ValueError(f"{name}: x has shape {shape_of(array)}: give an axis")
    return scan_along(op, array, 0 if axis is None else axis_of(axis, array.ndim_), dtype, initial)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Sums of the elements up to each, along an axis.

    16-bit floats are summed up in float32. The result does not depend on timing.

    Parameters
    ----------
    x : Array
    axis : int, optional
        Needed where x has more than one dimension.
    dtype : DType, optional
        Of the result; elements are cast to it first. x's own where left out, for integers the
        widest of their kind.
    include_initial : bool
        The result begins with 0 and is one longer.

    Returns
    -------
    Array
        Of x's shape, but for the one element.
    """
    return cumulative(SUM, "cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Products of the elements up to each, along an axis.

    Parameters
    ----------
    x : Array
    axis : int, optional
        Needed where x has more than one dimension.
    dtype : DType, optional
        Of the result; elements are cast to it first. x's own where left out, for integers the
        widest of their kind.
    include_initial : bool
        The result begins with 1 and is one longer.

    Returns
    -------
    Array
        Of x's shape, but for the one element.
    """
    return cumulative(PRODUCT, "cumulative_prod", x, axis, dtype, include_initial)


cdef Array numpy_cumulative(int op, str name, object x, object axis, object dtype, object out):
    cdef Array result
    if axis is None:
        x = flat(check_array(x, f"{name}: x"))
    result = cumulative(op, name, x, axis, dtype, False)
    if out is None:
        return result
    check_out(name, out, result.code, result.ndim_, result.dims)
    assign_array(<Array>out, result)
    return out


def cumsum(x, axis=None, dtype=None, out=None):
    """NumPy's form of :func:`cumulative_sum`: of all elements, in C order, without an axis."""
    return numpy_cumulative(SUM, "cumsum", x, axis, dtype, out)


def cumprod(x, axis=None, dtype=None, out=None):
    """NumPy's form of :func:`cumulative_prod`: of all elements, in C order, without an axis."""
    return numpy_cumulative(PRODUCT, "cumprod", x, axis, dtype, out)


cdef Array join_along(list parts, int axis):
    """Arrays of one type, alike but along the axis, one behind the other."""
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


cdef Array beside(object other, str name, Array x, int axis):
    """What is put before x or behind it, in x's type."""
    cdef Array array
    if is_number(other):
        return full([1 if d == axis else x.dims[d] for d in range(x.ndim_)], other,
                    dtype=DTYPES[x.code], device=device_of(x))
    array = check_array(other, f"diff: {name}")
    shape, expected = shape_of(array), shape_of(x)
    if len(shape) != len(expected) or shape[:axis] != expected[:axis] \
            or shape[axis + 1:] != expected[axis + 1:]:
        raise ValueError(f"diff: {name} has shape {shape}, x {expected}: they may differ along "
                         f"axis {axis} only")
    return cast(array, x.code)


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """Each element less the one before it, along an axis.

    Parameters
    ----------
    x : Array
        Of bool, differences are whether an element is not the one before it.
    n : int
        How many times differences are taken.
    axis : int
    prepend, append : Array or number, optional
        What is put before x and behind it at first: of x's shape but along the axis; cast to x's
        type. Not looked at where n is 0.

    Returns
    -------
    Array
        Of x's type and shape, but n shorter than what there was along the axis.

    Raises
    ------
    ValueError
        n is negative, or more than 0 where x is 0-dimensional.
    """
    cdef Array array = check_array(x, "diff: x")
    cdef int where
    times = index(n)
    if times < 0:
        raise ValueError(f"diff: n: expected 0 or more, got {times}")
    if times == 0:
        return array
    where = axis_of(axis, array.ndim_)
    parts = [beside(each, name, array, where) if each is not x else array
             for name, each in (("prepend", prepend), ("x", x), ("append", append))
             if each is not None]
    if len(parts) > 1:
        array = join_along(parts, where)
    for _ in range(min(times, array.dims[where])):
        behind, before = array[along(where, 1, None)], array[along(where, None, -1)]
        array = behind != before if array.code == BOOL else behind - before
    return array
