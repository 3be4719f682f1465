"""Averages, order statistics and covariances."""

from __future__ import annotations

from collections.abc import Callable
from math import nan, prod
from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray
from cyrt.numpy.coercion import as_array_like, float_types, to_inexact
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import axes_of, check_array, check_flags
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype, check_device, check_devices, write_out
from cyrt.ops.creation import full
from cyrt.ops.gather import take, take_along_axis
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.shapes import expand_dims, moveaxis, reshape
from cyrt.ops.sort import sort
from cyrt.ops.ternary import clip, where
from cyrt.ops.views import diagonal

__all__ = [
    "average",
    "corrcoef",
    "cov",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


def average(
    a: Array,
    axis: Any = None,
    weights: Array | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over axes.

    Parameters
    ----------
    a : Array
        The values. For integers the result is float32; with weights it is computed in float64.
    axis : int or tuple of int, optional
        By default all axes.
    weights : Array, optional
        An array of a's shape, or of the shape of the axes; by default all weights are 1. Where
        their sum is 0 the result is NaN or infinite.
    returned : bool
        Whether to return a tuple of the result and the sum of the weights.
    keepdims : bool
        Whether the axes are kept with size 1.
    """
    check_flags("average", returned=returned, keepdims=keepdims)
    axes = axes_of(axis, check_array(a, "average: a").ndim)
    if weights is None:
        a = to_inexact(a)
        result = reduce.mean(a, axis=axes, keepdims=keepdims)
        total = full((), prod(a.shape[d] for d in axes), dtype=result.dtype, device=a.device)
    else:
        weights = as_array_like(a, weights, "average: weights")
        if weights.shape != a.shape:
            if axis is None:
                raise TypeError(
                    f"average: an axis is needed: shapes {a.shape} and "
                    f"{weights.shape} of the weights differ"
                )
            if weights.shape != tuple(a.shape[d] for d in axes):
                raise ValueError(
                    f"average: weights: expected shape {a.shape}, or that of the "
                    f"axes {axes}, got {weights.shape}"
                )
            order = sorted(range(len(axes)), key=axes.__getitem__)
            weights = reshape(
                weights.transpose(order) if order else weights,
                [size if d in axes else 1 for d, size in enumerate(a.shape)],
            )
        dtype, computed = float_types(a, weights)
        weights = broadcast_to(astype(weights, computed, copy=False), a.shape)
        total = reduce.sum(weights, axis=axes, keepdims=keepdims)
        result = reduce.sum(a * weights, axis=axes, keepdims=keepdims) / total
        result, total = (astype(each, dtype, copy=False) for each in (result, total))
    if not returned:
        return result
    return result, (broadcast_to(total, result.shape) if total.shape != result.shape else total)


def _sort_axes(a: Array, axis: Any, name: str) -> tuple[Array, tuple[int, ...]]:
    """Sort the elements over axes along a new last axis, NaN last; also return the axes."""
    a = to_inexact(check_array(a, f"{name}: a"))
    if a.dtype.kind == "c":
        raise TypeError(
            f"{name}: a: expected a real type, got {a.dtype}, whose numbers have no order; "
            f"{name} of a.real and a.imag is that of their parts"
        )
    axes = axes_of(axis, a.ndim)
    kept = tuple(size for d, size in enumerate(a.shape) if d not in axes)
    rows = moveaxis(a, axes, tuple(range(-len(axes), 0)))
    return sort(reshape(rows, (*kept, prod(a.shape[d] for d in axes)))), axes


def _finish_median(result: Array, ordered: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Set a result to NaN if there is a NaN, which is the last element, and keep the axes."""
    last = ordered[..., -1]
    result = where(elementary.isnan(last), last, result)
    return expand_dims(result, axes) if keepdims else result


def median(
    a: Array, axis: Any = None, *, keepdims: bool = False, out: Array | None = None
) -> Array:
    """The median over axes: the middle element, or the mean of the two middle ones.

    Parameters
    ----------
    a : Array
        A real type; integers are cast to float32.
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes are kept with size 1.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        NaN if an element is NaN, or there are no elements.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.median(cyrt.asarray([5.0, 1.0, 3.0]))
    Array(3., dtype=float32)
    """
    check_flags("median", keepdims=keepdims)
    ordered, axes = _sort_axes(a, axis, "median")
    n = ordered.shape[-1]
    if n == 0:
        return reduce.mean(to_inexact(a), axis=axes, keepdims=keepdims, out=out)
    middle = reduce.mean(ordered[..., (n - 1) // 2 : n // 2 + 1], axis=-1)
    found: Array = write_out("median", _finish_median(middle, ordered, axes, keepdims), out)
    return found


def quantile(
    a: Array,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    out: Array | None = None,
) -> Array:
    """The quantiles over axes, by default interpolated linearly between elements.

    Parameters
    ----------
    a : Array
        A real type; integers are cast to float32.
    q : number, sequence or Array of numbers
        The probabilities, from 0 to 1. Those in an Array are not checked, but clipped.
    axis : int or tuple of int, optional
        By default all axes.
    method : str
        The name of one of NumPy's methods (Hyndman and Fan, "Sample quantiles in statistical
        packages", 1996), see :func:`numpy.quantile`.
    keepdims : bool
        Whether the axes are kept with size 1.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        The quantiles; the dimensions of q come first. A quantile is NaN if an element is NaN.

    Raises
    ------
    ValueError
        The method is unknown, a probability is out of range, or there are no elements.
    """
    found = _quantile(a, q, 1, axis, method, keepdims, "quantile", False)
    result: Array = write_out("quantile", found, out)
    return result


def percentile(
    a: Array,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    out: Array | None = None,
) -> Array:
    """The quantiles of probabilities in percent, from 0 to 100; see :func:`cyrt.quantile`.

    Parameters
    ----------
    a, axis, method, keepdims, out
        As for :func:`cyrt.quantile`.
    q : number, sequence or Array of numbers
        The probabilities in percent, from 0 to 100. Those in an Array are not checked, but clipped.

    Returns
    -------
    Array
        As for :func:`cyrt.quantile`.
    """
    found = _quantile(a, q, 100, axis, method, keepdims, "percentile", False)
    result: Array = write_out("percentile", found, out)
    return result


def nanmedian(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """:func:`cyrt.median` of the elements that are not NaN; NaN where all are NaN.

    Parameters
    ----------
    a, axis, keepdims
        As for :func:`cyrt.median`.

    Returns
    -------
    Array
        As for :func:`cyrt.median`.
    """
    check_flags("nanmedian", keepdims=keepdims)
    ordered, axes = _sort_axes(a, axis, "nanmedian")
    if ordered.shape[-1] == 0:
        return median(a, axis, keepdims=keepdims)
    count = _count(ordered)
    dtype, computed = float_types(ordered)
    low, high = (
        astype(take_along_axis(ordered, each, axis=-1)[..., 0], computed, copy=False)
        for each in (clip((count - 1) // 2, 0), count // 2)
    )
    found = astype(where(count[..., 0] == 0, low, low + high) / 2, dtype, copy=False)
    return expand_dims(found, axes) if keepdims else found


def _count(ordered: Array) -> Array:
    """Count the elements of each row that are not NaN; NaN are at the end of the rows."""
    return reduce.count_nonzero(ordered == ordered, axis=-1, keepdims=True)


def nanquantile(
    a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """:func:`cyrt.quantile` of the elements that are not NaN; NaN where all are NaN.

    Parameters
    ----------
    a, q, axis, method, keepdims
        As for :func:`cyrt.quantile`.

    Returns
    -------
    Array
        As for :func:`cyrt.quantile`.
    """
    return _quantile(a, q, 1, axis, method, keepdims, "nanquantile", True)


def nanpercentile(
    a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """:func:`cyrt.percentile` of the elements that are not NaN; NaN where all are NaN.

    Parameters
    ----------
    a, q, axis, method, keepdims
        As for :func:`cyrt.percentile`.

    Returns
    -------
    Array
        As for :func:`cyrt.quantile`.
    """
    return _quantile(a, q, 100, axis, method, keepdims, "nanpercentile", True)


# The constants alpha and beta of the continuous methods (Hyndman and Fan, Sample quantiles in
# statistical packages, 1996); the others are steps.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "linear", *_CONTINUOUS),
    *("lower", "higher", "midpoint", "nearest"),
)


def _positions(q: Array, most: Any, method: str) -> tuple[Array, Array | None]:
    """The positions of quantiles among elements up to position `most`, and the weights of the next
    elements, if these are not the fractional parts of the positions."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return (most + 1) * q + (alpha + q * (1 - alpha - beta)) - 1, None
    if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        at = (most + 1) * q - 1
        if method == "closest_observation":
            at = at - 0.5
        below = elementary.floor(at)
        exact = at == below
        if method == "averaged_inverted_cdf":
            return at, where(exact, 0.5, 1.0)
        if method == "closest_observation":
            exact = exact & (below % 2 == 1)
        return clip(where(exact, below, below + 1), 0), None
    at = q * most
    if method == "lower":
        at = elementary.floor(at)
    elif method == "higher":
        at = elementary.ceil(at)
    elif method == "nearest":
        at = elementary.round(at)
    elif method == "midpoint":
        at = 0.5 * (elementary.floor(at) + elementary.ceil(at))
    return at, None


def _quantile(
    a: Array, q: Any, whole: int, axis: Any, method: str, keepdims: bool, name: str, but_nan: bool
) -> Array:
    check_flags(name, keepdims=keepdims)
    if method not in _METHODS:
        raise ValueError(
            f"{name}: method: expected one of {', '.join(map(repr, _METHODS))}, got {show(method)}"
        )
    ordered, axes = _sort_axes(a, axis, name)
    n = ordered.shape[-1]
    if n == 0 and not but_nan:
        raise ValueError(f"{name}: expected at least one element, got shape {a.shape}")
    if (q.dtype.kind == "c") if isinstance(q, Array) else np.iscomplexobj(q):
        raise TypeError(f"{name}: q: expected real numbers from 0 to {whole}, got {show(q)}")
    parts = as_array_like(ordered, q, f"{name}: q", "float64")
    for each in () if isinstance(q, Array) else np.asarray(q, np.float64).reshape(-1):
        if not 0 <= each <= whole:
            raise ValueError(f"{name}: q: expected numbers from 0 to {whole}, got {each}")
    if n == 0:
        ordered = full((*ordered.shape[:-1], 1), nan, dtype=ordered.dtype, device=ordered.device)
    most: Any = n - 1
    pick: Callable[..., Array] = take
    if but_nan:
        most, pick = clip(_count(ordered) - 1, 0), take_along_axis
    positions, shares = _positions(
        clip(reshape(astype(parts, "float64"), (-1,)) / whole, 0, 1), most, method
    )
    below = elementary.floor(positions)
    dtype, computed = float_types(ordered)
    share = astype(positions - below if shares is None else shares, computed, copy=False)
    below = astype(below, "int64")
    low, high = (
        astype(pick(ordered, each, axis=-1), computed, copy=False)
        for each in (elementary.minimum(clip(each, 0), most) for each in (below, below + 1))
    )
    apart = high - low
    found = where(share < 0.5, low + apart * share, high - apart * (1 - share))
    # An exact position needs no neighbour, and equal infinities have no difference.
    found = where((share == 0) | (low == high), low, found)
    found = ascontiguousarray(moveaxis(astype(found, dtype, copy=False), -1, 0))
    if not but_nan:
        last = ordered[..., -1]
        found = where(elementary.isnan(last), last, found)
    found = reshape(found, (*parts.shape, *found.shape[1:]))
    if keepdims:
        return expand_dims(found, tuple(parts.ndim + d for d in axes))
    return found


def cov(
    m: Array,
    y: Array | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    *,
    dtype: Any = None,
) -> Array:
    """The covariance matrix of variables.

    Parameters
    ----------
    m : Array
        One-dimensional, or a matrix whose rows are variables and whose columns are observations.
        For integers the result is float32, computed in float64.
    y : Array, optional
        More variables.
    rowvar : bool
        Whether rows are variables; otherwise columns are.
    bias : bool
        Whether the divisor is the number of observations; otherwise it is one less.
    ddof : int, optional
        The difference of the number of observations and the divisor; it overrides `bias`.
    dtype : DType, optional
        The result's type.

    Returns
    -------
    Array
        One row and one column for each variable; 0-dimensional for a single one.
    """
    check_flags("cov", rowvar=rowvar, bias=bias)
    variables = [_variables(m, rowvar, "cov: m")]
    if y is not None:
        variables.append(_variables(y, rowvar, "cov: y"))
        check_device(variables[1], variables[0], "cov", "y")
    dtype, computed = float_types(*variables) if dtype is None else (dtype, dtype)
    rows = concat([astype(each, computed, copy=False) for each in variables], axis=0)
    less = ddof if ddof is not None else 0 if bias else 1
    if less != int(less):
        raise ValueError(f"cov: ddof: expected an int, got {ddof}")
    rows = rows - reduce.mean(rows, axis=1, keepdims=True)
    divisor = max(0, rows.shape[1] - less)
    found = matmul(rows, elementary.conj(rows.T)) / full(
        (), divisor, dtype=rows.dtype, device=rows.device
    )
    found = astype(found, dtype, copy=False)
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(m: Array, rowvar: bool, name: str) -> Array:
    if check_array(m, name).ndim > 2:
        raise ValueError(f"{name}: expected one or two dimensions, got shape {m.shape}")
    if m.ndim < 2:
        return reshape(m, (1, -1))
    return m if rowvar else m.T


def corrcoef(x: Array, y: Array | None = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlation coefficients of variables, from -1 to 1; see :func:`cyrt.cov`.

    Parameters
    ----------
    x, y, rowvar, dtype
        As for :func:`cyrt.cov`; `x` is the argument `m` there.

    Returns
    -------
    Array
        One row and one column for each variable; 0-dimensional for a single one.
    """
    check_devices("corrcoef", x=x, y=y)
    found = cov(x, y, rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    deviations = elementary.sqrt(diagonal(found).real)
    found = found / deviations[:, None] / deviations[None, :]
    if found.dtype.kind == "c":
        return clip(found.real, -1, 1) + 1j * clip(found.imag, -1, 1)
    return clip(found, -1, 1)
