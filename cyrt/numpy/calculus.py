"""Differences, integrals, interpolation, convolution and polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray
from cyrt.numpy.coercion import as_array_like, float_types, is_number
from cyrt.numpy.padding import pad
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import axes_of, axis_of, check_array
from cyrt.ops.copy import astype, check_device, check_devices
from cyrt.ops.creation import empty_like, ones, zeros_like
from cyrt.ops.gather import take
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.promotion import result_type
from cyrt.ops.scan import cumulative_sum, diff
from cyrt.ops.search import searchsorted
from cyrt.ops.shapes import flip, moveaxis, ravel, reshape
from cyrt.ops.sort import argsort
from cyrt.ops.ternary import clip, where
from cyrt.ops.views import windows

__all__ = [
    "convolve",
    "correlate",
    "ediff1d",
    "gradient",
    "interp",
    "polyval",
    "trapezoid",
    "unwrap",
]


def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbouring elements of a flattened array.

    Parameters
    ----------
    ary : Array
    to_end, to_begin : Array, number or sequence, optional
        Values after and before the differences, cast to ary's type.
    """
    flat = ravel(check_array(ary, "ediff1d: ary"))
    ends = [
        None
        if each is None
        else ravel(astype(as_array_like(flat, each, f"ediff1d: {name}"), flat.dtype))
        for name, each in (("to_begin", to_begin), ("to_end", to_end))
    ]
    parts = [each for each in (ends[0], diff(flat), ends[1]) if each is not None]
    return concat(parts) if len(parts) > 1 else parts[0]


def trapezoid(y: Array, x: Array | None = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis, by the trapezoidal rule.

    Parameters
    ----------
    y : Array
        The values. For integers the result is float32, computed in float64.
    x : Array or sequence of numbers, optional
        The positions of the values: one for each index of the axis, or an array of y's shape.
    dx : number or Array
        The distance between values if there is no x.
    axis : int
    """
    along = axis_of(axis, check_array(y, "trapezoid: y").ndim)
    steps = x if x is not None else dx
    if x is not None or not is_number(dx):
        steps = as_array_like(y, steps, f"trapezoid: {'dx' if x is None else 'x'}")
    dtype, computed = float_types(*(each for each in (y, steps) if isinstance(each, Array)))
    dtype = result_type(dtype, steps)
    y = astype(y, computed, copy=False)
    if x is not None:
        positions = astype(steps, computed, copy=False)
        steps = diff(positions, axis=-1 if positions.ndim == 1 else axis)
        if positions.ndim == 1:
            steps = reshape(steps, [-1 if d == along else 1 for d in range(y.ndim)])
    around = (slice(None),) * along
    sums = y[(*around, slice(1, None))] + y[(*around, slice(None, -1))]
    total = reduce.sum(steps * sums / 2.0, axis=axis)  # x may have more dimensions than y
    return astype(total, dtype, copy=False)


def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The gradient along axes, by central differences, and one-sided differences at the ends.

    Parameters
    ----------
    f : Array
        For integers the result is float32, computed in float64.
    *varargs : number, Array or sequence of numbers
        The distance between elements, or their positions along the axis; one for all axes or one
        for each. The default is 1.
    axis : int or tuple of int, optional
        By default all axes.
    edge_order : {1, 2}
        The order of the differences at the ends.

    Returns
    -------
    Array, or tuple of Arrays
        One array of f's shape for each axis.

    Raises
    ------
    ValueError
        An axis has fewer than ``edge_order + 1`` elements, or the number of positions differs from
        the number of elements.
    TypeError
        The number of `varargs` is wrong.
    """
    check_array(f, "gradient: f")
    axes = axes_of(axis, f.ndim)
    distances = (
        (1.0,) * len(axes) if not varargs else varargs * len(axes) if len(varargs) == 1 else varargs
    )
    if len(distances) != len(axes):
        raise TypeError(f"gradient: expected 1 or {len(axes)} distances, got {len(varargs)}")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order: expected 1 or 2, got {edge_order}")
    slopes = tuple(
        _gradient_along(f, each, along, edge_order)
        for each, along in zip(distances, axes, strict=True)
    )
    return slopes[0] if len(slopes) == 1 else slopes


def _gradient_along(f: Array, positions: Any, axis: int, edge_order: int) -> Array:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            f"gradient: axis {axis}: expected at least {edge_order + 1} elements, got {n}"
        )
    dtype, computed = float_types(f)
    if isinstance(positions, np.generic):
        positions = positions.item()  # NumPy's unsigned numbers wrap around
    if not is_number(positions):
        positions = as_array_like(f, positions, "gradient: varargs")
        computed = float_types(f, positions)[1]
        positions = astype(positions, computed, copy=False)
    y, result = astype(moveaxis(f, axis, -1), computed, copy=False), empty_like(f, dtype)
    around = (slice(None),) * axis
    if isinstance(positions, Array) and positions.ndim:
        if positions.shape != (n,):
            raise ValueError(
                f"gradient: expected {n} positions along axis {axis}, got shape {positions.shape}"
            )
        steps = diff(positions)
        before, behind = steps[:-1], steps[1:]
        both = before + behind
        # With equal steps the middle element has no effect, even if it is not finite.
        middle = where(behind == before, 0, y[..., 1:-1] * ((behind - before) / (before * behind)))
        inner = (
            y[..., :-2] * (-behind / (before * both))
            + middle
            + y[..., 2:] * (before / (behind * both))
        )
        first, last = (steps[0], steps[min(1, n - 2)]), (steps[-1], steps[max(-2, 1 - n)])
    else:
        inner = (y[..., 2:] - y[..., :-2]) / (2 * positions)
        first = last = (positions, positions)
    result[(*around, slice(1, -1))] = moveaxis(inner, -1, axis)
    result[(*around, 0)] = _slope_at_end(y, first, edge_order)
    result[(*around, -1)] = -_slope_at_end(flip(y, axis=-1), last, edge_order)
    return result


def _slope_at_end(y: Array, steps: tuple[Any, Any], edge_order: int) -> Array:
    """The slope at the first element, from the elements after it."""
    near, far = steps
    slope: Array
    if edge_order == 1:
        slope = (y[..., 1] - y[..., 0]) / near
        return slope
    both = near + far
    slope = (
        y[..., 0] * (-(near + both) / (near * both))
        + y[..., 1] * (both / (near * far))
        + y[..., 2] * (-near / (far * both))
    )
    return slope


def interp(
    x: Any, xp: Array, fp: Array, left: Any = None, right: Any = None, period: float | None = None
) -> Array:
    """Interpolate linearly between points.

    Parameters
    ----------
    x : Array or number
        The positions at which values are interpolated.
    xp : Array
        The positions of the points, ascending, one-dimensional.
    fp : Array
        The values of the points, one for each.
    left, right : number, optional
        The results before the first point and after the last one; by default the values of these.
    period : float, optional
        The period of the positions; then the points need not be ascending, and `left` and `right`
        are not used.

    Returns
    -------
    Array
        An array of x's shape, and of the float type to which x, xp and fp promote. It is computed
        in that type, or in float64 if one of them is an integer array.
    """
    check_array(xp, "interp: xp")
    check_array(fp, "interp: fp")
    check_devices("interp", xp=xp, fp=fp, x=x, left=left, right=right)
    points = [each for each in (x, xp, fp) if isinstance(each, Array)]
    ends = [each for each in (left, right) if each is not None]
    dtype, computed = float_types(*points)
    dtype = result_type(dtype, *ends)
    x = as_array_like(xp, x, "interp: x", "float64")
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError(f"interp: x, xp: expected real types, got {x.dtype} and {xp.dtype}")
    if xp.ndim != 1 or fp.shape != xp.shape or xp.size == 0:
        raise ValueError(
            "interp: xp, fp: expected as many of one dimension, at least one, got "
            f"shapes {xp.shape} and {fp.shape}"
        )
    x, xp = (astype(each, computed.real, copy=False) for each in (x, xp))
    fp = astype(fp, computed, copy=False)
    if period is not None:
        if period == 0:
            raise ValueError("interp: period: expected a number that is not 0")
        x, xp = x % abs(period), xp % abs(period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concat([xp[-1:] - abs(period), xp, xp[:1] + abs(period)])
        fp = concat([fp[-1:], fp, fp[:1]])
        left = right = None
    result = fp[0] + zeros_like(x) if xp.size == 1 else _interpolate(x, xp, fp)
    result = where(x == xp[-1], fp[-1], result)
    result = where(x < xp[0], fp[0] if left is None else left, result)
    result = where(x > xp[-1], fp[-1] if right is None else right, result)
    return astype(result, dtype, copy=False)


def _interpolate(x: Array, xp: Array, fp: Array) -> Array:
    positions = clip(searchsorted(xp, x, side="right") - 1, 0, xp.size - 2)
    x0, x1, y0, y1 = (take(each, positions + step) for each in (xp, fp) for step in (0, 1))
    slope = (y1 - y0) / (x1 - x0)
    result, other = y0 + slope * (x - x0), y1 + slope * (x - x1)
    # Next to an infinity one of the two formulas may give a wrong NaN.
    other = where(elementary.isnan(other) & (y0 == y1), y0, other)
    result = where(elementary.isnan(result) & (x == x), other, result)
    return where(x == x0, y0, result)


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """The convolution of two vectors.

    Parameters
    ----------
    a, v : Array
        One-dimensional arrays of numeric types, with at least one element each.
    mode : {"full", "same", "valid"}
        ``"full"``: all ``len(a) + len(v) - 1`` elements. ``"same"``: the middle ones, as many as
        the longer vector has. ``"valid"``: those where the vectors overlap completely.

    Notes
    -----
    In the modes ``"full"`` and ``"same"``, the ends of floating-point results are computed from a
    square matrix whose sides are as long as the shorter vector.
    """
    for name, each in (("a", a), ("v", v)):
        if check_array(each, f"convolve: {name}").ndim > 1 or each.size == 0:
            raise ValueError(
                f"convolve: {name}: expected one dimension and at least one element, "
                f"got shape {each.shape}"
            )
    check_device(v, a, "convolve", "v")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode: expected 'full', 'same' or 'valid', got {show(mode)}")
    a, v = ravel(a), ravel(v)
    if v.size > a.size:
        a, v = v, a
    n, m = a.size, v.size
    before, behind = {
        "full": (m - 1, m - 1),
        "same": (m - 1 - (m - 1) // 2, (m - 1) // 2),
        "valid": (0, 0),
    }[mode]
    v, rows = flip(v), windows(pad(a, (before, behind)) if before else a, m)
    if not before or result_type(a, v).kind not in "fc":
        return matmul(rows, v)
    # At the ends, a zero of the padding may not meet an infinity.
    inside = windows(pad(ones(n, dtype="bool", device=a.device), (before, behind)), m)
    count = rows.shape[0]
    parts = [matmul(rows[before : count - behind], v)]
    for side, part in ((0, slice(before)), (1, slice(count - behind, count))):
        if rows[part].size:
            own = where(inside[part], v, 0)
            parts.insert(side * 2, matmul(rows[part][:, None, :], own[:, :, None])[:, 0, 0])
    return concat(parts)


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """The cross-correlation of two vectors: the convolution with v's conjugate in reverse order.

    Parameters
    ----------
    a, v, mode
        As for :func:`cyrt.convolve`.

    Returns
    -------
    Array
        A one-dimensional array of the promoted type.
    """
    check_array(a, "correlate: a")
    check_device(check_array(v, "correlate: v"), a, "correlate", "v")
    if v.size > a.size:
        return _conjugate(flip(correlate(v, a, mode)))
    return convolve(a, _conjugate(flip(v)), mode)


def _conjugate(x: Array) -> Array:
    return elementary.conj(x) if x.dtype.kind == "c" else x


def polyval(p: Any, x: Any) -> Array:
    """Evaluate a polynomial.

    Parameters
    ----------
    p : Array of one dimension, or sequence of numbers
        The coefficients, from the highest power to the constant.
    x : Array, number or sequence of numbers
        The positions at which it is evaluated; an Array, unless p is one.
    """
    like = check_array(x if isinstance(x, Array) else p, "polyval: x or p")
    x = as_array_like(like, x, "polyval: x")
    check_devices("polyval", x=x, p=p)
    result = zeros_like(x)
    for each in p:
        result = result * x + each
    return result


def unwrap(
    p: Array, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Array:
    """Add multiples of a period, so that neighbours along an axis differ by half of it at most.

    Parameters
    ----------
    p : Array
        An array of a real type, angles for example. If the period is an int, an integer type is
        kept.
    discont : float, optional
        The smallest difference that is changed; by default, and at least, half the period.
    axis : int
    period : float

    Returns
    -------
    Array
        p's shape.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.unwrap(cyrt.asarray([0, 3, 2, 1, 0]), period=4)
    Array([ 0, -1, -2, -3, -4], dtype=int64)
    """
    if check_array(p, "unwrap: p").dtype.kind not in "iuf":
        raise TypeError(f"unwrap: p: expected a real type, got {p.dtype}")
    along = axis_of(axis, p.ndim)
    dtype = result_type(p, period)
    line = moveaxis(astype(p, dtype, copy=False), along, -1)
    change = diff(line, axis=-1)
    whole = dtype.kind in "iu"
    half: Any = period // 2 if whole else period / 2
    least = -half
    small = elementary.remainder(change - least, period) + least
    if not whole or period % 2 == 0:
        small = where((small == least) & (change > 0), half, small)
    limit = period / 2 if discont is None else discont
    step = where(elementary.abs(change) < limit, 0, small - change)
    result = line.copy()
    result[..., 1:] += cumulative_sum(step, axis=-1)
    return ascontiguousarray(moveaxis(result, -1, along))
