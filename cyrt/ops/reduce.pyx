"""Reductions over axes."""

import builtins

from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_CheckExact
from libc.math cimport NAN
from libc.string cimport memset

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels import catalogue
from cyrt.kernels.reduction cimport record_reduction
from cyrt.kernels.reduction_choice cimport Finish
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand, op_code
from cyrt.ndarray cimport Array, new_array_on, set_operand, shape_of
from cyrt.operators import functions
from cyrt.ops.arguments import axes_of, axis_of, check_array
from cyrt.ops.copy cimport assign_array, cast
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import asarray, full
from cyrt.ops.elementwise cimport binary, check_out
from cyrt.ops.promotion cimport BOOL, FLOAT32, FLOAT64, NUM_DTYPES, is_number, kinds
from cyrt.ops.promotion cimport plain as plain_number
from cyrt.ops.shapes import broadcast_to
from cyrt.ops.ternary import where as choose
from cyrt.runtime.memory cimport live_block
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef enum:
    MAX_OPS = 16

cdef int SUM = op_code("sum"), PROD = op_code("prod")
cdef int MAX = op_code("max"), MIN = op_code("min")
cdef int ARGMAX = op_code("argmax"), ARGMIN = op_code("argmin")
cdef int ANY = op_code("any"), ALL = op_code("all"), COUNT_NONZERO = op_code("count_nonzero")
cdef int VAR = op_code("var"), LOGSUMEXP = op_code("logsumexp")
# Of two operands, element by element.
cdef int ADD = op_code("add"), MULTIPLY = op_code("multiply")
cdef int MAXIMUM = op_code("maximum"), MINIMUM = op_code("minimum")
# Element type of the result, by operation (from the first on) and type; -1: there is no kernel.
cdef signed char[MAX_OPS][NUM_DTYPES] outputs
cdef int first_op


def _fill_outputs():
    global first_op
    rows = [row for row in catalogue.ROWS if row.family == "reduce"]
    codes = {row.op: op_code(row.op) for row in rows}
    first_op = builtins.min(codes.values())
    if builtins.max(codes.values()) - first_op >= MAX_OPS:
        raise RuntimeError(f"{len(codes)} reductions, {MAX_OPS} are provided for")
    memset(outputs, -1, sizeof(outputs))
    for row in rows:
        outputs[<int>codes[row.op] - first_op][<int>_dtype(row.dtype).code] = \
            _dtype(row.output).code


_fill_outputs()


cdef int refuse_type(int op, int code) except -1:
    takes = ", ".join(str(DTYPES[i]) for i in range(NUM_DTYPES)
                      if outputs[op - first_op][i] >= 0)
    raise TypeError(f"{catalogue.OPS[op]}: not for {DTYPES[code]}; it takes {takes}")


cdef int refuse_empty(str name, Array x, unsigned long long axes) except -1:
    of = tuple([d for d in range(x.ndim_) if axes >> d & 1])
    raise ValueError(f"{name}: of no elements there is none; the shape is {shape_of(x)}, the axes "
                     f"are {of}")


cdef unsigned long long axes_mask(Array x, object axis) except? 0:
    cdef unsigned long long mask = 0
    cdef long long d
    if axis is None:
        return ~<unsigned long long>0 >> (64 - x.ndim_) if x.ndim_ else 0
    if PyLong_CheckExact(axis) and -x.ndim_ <= axis < x.ndim_:
        d = axis
        return <unsigned long long>1 << (d + x.ndim_ if d < 0 else d)
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


cdef int reduced_dims(Array x, unsigned long long axes, bint keepdims, long long* dims) noexcept:
    """The sizes of what a reduction gives; returns how many there are."""
    cdef int d, ndim = 0
    for d in range(x.ndim_):
        if not axes >> d & 1:
            dims[ndim] = x.dims[d]
            ndim += 1
        elif keepdims:
            dims[ndim] = 1
            ndim += 1
    return ndim


cdef Array reduce_array(int op, Array x, unsigned long long axes, bint keepdims,
                        const Finish* finish):
    cdef long long[MAX_NDIM] dims
    cdef Operand[2] operands
    cdef StreamState* stream
    cdef Array target
    cdef int ndim, code = outputs[op - first_op][x.code]
    if code < 0:
        refuse_type(op, x.code)
    ndim = reduced_dims(x, axes, keepdims, dims)
    stream = current_state(live_block(x).ordinal)
    target = new_array_on(stream, code, ndim, dims)
    set_operand(&operands[0], target)
    set_operand(&operands[1], x)
    record_reduction(encoder_of(stream), op, x.code, operands, x.ndim_, x.dims, axes, finish)
    return target


cdef inline Array given(object x):
    return <Array>x if type(x) is Array else check_array(x, "x")


cdef inline Array handed(str name, Array result, object out):
    """The result, written into `out` where one is given."""
    if out is None:
        return result
    check_out(name, out, result.code, result.ndim_, result.dims)
    assign_array(<Array>out, result)
    return out


cdef Array mask_of(str name, object where, Array x):
    """An Array of bool of x's shape; None where all elements count."""
    if where is None or isinstance(where, (bool, np.bool_)) and where:
        return None
    if isinstance(where, (bool, np.bool_, list, tuple)):
        where = asarray(where, device=x.device)
    if not isinstance(where, Array) or (<Array>where).code != BOOL:
        raise TypeError(f"{name}: where: expected an Array of bool, got "
                        f"{where.dtype if isinstance(where, Array) else type(where).__name__}")
    return broadcast_to(where, shape_of(x))


cdef Array among(str name, object x, object where, object neutral):
    """x where a mask holds; elsewhere a number that does not change the result."""
    cdef Array array = given(x)
    mask = mask_of(name, where, array)
    return array if mask is None else choose(mask, array, neutral)


cdef Array beginning(str name, object initial, Array x):
    """What a reduction begins with, in the type of its result."""
    if isinstance(initial, Array) and (<Array>initial).ndim_ == 0:
        initial = initial.item()
    if not is_number(initial):
        raise TypeError(f"{name}: initial: expected a number, got {type(initial).__name__}")
    if kinds[x.code] != c"c" and isinstance(plain_number(initial), complex):
        raise TypeError(f"{name}: initial: {initial} is none of {DTYPES[x.code]}")
    return full((), initial, dtype=DTYPES[x.code], device=x.device)


cdef Array joined(int op, str name, Array result, object initial):
    """With the number that a reduction begins with."""
    if initial is None:
        return result
    return binary(op, result, beginning(name, initial, result), None)


cdef Array plain(int op, object x, object axis, object keepdims):
    """Of no further arguments."""
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = given(x)
    return reduce_array(op, array, axes_mask(array, axis), keepdims, &finish)


cdef Array floating(Array x, str name=None, object dtype=None):
    """Integers as the default type of real numbers; all as a type that is asked for."""
    cdef int code
    if dtype is None:
        return cast(x, FLOAT32) if kinds[x.code] in b"biu" else x
    code = _dtype(dtype).code
    if kinds[code] not in b"fc":
        raise TypeError(f"{name}: dtype: expected a floating-point type, got {DTYPES[code]}")
    return cast(x, code)


cdef Array accumulated(int op, object x, object axis, object dtype, object keepdims):
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = given(x)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef int code
    if dtype is None:
        return reduce_array(op, array, axes, keepdims, &finish)
    code = _dtype(dtype).code
    if kinds[code] == c"b":
        raise TypeError(f"{catalogue.OPS[op]}: dtype: expected a numeric type, got bool")
    # Of integers the widest type's sum, cut, is that of any: both are modulo a power of two.
    if kinds[code] not in b"iu" or kinds[array.code] not in b"biu":
        array = cast(array, code)
    return cast(reduce_array(op, array, axes, keepdims, &finish), code)


cdef Array extreme(int op, int pairwise, object x, object axis, object keepdims, object initial,
                   object where):
    cdef Finish finish = Finish(1.0, False)
    cdef long long[MAX_NDIM] dims
    cdef Array array = given(x), begun = None
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef unsigned long long all_axes = axes_mask(array, None)
    cdef str name = catalogue.OPS[op]
    if initial is not None:
        begun = beginning(name, initial, array)
    mask = mask_of(name, where, array)
    if mask is not None:
        if begun is None:
            raise ValueError(f"{name}: where: expected an initial value beside it")
        array = choose(mask, array, begun)
    if array.count == 0 and count_along(array, axes) == 0 \
            and count_along(array, all_axes & ~axes) != 0:
        if begun is None:
            refuse_empty(name, array, axes)
        ndim = reduced_dims(array, axes, keepdims, dims)
        return duplicate(broadcast_to(begun, tuple([dims[d] for d in range(ndim)])))
    result = reduce_array(op, array, axes, keepdims, &finish)
    return result if begun is None else binary(pairwise, result, begun, None)


cdef Array place(int op, object x, object axis, object keepdims):
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = given(x)
    cdef unsigned long long axes
    if axis is not None and not PyLong_CheckExact(axis):
        axis = axis_of(axis, array.ndim_)
    axes = axes_mask(array, axis)
    if array.count == 0 and count_along(array, axes) == 0:
        refuse_empty(catalogue.OPS[op], array, axes)
    return reduce_array(op, array, axes, keepdims, &finish)


cpdef double divisor_less(object ddof, object correction) except? -1:
    """The number that is taken from the number of elements; ddof may be 0 beside a correction."""
    if correction is None:
        correction = 0 if ddof is None else ddof
    elif ddof is not None and ddof != 0:
        raise ValueError("expected a correction or ddof, which mean the same, got "
                         f"{correction} and {ddof}")
    correction = plain_number(correction)
    if PyBool_Check(correction) or not isinstance(correction, (int, float)):
        raise TypeError("correction: expected an int or a float, got "
                        f"{type(correction).__name__}")
    return correction


cdef Array variance(str name, object x, object axis, object dtype, object ddof, object correction,
                    object keepdims, object where):
    cdef Finish finish = Finish(1.0, name == "std")
    cdef Array array = floating(given(x), name, dtype)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef double less = divisor_less(ddof, correction)
    mask = mask_of(name, where, array)
    if mask is not None:
        return masked_variance(array, mask, axis, less, keepdims, finish.root)
    finish.divisor = count_along(array, axes) - less
    if finish.divisor < 0:
        finish.divisor = 0
    return reduce_array(VAR, array, axes, keepdims, &finish)


cdef Array masked_mean(Array x, object mask, object axis, object keepdims):
    """In float32 at least."""
    x = wide(x)
    count = sum(mask, axis, keepdims=keepdims)
    return sum(x, axis, keepdims=keepdims, where=mask) / cast(count, real_of(x))


cdef Array masked_variance(Array x, object mask, object axis, double less, object keepdims,
                           bint root):
    cdef Array away = wide(x)
    if outputs[VAR - first_op][x.code] < 0:
        refuse_type(VAR, x.code)
    count = cast(sum(mask, axis, keepdims=True), away.code)
    for _ in range(2):              # again by what the first mean was rounded
        away = away - sum(away, axis, keepdims=True, where=mask) / count
    result = sum(away * away, axis, keepdims=keepdims, where=mask)
    result = result / functions.clip(functions.reshape(count, result.shape) - less, 0)
    return cast(functions.sqrt(result) if root else result, x.code)


cdef inline Array wide(Array x):
    return cast(x, FLOAT32) if x.itemsize == 2 else x


cdef inline int real_of(Array x):
    return x.code if kinds[x.code] == c"f" else FLOAT64 if x.itemsize == 16 else FLOAT32


def sum(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The sum over axes; 0 of no elements.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        All where left out; () for none.
    dtype : DType, optional
        Of the result, to which elements are cast before. Left out: int64 of bool and signed
        integers, uint64 of unsigned ones, else x's.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    initial : number, optional
        What the elements are added to.
    where : Array, bool or sequence of bool, optional
        Of bool, broadcast to x's shape: which elements count. All where left out.

    Returns
    -------
    Array
        16-bit floats are added in float32; partial sums form a tree, the same one each time.

    Raises
    ------
    numpy.exceptions.AxisError
        There is no such axis.
    ValueError
        An axis is named twice; `where` does not broadcast to x's shape.
    """
    if where is not None:
        x = among("sum", x, where, 0)
    return handed("sum", joined(ADD, "sum", accumulated(SUM, x, axis, dtype, keepdims), initial),
                  out)


def prod(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The product over axes; 1 of no elements. See :func:`cyrt.sum`."""
    if where is not None:
        x = among("prod", x, where, 1)
    return handed("prod", joined(MULTIPLY, "prod", accumulated(PROD, x, axis, dtype, keepdims),
                                 initial), out)


def max(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The largest element over axes; NaN where one is among them.

    Parameters
    ----------
    x : Array
        Of a type with an order.
    axis : int or tuple of int, optional
        All where left out; () for none.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    initial : number, optional
        The least result, also of no elements.
    where : Array, bool or sequence of bool, optional
        Of bool, broadcast to x's shape: which elements count; `initial` stands beside it.

    Raises
    ------
    TypeError
        Complex numbers have no order.
    ValueError
        There are no elements along the axes; `where` without `initial`.
    """
    return handed("max", extreme(MAX, MAXIMUM, x, axis, keepdims, initial, where), out)


def min(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The smallest element over axes; NaN where one is among them. See :func:`cyrt.max`."""
    return handed("min", extreme(MIN, MINIMUM, x, axis, keepdims, initial, where), out)


def mean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """The arithmetic mean over axes; NaN of no elements.

    Parameters
    ----------
    x : Array
        Integers are taken as float32.
    axis : int or tuple of int, optional
        All where left out; () for none.
    dtype : DType, optional
        A floating-point type, to which elements are cast before.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    where : Array, bool or sequence of bool, optional
        Of bool, broadcast to x's shape: which elements count; NaN where none does.
    """
    cdef Finish finish = Finish(1.0, False)
    cdef Array array = floating(given(x), "mean", dtype)
    cdef unsigned long long axes = axes_mask(array, axis)
    cdef long long count = count_along(array, axes)
    mask = mask_of("mean", where, array)
    if mask is not None:
        return handed("mean", cast(masked_mean(array, mask, axis, keepdims), array.code), out)
    finish.divisor = count if count else NAN
    return handed("mean", reduce_array(SUM, array, axes, keepdims, &finish), out)


def var(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """The variance over axes: the mean of squared distances from the mean.

    Parameters
    ----------
    x : Array
        Real; integers are taken as float32.
    axis : int or tuple of int, optional
        All where left out; () for none.
    dtype : DType, optional
        A floating-point type, to which elements are cast before.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    ddof : int or float, optional
        NumPy's name of the correction; one of the two may be other than 0.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    correction : int or float, optional
        The sum is divided by the number of elements less this: 1 for a sample's estimate. Where
        that is 0 or less, by 0. Left out: 0.
    where : Array, bool or sequence of bool, optional
        Of bool, broadcast to x's shape: which elements count; NaN where none does.

    Returns
    -------
    Array
        Accurate also where the mean is large beside the distances; NaN of no elements.
    """
    return handed("var", variance("var", x, axis, dtype, ddof, correction, keepdims, where), out)


def std(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """The standard deviation over axes, the root of :func:`cyrt.var`."""
    return handed("std", variance("std", x, axis, dtype, ddof, correction, keepdims, where), out)


def any(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Whether an element over axes is not zero; NaN is not. False of no elements.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        All where left out; () for none.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    where : Array, bool or sequence of bool, optional
        Of bool, broadcast to x's shape: which elements count.

    Returns
    -------
    Array
        Of bool.
    """
    if where is not None:
        x = among("any", x, where, 0)
    return handed("any", plain(ANY, x, axis, keepdims), out)


def all(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Whether no element over axes is zero. True of no elements. See :func:`cyrt.any`."""
    if where is not None:
        x = among("all", x, where, 1)
    return handed("all", plain(ALL, x, axis, keepdims), out)


def argmax(x, /, axis=None, out=None, *, keepdims=False):
    """Where the largest element is along an axis: the first of equal ones, or the first NaN.

    Parameters
    ----------
    x : Array
        Of a type with an order.
    axis : int, optional
        Left out: in the flattened array.
    out : Array, optional
        Takes the result, which may be cast within its kind.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    ValueError
        There are no elements along the axis.
    """
    return handed("argmax", place(ARGMAX, x, axis, keepdims), out)


def argmin(x, /, axis=None, out=None, *, keepdims=False):
    """Where the smallest element is along an axis. See :func:`cyrt.argmax`."""
    return handed("argmin", place(ARGMIN, x, axis, keepdims), out)


def count_nonzero(x, /, axis=None, *, keepdims=False):
    """How many elements over axes are not zero, as int64. See :func:`cyrt.any`."""
    return plain(COUNT_NONZERO, x, axis, keepdims)


def logsumexp(x, /, axis=None, *, keepdims=False):
    """The logarithm of the sum of exp over axes; -infinity of no elements.

    Parameters
    ----------
    x : Array
        Real; integers are taken as float32.
    axis : int or tuple of int, optional
        All where left out; () for none.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        Nothing overflows on the way.
    """
    cdef Array array = floating(given(x))
    return plain(LOGSUMEXP, array, axis, keepdims)
