"""Gradients of log_softmax and logsumexp, computed by existing operations."""

from __future__ import annotations

import math

from cyrt.ndarray import Array
from cyrt.nn.checks import check_floating, check_gradient, wide_type
from cyrt.nn.softmax import softmax
from cyrt.ops.arguments import axes_of, axis_of, check_flags
from cyrt.ops.functions import exp
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.shapes import permute_dims, reshape


def log_softmax_vjp(g: Array, y: Array, axis: int = -1) -> Array:
    """Compute the gradient of :func:`log_softmax` from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of log_softmax's result, of y's type and shape.
    y : Array
        The result of log_softmax.
    axis : int
        The axis of the call of log_softmax.

    Returns
    -------
    Array
        ``g - exp(y) * sum(g)``, of y's shape and type, computed in float32, or for float64 in
        float64. It is NaN along the axis where y is NaN.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        The errors of :func:`log_softmax`; or g differs from y in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> y = cyrt.nn.log_softmax(cyrt.asarray([1.0, 1.0]))
    >>> cyrt.nn.log_softmax_vjp(cyrt.asarray([1.0, 0.0]), y)
    Array([ 0.5, -0.5], dtype=float32)
    """
    name = "log_softmax_vjp"
    check_floating(name, "y", y)
    if y.ndim == 0:
        raise ValueError(f"{name}: y: expected at least one dimension, got shape ()")
    along = axis_of(axis, y.ndim)
    check_gradient(name, g, y.shape, y, "y")
    wide = wide_type(y)
    slope = g.astype(wide)
    found = slope - exp(y.astype(wide)) * _sum(slope, axis=along, keepdims=True)
    return found.astype(y.dtype)


def logsumexp_vjp(
    g: Array, x: Array, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False
) -> Array:
    """Compute the gradient of :func:`logsumexp`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and x's type.
    x : Array
        The input, of a real floating-point type.
    axis, keepdims
        As for :func:`logsumexp`.

    Returns
    -------
    Array
        ``g * softmax(x)`` over the axes, of x's shape and type. It is NaN over the axes where
        :func:`softmax` is: where an element is NaN or infinity, or all are -infinity.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        The errors of :func:`logsumexp`; or x has no floating-point type, or g has another shape
        than the result or another type than x.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.logsumexp_vjp(cyrt.asarray(3.0), cyrt.asarray([1.0, 1.0, 1.0]))
    Array([1., 1., 1.], dtype=float32)
    """
    name = "logsumexp_vjp"
    check_floating(name, "x", x)
    check_flags(name, keepdims=keepdims)
    axes = axes_of(axis, x.ndim)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    others = [i for i in range(x.ndim) if i not in axes]
    shape = kept if keepdims else tuple(x.shape[i] for i in others)
    check_gradient(name, g, shape, x, "x")
    # All axes become one, which is the last.
    order = [*others, *axes]
    rows = permute_dims(x, order)
    count = math.prod(x.shape[i] for i in axes)
    weights = softmax(reshape(rows, (*(x.shape[i] for i in others), count)))
    back = sorted(range(x.ndim), key=order.__getitem__)
    return permute_dims(reshape(weights, rows.shape), back) * reshape(g, kept)


__all__ = ["log_softmax_vjp", "logsumexp_vjp"]
