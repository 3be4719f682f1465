"""Reductions that ignore NaN."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.numpy.coercion import to_inexact
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array, check_real
from cyrt.ops.copy import astype
from cyrt.ops.scan import cumprod, cumsum
from cyrt.ops.ternary import where

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _check_real(x: Array, name: str) -> Array:
    if check_array(x, f"{name}: x").dtype.kind == "c":
        raise TypeError(f"{name}: x: expected a real type, got {x.dtype}")
    return x


def _replace_nan(x: Array, value: float, name: str) -> Array:
    """Replace each NaN by a number."""
    if check_array(x, f"{name}: x").dtype.kind not in "fc":
        return x
    return where(elementary.isnan(x), value, x)


def nansum(x: Array, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The sum over axes of elements that are not NaN; see :func:`cyrt.sum`.

    Parameters
    ----------
    x, axis, dtype, keepdims
        As for :func:`cyrt.sum`.

    Returns
    -------
    Array
        An array of the shape without the axes; 0 where all elements are NaN.
    """
    return reduce.sum(_replace_nan(x, 0, "nansum"), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Array, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The product over axes of elements that are not NaN; see :func:`cyrt.prod`.

    Parameters
    ----------
    x, axis, dtype, keepdims
        As for :func:`cyrt.prod`.

    Returns
    -------
    Array
        An array of the shape without the axes; 1 where all elements are NaN.
    """
    return reduce.prod(_replace_nan(x, 1, "nanprod"), axis=axis, dtype=dtype, keepdims=keepdims)


def nanmax(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The largest element over axes that is not NaN; NaN if all are NaN. See :func:`cyrt.max`.

    Parameters
    ----------
    x, axis, keepdims
        As for :func:`cyrt.max`.

    Returns
    -------
    Array
        An array of the shape without the axes.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        There are no elements along the axes.
    """
    return _extreme(reduce.max, x, -inf, axis, keepdims, "nanmax")


def nanmin(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The smallest element over axes that is not NaN; NaN if all are NaN. See :func:`cyrt.max`.

    Parameters
    ----------
    x, axis, keepdims
        As for :func:`cyrt.min`.

    Returns
    -------
    Array
        An array of the shape without the axes.

    Raises
    ------
    TypeError
        x is complex.
    ValueError
        There are no elements along the axes.
    """
    return _extreme(reduce.min, x, inf, axis, keepdims, "nanmin")


def _extreme(
    function: Callable[..., Array], x: Array, least: float, axis: Any, keepdims: bool, name: str
) -> Array:
    found = function(_replace_nan(_check_real(x, name), least, name), axis=axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return found
    nothing = reduce.all(elementary.isnan(x), axis=axis, keepdims=keepdims)
    return where(nothing, nan, found)


def nanargmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The index of the largest element along an axis that is not NaN; 0 if all are NaN.

    Parameters
    ----------
    x, axis, keepdims
        As for :func:`cyrt.argmax`.

    Returns
    -------
    Array
        An array of int64.

    Notes
    -----
    NaN is treated as minus infinity, as in NumPy: if all elements are NaN or minus infinity, the
    index may be that of a NaN.
    """
    return reduce.argmax(
        _replace_nan(_check_real(x, "nanargmax"), -inf, "nanargmax"), axis=axis, keepdims=keepdims
    )


def nanargmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The index of the smallest element along an axis that is not NaN; 0 if all are NaN.

    Parameters
    ----------
    x, axis, keepdims
        As for :func:`cyrt.argmin`.

    Returns
    -------
    Array
        An array of int64.

    Notes
    -----
    NaN is treated as infinity, as in NumPy: if all elements are NaN or infinity, the index may be
    that of a NaN.
    """
    return reduce.argmin(
        _replace_nan(_check_real(x, "nanargmin"), inf, "nanargmin"), axis=axis, keepdims=keepdims
    )


def nancumsum(x: Array, /, axis: int | None = None, dtype: Any = None) -> Array:
    """The sums of all elements up to each one, where NaN counts as 0; see :func:`cyrt.cumsum`.

    Parameters
    ----------
    x, axis, dtype
        As for :func:`cyrt.cumsum`.

    Returns
    -------
    Array
    """
    return cumsum(_replace_nan(x, 0, "nancumsum"), axis, dtype)


def nancumprod(x: Array, /, axis: int | None = None, dtype: Any = None) -> Array:
    """The products of all elements up to each one, where NaN counts as 1; see :func:`cyrt.cumprod`.

    Parameters
    ----------
    x, axis, dtype
        As for :func:`cyrt.cumprod`.

    Returns
    -------
    Array
    """
    return cumprod(_replace_nan(x, 1, "nancumprod"), axis, dtype)


def _cast_input(x: Array, dtype: Any, name: str) -> Array:
    """Check an array, and cast it to a floating-point type unless that is None."""
    if dtype is None:
        return check_array(x, f"{name}: x")
    if _dtype(dtype).kind not in "fc":
        raise TypeError(f"{name}: dtype: expected a floating-point type, got {_dtype(dtype)}")
    return astype(check_array(x, f"{name}: x"), dtype, copy=False)


def nanmean(x: Array, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """The mean over axes of elements that are not NaN; see :func:`cyrt.mean`.

    Parameters
    ----------
    x, axis, dtype, keepdims
        As for :func:`cyrt.mean`.

    Returns
    -------
    Array
        An array of the shape without the axes; NaN where all elements are NaN.
    """
    x = to_inexact(_cast_input(x, dtype, "nanmean"))
    total = _sum_values(_replace_nan(x, 0, "nanmean"), axis, keepdims)
    return astype(total / _count_values(x, axis, keepdims), x.dtype, copy=False)


def _sum_type(x: Array) -> Any:
    """The type of sums: float32 for 16-bit floats, whose own type may overflow."""
    return _dtype("float32") if x.dtype.itemsize < 4 else x.dtype


def _sum_values(x: Array, axis: Any, keepdims: bool) -> Array:
    return reduce.sum(x, axis=axis, dtype=_sum_type(x), keepdims=keepdims)


def _count_values(x: Array, axis: Any, keepdims: bool) -> Array:
    """Count the elements over axes that are not NaN, as the type of sums."""
    count = reduce.count_nonzero(x == x, axis=axis, keepdims=keepdims)
    return astype(count, _sum_type(x).real)


def nanvar(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Array:
    """The variance over axes of elements that are not NaN.

    Parameters
    ----------
    x : Array
        A real type; integers are cast to float32.
    axis : int or tuple of int, optional
        By default all axes.
    dtype : DType, optional
        A floating-point type, to which elements are cast first.
    ddof : number
        The divisor is the number of elements minus ddof.
    correction : number, optional
        The array API standard's name of ddof; only one of the two may differ from 0.
    keepdims : bool
        Whether the axes are kept with size 1.

    Returns
    -------
    Array
        An array of the shape without the axes; NaN where the divisor is not positive. For integers
        the result is that of :func:`cyrt.var`.
    """
    x = _cast_input(check_real(x, "nanvar: x"), dtype, "nanvar")
    ddof = reduce.correction_of(ddof, correction)
    if x.dtype.kind != "f":
        return reduce.var(x, axis=axis, correction=ddof, keepdims=keepdims)
    wide = astype(x, _sum_type(x), copy=False)
    apart = where(elementary.isnan(x), 0, wide - nanmean(wide, axis, keepdims=True))
    total = _sum_values(apart * apart, axis, keepdims)
    divisor = _count_values(x, axis, keepdims) - ddof
    return astype(where(divisor > 0, total / divisor, nan), x.dtype, copy=False)


def nanstd(
    x: Array,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Array:
    """The standard deviation over axes of elements that are not NaN: the root of
    :func:`cyrt.nanvar`.

    Parameters
    ----------
    x, axis, dtype, ddof, correction, keepdims
        As for :func:`cyrt.nanvar`.

    Returns
    -------
    Array
        An array of the shape without the axes; NaN where the divisor is not positive.
    """
    check_real(x, "nanstd: x")
    return elementary.sqrt(
        nanvar(x, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims)
    )
