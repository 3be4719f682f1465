"""Reductions over axes."""

from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_CheckExact
from libc.math cimport NAN

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin import catalogue
from cyrt.builtin.reduce cimport Finish, record_reduction
from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, new_array_on, set_operand, shape_of
from cyrt.operators import functions
from cyrt.ops.arguments import axes_of, axis_of, check_array, check_flags
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy cimport cast, write_out
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import full
from cyrt.ops.elementwise cimport binary, mask_of
from cyrt.ops.promotion cimport (
    FLOAT32, FLOAT64, is_number, kinds, outputs, python_number, refuse_type,
)
from cyrt.ops.shapes cimport axis_at, reshape_to
from cyrt.ops.tensors cimport view_operand
from cyrt.ops.ternary import where as where_
from cyrt.runtime.memory cimport live_block
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call, refuse_number

# The public names; the stub has them, too.
__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

cdef int SUM = op_code("sum"), PROD = op_code("prod")
cdef int MAX = op_code("max"), MIN = op_code("min")
cdef int ARGMAX = op_code("argmax"), ARGMIN = op_code("argmin")
cdef int ANY = op_code("any"), ALL = op_code("all"), COUNT_NONZERO = op_code("count_nonzero")
cdef int VAR = op_code("var"), LOGSUMEXP = op_code("logsumexp")
# Elementwise operations on two operands.
cdef int ADD = op_code("add"), MULTIPLY = op_code("multiply")
cdef int MAXIMUM = op_code("maximum"), MINIMUM = op_code("minimum")


cdef int refuse_empty(str name, Array x, unsigned long long axes) except -1:
    reduced = tuple([d for d in range(x.ndim_) if axes >> d & 1])
    raise ValueError(f"{name}: expected at least one element over axes {reduced}, got shape "
                     f"{shape_of(x)}")


cdef unsigned long long axes_mask(Array x, object axis) except? 0:
    cdef unsigned long long mask = 0
    cdef int d
    if axis is None:
        return ~<unsigned long long>0 >> (64 - x.ndim_) if x.ndim_ else 0
    if PyLong_CheckExact(axis):
        return <unsigned long long>1 << axis_at(axis, x.ndim_)
    if type(axis) is tuple:
        for each in <tuple>axis:
            if not PyLong_CheckExact(each) or mask >> axis_at(each, x.ndim_) & 1:
                break
            mask |= <unsigned long long>1 << axis_at(each, x.ndim_)
        else:
            return mask
        mask = 0
    for d in axes_of(axis, x.ndim_):
        mask |= <unsigned long long>1 << d
    return mask


cdef inline long long count_along(Array x, unsigned long long axes) noexcept:
    cdef long long count = 1
    cdef int d
    for d in range(x.ndim_):
        if axes >> d & 1:
            count *= x.dims[d]
    return count


cdef int reduced_shape(Array x, unsigned long long axes, bint keepdims, long long* dims) noexcept:
    """Set the shape of a reduction's result; return its number of dimensions."""
    cdef int d, ndim = 0
    for d in range(x.ndim_):
        if not axes >> d & 1:
            dims[ndim] = x.dims[d]
            ndim += 1
        elif keepdims:
            dims[ndim] = 1
            ndim += 1
    return ndim


cdef inline bint keeps_axes(int op, object keepdims, str name=None) except -1:
    if keepdims is False or keepdims is True:
        return keepdims is True
    check_flags(name or catalogue.OPS[op], keepdims=keepdims)
    return bool(keepdims)


cdef Array reduce_array(int op, Array x, unsigned long long axes, object keepdims,
                        const Finish* finish):
    cdef long long[MAX_NDIM] dims
    cdef Operand[2] operands
    cdef StreamState* stream
    cdef Array target
    cdef int ndim, code = outputs[op][x.code]
    if code < 0:
        refuse_type(op, x.code)
    ndim = reduced_shape(x, axes, keeps_axes(op, keepdims), dims)
    stream = current_state(live_block(x).ordinal)
    target = new_array_on(stream, code, ndim, dims)
    set_operand(&operands[0], target)
    set_operand(&operands[1], x)
    record_reduction(encoder_of(stream), op, x.code, operands, x.ndim_, x.dims, axes, finish)
    return target


cdef inline Array array_of(str name, object x):
    return <Array>x if type(x) is Array else check_array(view_operand(x), f"{name}: x")


cdef inline object write_result(str name, Array result, object out):
    """Return the result, or `out` with the result written into it."""
    if out is None:
        return result
    if PyLong_CheckExact(out):
        raise TypeError(f"{name}: out: expected an Array, got {out}; several axes are a tuple, "
                        "such as axis=(0, 1)")
    return write_out(name, result, out)


cdef Array mask_for(str name, object where, Array x):
    """Check a mask and broadcast it to x's shape; None if all elements count."""
    where = mask_of(name, where, x)
    return None if where is None else broadcast_to(where, shape_of(x))


cdef Array replace_masked(str name, Array x, object where, object neutral):
    """Replace the elements at which the mask is false by a number that does not change the
    result."""
    mask = mask_for(name, where, x)
    return x if mask is None else where_(mask, x, neutral)


cdef Array initial_value(str name, object initial, Array x):
    """The initial value of a reduction, as a 0-d array of its result's type."""
    if isinstance(initial, Array) and (<Array>initial).ndim_ == 0:
        refuse_number(initial, f"{name}: initial")
        initial = initial.item()
    if not is_number(initial):
        raise TypeError(f"{name}: initial: expected a number, got {type(initial).__name__}")
    if kinds[x.code] != c"c" and isinstance(python_number(initial), complex):
        raise TypeError(f"{name}: initial: {initial} cannot be cast to {DTYPES[x.code]}")
    return full((), initial, dtype=DTYPES[x.code], device=x.device)


cdef Array reduce_axes(int op, Array x, object axis, object keepdims):
    cdef Finish finish = Finish(1.0, False)
    return reduce_array(op, x, axes_mask(x, axis), keepdims, &finish)


cdef int type_of(str name, object dtype) except -1:
    """Return the code of an argument `dtype`; an int is a misplaced axis, and an error."""
    if PyLong_CheckExact(dtype):
        raise TypeError(f"{name}: dtype: expected an element type, got {dtype}; several axes are a "
                        "tuple, such as axis=(0, 1)")
    return _dtype(dtype).code


cdef Array cast_to_float(Array x, str name=None, object dtype=None):
    """Cast integers to the default type of real numbers, or any array to `dtype`."""
    cdef int code
    if dtype is None:
        if kinds[x.code] in b"biu":
            return cast(x, FLOAT32)
        return x
    code = type_of(name, dtype)
    if kinds[code] not in b"fc":
        raise TypeError(f"{name}: dtype: expected a floating-point type, got {DTYPES[code]}")
    return cast(x, code)


cdef Array accumulate(int op, Array array, object axis, object dtype, object keepdims):
    """Compute a sum or a product of elements that are cast to `dtype` first."""
    cdef Finish finish = Finish(1.0, False)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef int code
    if dtype is None:
        return reduce_array(op, array, axes, keepdims, &finish)
    code = type_of(catalogue.OPS[op], dtype)
    if kinds[code] == c"b":
        raise TypeError(f"{catalogue.OPS[op]}: dtype: expected a numeric type, got bool")
    # A sum of integers of the widest type that is truncated to fewer bits equals the sum in the
    # narrower type, because both are modulo a power of two.
    if kinds[code] not in b"iu" or kinds[array.code] not in b"biu":
        array = cast(array, code)
    return cast(reduce_array(op, array, axes, keepdims, &finish), code)


cdef Array reduce_extreme(int op, int pairwise, object x, object axis, object keepdims,
                          object initial, object where):
    cdef Finish finish = Finish(1.0, False)
    cdef long long[MAX_NDIM] dims
    cdef str name = catalogue.OPS[op]
    cdef Array array = array_of(name, x), begun = None
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef unsigned long long all_axes = axes_mask(array, None)
    if initial is not None:
        begun = initial_value(name, initial, array)
    mask = mask_for(name, where, array)
    if mask is not None:
        if begun is None:
            raise ValueError(f"{name}: where: expected an initial value beside it")
        array = where_(mask, array, begun)
    if array.count == 0 and count_along(array, axes) == 0 \
            and count_along(array, all_axes & ~axes) != 0:
        if begun is None:
            refuse_empty(name, array, axes)
        ndim = reduced_shape(array, axes, keeps_axes(op, keepdims), dims)
        return duplicate(broadcast_to(begun, tuple_of_sizes(ndim, dims)))
    result = reduce_array(op, array, axes, keepdims, &finish)
    return result if begun is None else binary(pairwise, result, begun, None)


cdef Array reduce_index(int op, object x, object axis, object keepdims):
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = array_of(catalogue.OPS[op], x)
    cdef unsigned long long axes
    if axis is not None and not PyLong_CheckExact(axis):
        axis = axis_of(axis, array.ndim_)
    axes = axes_mask(array, axis)
    if array.count == 0 and count_along(array, axes) == 0:
        refuse_empty(catalogue.OPS[op], array, axes)
    return reduce_array(op, array, axes, keepdims, &finish)


cpdef double correction_of(object ddof, object correction) except? -1:
    """Return the number that is subtracted from the number of elements: `correction`, or else
    `ddof`."""
    if correction is None:
        correction = 0 if ddof is None else ddof
    elif ddof is not None and ddof != 0:
        raise ValueError("expected a correction or ddof, which mean the same, got "
                         f"{correction} and {ddof}")
    correction = python_number(correction)
    if PyBool_Check(correction) or not isinstance(correction, (int, float)):
        raise TypeError("correction: expected an int or a float, got "
                        f"{type(correction).__name__}")
    return correction


cdef Array reduce_variance(str name, object x, object axis, object dtype, object ddof,
                           object correction, object keepdims, object where):
    cdef Finish finish = Finish(1.0, name == "std")
    cdef Array array = cast_to_float(array_of(name, x), name, dtype)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef double less = correction_of(ddof, correction)
    mask = mask_for(name, where, array)
    if mask is not None:
        return variance_where(array, mask, axis, less, keepdims, finish.root)
    finish.divisor = count_along(array, axes) - less
    if finish.divisor < 0:
        finish.divisor = 0
    return reduce_array(VAR, array, axes, keepdims, &finish)


cdef Array mean_where(Array x, object mask, object axis, object keepdims):
    """The mean of the elements that a mask selects, computed in float32 at least."""
    x = widen(x)
    count = sum(mask, axis, keepdims=keepdims)
    return sum(x, axis, keepdims=keepdims, where=mask) / cast(count, real_of(x))


cdef Array variance_where(Array x, object mask, object axis, double less, object keepdims,
                           bint root):
    cdef Array away = widen(x)
    if outputs[VAR][x.code] < 0:
        refuse_type(VAR, x.code)
    count = cast(sum(mask, axis, keepdims=True), away.code)
    for _ in range(2):              # the second pass removes the rounding error of the first mean
        away = away - sum(away, axis, keepdims=True, where=mask) / count
    result = sum(away * away, axis, keepdims=keepdims, where=mask)
    result = result / functions.clip(reshape_to("var", count, result.shape, "C", None) - less, 0)
    return cast(functions.sqrt(result) if root else result, x.code)


cdef inline Array widen(Array x):
    return cast(x, FLOAT32) if x.itemsize == 2 else x


cdef inline int real_of(Array x):
    return x.code if kinds[x.code] == c"f" else FLOAT64 if x.itemsize == 16 else FLOAT32


def sum(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Compute the sum over axes; 0 if there are no elements.

    Parameters
    ----------
    x : Array
        An array of a numeric type or bool.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    dtype : DType, optional
        Type of the result, to which elements are cast first. Default: int64 for bool and signed
        integers, uint64 for unsigned ones, otherwise x's type.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    initial : number, optional
        A number that is added to the sum. Default: 0.
    where : Array, bool or sequence of bool, optional
        The elements that count: bools that broadcast to x's shape. Default: all.

    Returns
    -------
    Array
        An array of the shape without the axes. 16-bit floats are added in float32; the order of
        additions is fixed, so that equal inputs give equal results.

    Raises
    ------
    numpy.exceptions.AxisError
        x has no such axis.
    ValueError
        An axis is repeated, or `where` does not broadcast to x's shape.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1, 2], [3, 4]])
    >>> cyrt.sum(x)
    Array(10, dtype=int64)
    >>> cyrt.sum(x, axis=0)
    Array([4, 6], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(sum, (x, axis, dtype, out, keepdims, initial, where))
    cdef Array array = array_of("sum", x)
    if where is not None:
        array = replace_masked("sum", array, where, 0)
    result = accumulate(SUM, array, axis, dtype, keepdims)
    if initial is not None:
        result = binary(ADD, result, initial_value("sum", initial, result), None)
    return write_result("sum", result, out)


def prod(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Compute the product over axes; 1 if there are no elements. See :func:`cyrt.sum`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.prod(cyrt.asarray([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(prod, (x, axis, dtype, out, keepdims, initial, where))
    cdef Array array = array_of("prod", x)
    if where is not None:
        array = replace_masked("prod", array, where, 1)
    result = accumulate(PROD, array, axis, dtype, keepdims)
    if initial is not None:
        result = binary(MULTIPLY, result, initial_value("prod", initial, result), None)
    return write_result("prod", result, out)


def max(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Find the largest element over axes; NaN if an element is NaN.

    Parameters
    ----------
    x : Array
        An array of bool or of a real type.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    initial : number, optional
        The smallest possible result, which is also the result if there are no elements.
    where : Array, bool or sequence of bool, optional
        The elements that count: bools that broadcast to x's shape. `initial` is required with it.
        Default: all.

    Raises
    ------
    TypeError
        x is complex: complex numbers have no order.
    ValueError
        There are no elements along the axes, or `where` is used without `initial`.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1, 4], [3, 2]])
    >>> cyrt.max(x, axis=0)
    Array([3, 4], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(max, (x, axis, out, keepdims, initial, where))
    return write_result("max", reduce_extreme(MAX, MAXIMUM, x, axis, keepdims, initial, where), out)


def min(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Find the smallest element over axes; NaN if an element is NaN. See :func:`cyrt.max`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.min(cyrt.asarray([[1, 4], [3, 2]]), axis=1)
    Array([1, 2], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(min, (x, axis, out, keepdims, initial, where))
    return write_result("min", reduce_extreme(MIN, MINIMUM, x, axis, keepdims, initial, where), out)


def mean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Compute the arithmetic mean over axes; NaN if there are no elements.

    Parameters
    ----------
    x : Array
        An array; integers are converted to float32.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    dtype : DType, optional
        A floating-point type, to which elements are cast first. Default: x's type.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    where : Array, bool or sequence of bool, optional
        The elements that count: bools that broadcast to x's shape. The result is NaN if none
        counts. Default: all.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.mean(x, axis=1)
    Array([1.5, 3.5], dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(mean, (x, axis, dtype, out, keepdims, where))
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = cast_to_float(array_of("mean", x), "mean", dtype)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef long long count = count_along(array, axes)
    keeps_axes(SUM, keepdims, "mean")
    mask = mask_for("mean", where, array)
    if mask is not None:
        return write_result("mean", cast(mean_where(array, mask, axis, keepdims), array.code), out)
    finish.divisor = count if count else NAN
    return write_result("mean", reduce_array(SUM, array, axes, keepdims, &finish), out)


def var(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """Compute the variance over axes: the mean of squared distances from the mean.

    Parameters
    ----------
    x : Array
        A real array; integers are converted to float32.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    dtype : DType, optional
        A floating-point type, to which elements are cast first. Default: x's type.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    ddof : int or float, optional
        NumPy's name of `correction`. With `correction`, it must be 0 or absent.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    correction : int or float, optional
        The number that is subtracted from the number of elements to get the divisor: 1 for the
        estimate of a sample. If the difference is negative, the divisor is 0. Default: 0.
    where : Array, bool or sequence of bool, optional
        The elements that count: bools that broadcast to x's shape. The result is NaN if none
        counts. Default: all.

    Returns
    -------
    Array
        An array of the shape without the axes; NaN if there are no elements. The result is accurate
        even if the mean is much larger than the distances from it.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([1.0, 2.0, 3.0, 4.0])
    >>> cyrt.var(x)
    Array(1.25, dtype=float32)
    >>> cyrt.var(x, correction=1).round(4)
    Array(1.6667, dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(var, (x, axis, dtype, out, ddof, keepdims, correction, where))
    result = reduce_variance("var", x, axis, dtype, ddof, correction, keepdims, where)
    return write_result("var", result, out)


def std(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """Compute the standard deviation over axes: the square root of :func:`cyrt.var`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.std(cyrt.asarray([1.0, 3.0, 1.0, 3.0]))
    Array(1., dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(std, (x, axis, dtype, out, ddof, keepdims, correction, where))
    result = reduce_variance("std", x, axis, dtype, ddof, correction, keepdims, where)
    return write_result("std", result, out)


def any(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Test whether any element over axes is not zero; False if there are no elements.

    Parameters
    ----------
    x : Array
        An array of any type; NaN is not zero.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    where : Array, bool or sequence of bool, optional
        The elements that count: bools that broadcast to x's shape. Default: all.

    Returns
    -------
    Array
        An array of bool.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.any(cyrt.asarray([[0, 1], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    if recording and is_followed(x):
        return record_call(any, (x, axis, out, keepdims, where))
    cdef Array array = array_of("any", x)
    if where is not None:
        array = replace_masked("any", array, where, 0)
    return write_result("any", reduce_axes(ANY, array, axis, keepdims), out)


def all(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Test whether all elements over axes are not zero; True if there are no elements. See
    :func:`cyrt.any`.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([1.0, 2.0, 3.0])
    >>> bool(cyrt.all(x > 0))  # waits for the value
    True
    """
    if recording and is_followed(x):
        return record_call(all, (x, axis, out, keepdims, where))
    cdef Array array = array_of("all", x)
    if where is not None:
        array = replace_masked("all", array, where, 1)
    return write_result("all", reduce_axes(ALL, array, axis, keepdims), out)


def argmax(x, /, axis=None, out=None, *, keepdims=False):
    """Find the index of the largest element along an axis: the first one of equal elements, or the
    first NaN.

    Parameters
    ----------
    x : Array
        An array of bool or of a real type.
    axis : int, optional
        The axis to search along. Default: the flattened array.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.

    Returns
    -------
    Array
        An array of int64.

    Raises
    ------
    ValueError
        There are no elements along the axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.argmax(cyrt.asarray([1.0, 5.0, 3.0]))
    Array(1, dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(argmax, (x, axis, out, keepdims))
    return write_result("argmax", reduce_index(ARGMAX, x, axis, keepdims), out)


def argmin(x, /, axis=None, out=None, *, keepdims=False):
    """Find the index of the smallest element along an axis. See :func:`cyrt.argmax`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.argmin(cyrt.asarray([[4, 1], [0, 2]]), axis=1)
    Array([1, 0], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(argmin, (x, axis, out, keepdims))
    return write_result("argmin", reduce_index(ARGMIN, x, axis, keepdims), out)


def count_nonzero(x, /, axis=None, *, keepdims=False):
    """Count the elements over axes that are not zero, as int64. See :func:`cyrt.any`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.count_nonzero(cyrt.asarray([3, 0, 1, 0]))
    Array(2, dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(count_nonzero, (x, axis, keepdims))
    return reduce_axes(COUNT_NONZERO, array_of("count_nonzero", x), axis, keepdims)


def logsumexp(x, /, axis=None, *, keepdims=False, out=None):
    """Compute the logarithm of the sum of the exponentials over axes.

    Parameters
    ----------
    x : Array
        An array of a real type; bool and integers are converted to float32.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes; ``()`` reduces none.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.

    Returns
    -------
    Array
        An array of the shape without the axes, and of x's type. Intermediate results do not
        overflow; the result is minus infinity if there are no elements.

    Raises
    ------
    TypeError
        x is complex.
    numpy.exceptions.AxisError
        x has no such axis.

    Notes
    -----
    The arguments are those of SciPy's ``scipy.special.logsumexp``, without weights and signs.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.logsumexp(cyrt.asarray([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    if recording and is_followed(x):
        return record_call(logsumexp, (x, axis, keepdims, out))
    result = reduce_axes(LOGSUMEXP, cast_to_float(array_of("logsumexp", x)), axis, keepdims)
    return write_result("logsumexp", result, out)
