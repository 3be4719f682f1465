"""Averages, order statistics and covariances."""

from __future__ import annotations

from math import nan, prod
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import array_beside, float_types, inexact
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import axes_of, check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import full
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.shapes import broadcast_to, expand_dims, moveaxis, reshape
from cyrt.ops.sort import sort
from cyrt.ops.take import take, take_along_axis
from cyrt.ops.ternary import clip, where
from cyrt.ops.views import diagonal


def average(a: Array, axis: Any = None, weights: Array | None = None, returned: bool = False,
            *, keepdims: bool = False) -> Any:
    """The weighted mean over axes.

    Parameters
    ----------
    a : Array
        Integers give float32; with weights they are computed in float64.
    axis : int or tuple of int, optional
        All where left out.
    weights : Array, optional
        Of a's shape, or of that of the axes. Left out: all are 1. Where their sum is 0 the result
        is NaN or infinite.
    returned : bool
        Whether the sum of the weights is returned, too: a tuple of two.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    """
    axes = axes_of(axis, check_array(a, "average: a").ndim)
    if weights is None:
        a = inexact(a)
        result = reduce.mean(a, axis=axes, keepdims=keepdims)
        total = full((), prod(a.shape[d] for d in axes), dtype=result.dtype, device=a.device)
    else:
        weights = array_beside(a, weights, "average: weights")
        if weights.shape != a.shape:
            if axis is None:
                raise TypeError(f"average: an axis is needed: shapes {a.shape} and "
                                f"{weights.shape} of the weights differ")
            if weights.shape != tuple(a.shape[d] for d in axes):
                raise ValueError(f"average: weights: expected shape {a.shape}, or that of the "
                                 f"axes {axes}, got {weights.shape}")
            order = sorted(range(len(axes)), key=axes.__getitem__)
            weights = reshape(weights.transpose(order) if order else weights, [
                size if d in axes else 1 for d, size in enumerate(a.shape)])
        dtype, computed = float_types(a, weights)
        weights = broadcast_to(astype(weights, computed, copy=False), a.shape)
        total = reduce.sum(weights, axis=axes, keepdims=keepdims)
        result = reduce.sum(a * weights, axis=axes, keepdims=keepdims) / total
        result, total = (astype(each, dtype, copy=False) for each in (result, total))
    if not returned:
        return result
    return result, (broadcast_to(total, result.shape) if total.shape != result.shape else total)


def _ordered(a: Array, axis: Any, name: str) -> tuple[Array, tuple[int, ...]]:
    """The elements over axes in order along the last one of the result, NaN last; and the axes."""
    a = inexact(check_array(a, f"{name}: a"))
    axes = axes_of(axis, a.ndim)
    kept = tuple(size for d, size in enumerate(a.shape) if d not in axes)
    rows = moveaxis(a, axes, tuple(range(-len(axes), 0)))
    return sort(reshape(rows, (*kept, prod(a.shape[d] for d in axes)))), axes


def _finished(result: Array, ordered: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """NaN where one is among the elements, which is then the last; and the axes of size 1."""
    last = ordered[..., -1]
    result = where(elementary.isnan(last), last, result)
    return expand_dims(result, axes) if keepdims else result


def median(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The element in the middle of those over axes, or the mean of the two there.

    Parameters
    ----------
    a : Array
        Of a real type; integers are taken as float32.
    axis : int or tuple of int, optional
        All where left out.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        NaN where one is among the elements, and of no elements.
    """
    ordered, axes = _ordered(a, axis, "median")
    n = ordered.shape[-1]
    if n == 0:
        return reduce.mean(inexact(a), axis=axes, keepdims=keepdims)
    middle = reduce.mean(ordered[..., (n - 1) // 2:n // 2 + 1], axis=-1)
    return _finished(middle, ordered, axes, keepdims)


def quantile(a: Array, q: Any, axis: Any = None, *, method: str = "linear",
             keepdims: bool = False) -> Array:
    """The elements that parts of those over axes are below, between two by their distances.

    Parameters
    ----------
    a : Array
        Of a real type; integers are taken as float32.
    q : number, sequence or Array of numbers
        The parts, from 0 to 1. Those of an Array are not looked at: out of range counts as the
        nearest.
    axis : int or tuple of int, optional
        All where left out.
    method : str
        ``"linear"``, the only one.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        q's dimensions come first. NaN where one is among the elements.

    Raises
    ------
    ValueError
        Another method, a part out of range, no elements.
    """
    return _quantile(a, q, 1, axis, method, keepdims, "quantile", False)


def percentile(a: Array, q: Any, axis: Any = None, *, method: str = "linear",
               keepdims: bool = False) -> Array:
    """:func:`cyrt.quantile` with the parts in hundredths, from 0 to 100."""
    return _quantile(a, q, 100, axis, method, keepdims, "percentile", False)


def nanmedian(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """:func:`cyrt.median` of what is not NaN; NaN where all are."""
    ordered, axes = _ordered(a, axis, "nanmedian")
    if ordered.shape[-1] == 0:
        return median(a, axis, keepdims=keepdims)
    count = _count(ordered)
    dtype, computed = float_types(ordered)
    low, high = (astype(take_along_axis(ordered, each, axis=-1)[..., 0], computed, copy=False)
                 for each in (clip((count - 1) // 2, 0), count // 2))
    found = astype(where(count[..., 0] == 0, low, low + high) / 2, dtype, copy=False)
    return expand_dims(found, axes) if keepdims else found


def _count(ordered: Array) -> Array:
    """How many of each row are not NaN; these come last."""
    return reduce.count_nonzero(ordered == ordered, axis=-1, keepdims=True)


def nanquantile(a: Array, q: Any, axis: Any = None, *, method: str = "linear",
                keepdims: bool = False) -> Array:
    """:func:`cyrt.quantile` of what is not NaN; NaN where all are."""
    return _quantile(a, q, 1, axis, method, keepdims, "nanquantile", True)


def nanpercentile(a: Array, q: Any, axis: Any = None, *, method: str = "linear",
                  keepdims: bool = False) -> Array:
    """:func:`cyrt.percentile` of what is not NaN; NaN where all are."""
    return _quantile(a, q, 100, axis, method, keepdims, "nanpercentile", True)


def _quantile(a: Array, q: Any, whole: int, axis: Any, method: str, keepdims: bool,
              name: str, but_nan: bool) -> Array:
    if method != "linear":
        raise ValueError(f"{name}: method: expected 'linear', got {method!r}")
    ordered, axes = _ordered(a, axis, name)
    n = ordered.shape[-1]
    if n == 0 and not but_nan:
        raise ValueError(f"{name}: of no elements there is none; the shape is {a.shape}")
    parts = array_beside(ordered, q, f"{name}: q", "float64")
    for each in () if isinstance(q, Array) else np.asarray(q, np.float64).reshape(-1):
        if not 0 <= each <= whole:
            raise ValueError(f"{name}: q: expected numbers from 0 to {whole}, got {each}")
    if n == 0:
        ordered = full((*ordered.shape[:-1], 1), nan, dtype=ordered.dtype, device=ordered.device)
    most, pick = n - 1, take
    if but_nan:
        most, pick = clip(_count(ordered) - 1, 0), take_along_axis
    places = clip(reshape(astype(parts, "float64"), (-1,)) / whole, 0, 1) * most
    below = elementary.floor(places)
    dtype, computed = float_types(ordered)
    share = astype(places - below, computed, copy=False)
    below = astype(below, "int64")
    low, high = (astype(pick(ordered, each, axis=-1), computed, copy=False)
                 for each in (below, elementary.minimum(below + 1, most)))
    apart = high - low
    found = where(share < 0.5, low + apart * share, high - apart * (1 - share))
    # Whatever is next to it, and whatever infinities are apart.
    found = where((share == 0) | (low == high), low, found)
    found = moveaxis(astype(found, dtype, copy=False), -1, 0)
    if not but_nan:
        last = ordered[..., -1]
        found = where(elementary.isnan(last), last, found)
    found = reshape(found, (*parts.shape, *found.shape[1:]))
    if keepdims:
        return expand_dims(found, tuple(parts.ndim + d for d in axes))
    return found


def cov(m: Array, y: Array | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, *, dtype: Any = None) -> Array:
    """The covariances of variables.

    Parameters
    ----------
    m : Array
        Of one or two dimensions: a variable a row, an observation a column. Integers give float32,
        and are computed in float64.
    y : Array, optional
        More variables.
    rowvar : bool
        False: a variable a column.
    bias : bool
        Whether the sums are divided by the number of observations, else by one less.
    ddof : int, optional
        What the divisor is less than that number, whatever `bias` is.
    dtype : DType, optional
        Of the result.

    Returns
    -------
    Array
        A row and a column for each variable; 0-dimensional for one.
    """
    variables = [_variables(m, rowvar, "cov: m")]
    if y is not None:
        variables.append(_variables(y, rowvar, "cov: y"))
    dtype, computed = float_types(*variables) if dtype is None else (dtype, dtype)
    rows = concat([astype(each, computed, copy=False) for each in variables], axis=0)
    less = ddof if ddof is not None else 0 if bias else 1
    if less != int(less):
        raise ValueError(f"cov: ddof: expected an int, got {ddof}")
    rows = rows - reduce.mean(rows, axis=1, keepdims=True)
    divisor = max(0, rows.shape[1] - less)
    found = matmul(rows, elementary.conj(rows.T)) / full((), divisor, dtype=rows.dtype,
                                                         device=rows.device)
    found = astype(found, dtype, copy=False)
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(m: Array, rowvar: bool, name: str) -> Array:
    if check_array(m, name).ndim > 2:
        raise ValueError(f"{name}: expected one or two dimensions, got shape {m.shape}")
    if m.ndim < 2:
        return reshape(m, (1, -1))
    return m if rowvar else m.T


def corrcoef(x: Array, y: Array | None = None, rowvar: bool = True, *,
             dtype: Any = None) -> Array:
    """The correlation coefficients of variables, from -1 to 1; see :func:`cyrt.cov`."""
    found = cov(x, y, rowvar, dtype=dtype)
    if found.ndim == 0:
        return found / found
    deviations = elementary.sqrt(diagonal(found).real)
    found = found / deviations[:, None] / deviations[None, :]
    if found.dtype.kind == "c":
        return clip(found.real, -1, 1) + 1j * clip(found.imag, -1, 1)
    return clip(found, -1, 1)
