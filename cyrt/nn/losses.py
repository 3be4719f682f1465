"""Losses and their gradients, computed by existing operations."""

from __future__ import annotations

from collections.abc import Callable

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.nn.activations import relu, softplus
from cyrt.nn.checks import check_alike, check_floating, check_gradient, positive_number, wide_type
from cyrt.ops.arguments import check_bool
from cyrt.ops.functions import abs as _abs
from cyrt.ops.functions import log, log1p, sigmoid, sign, square
from cyrt.ops.reduce import mean
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.ternary import clip
from cyrt.tape import differentiable

_LEAST_LOG = -100.0
_LEAST_VARIANCE = 1e-12


@differentiable
def mse_loss(x: Array, targets: Array, reduction: str = "mean") -> Array:
    """Compute the squares of the differences of predictions and targets.

    Parameters
    ----------
    x : Array
        The predictions: float16, bfloat16, float32 or float64.
    targets : Array
        The correct values, of x's type and shape.
    reduction : str
        ``"mean"`` or ``"sum"`` of the elements' losses, or ``"none"``.

    Returns
    -------
    Array
        A 0-dimensional array of x's type, or for ``"none"`` one of x's shape. It is computed in
        float32, or for float64 in float64; the mean of no elements is NaN.

    Raises
    ------
    TypeError
        x is not an array of one of these types, or the targets have another type.
    ValueError
        The targets have another shape, or `reduction` is another text.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.mse_loss``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.mse_loss(cyrt.asarray([1.0, 3.0]), cyrt.asarray([1.0, 1.0]))
    Array(2., dtype=float32)
    """
    return _loss("mse_loss", x, targets, reduction, lambda a, b: square(a - b))


def mse_loss_vjp(g: Array, x: Array, targets: Array, reduction: str = "mean") -> Array:
    """Compute the gradient of :func:`mse_loss` with respect to the predictions.

    Parameters
    ----------
    g : Array
        The gradient of the loss, of its shape and x's type.
    x, targets, reduction
        As for :func:`mse_loss`.

    Returns
    -------
    Array
        ``2 (x - targets) g``; if the loss is a mean, it is divided by the number of elements. It
        has x's shape and type. The gradient of the targets is its negative.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`mse_loss`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([1.0, 3.0]), cyrt.asarray([1.0, 1.0])
    >>> cyrt.nn.mse_loss_vjp(cyrt.asarray(1.0), x, targets)
    Array([0., 2.], dtype=float32)
    """
    return _slope("mse_loss_vjp", g, x, targets, reduction, lambda a, b: a - b, 2.0)


@differentiable
def l1_loss(x: Array, targets: Array, reduction: str = "mean") -> Array:
    """Compute the absolute differences of predictions and targets.

    Parameters
    ----------
    x, targets, reduction
        As for :func:`mse_loss`.

    Returns
    -------
    Array
        As for :func:`mse_loss`.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`mse_loss`.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.l1_loss``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.l1_loss(cyrt.asarray([1.0, 3.0]), cyrt.asarray([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    return _loss("l1_loss", x, targets, reduction, lambda a, b: _abs(a - b))


def l1_loss_vjp(g: Array, x: Array, targets: Array, reduction: str = "mean") -> Array:
    """Compute the gradient of :func:`l1_loss` with respect to the predictions.

    Parameters
    ----------
    g : Array
        The gradient of the loss, of its shape and x's type.
    x, targets, reduction
        As for :func:`l1_loss`.

    Returns
    -------
    Array
        ``sign(x - targets) g``; if the loss is a mean, it is divided by the number of elements. It
        has x's shape and type. The gradient of the targets is its negative.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([1.0, 3.0]), cyrt.asarray([1.0, 1.0])
    >>> cyrt.nn.l1_loss_vjp(cyrt.asarray(1.0), x, targets)
    Array([0. , 0.5], dtype=float32)
    """
    return _slope("l1_loss_vjp", g, x, targets, reduction, lambda a, b: sign(a - b))


@differentiable
def huber_loss(x: Array, targets: Array, reduction: str = "mean", delta: float = 1.0) -> Array:
    """Compute a loss that is quadratic for small differences, and linear for large ones.

    Parameters
    ----------
    x, targets, reduction
        As for :func:`mse_loss`.
    delta : float
        A positive number. The loss of a difference d is ``d * d / 2`` if ``abs(d)`` is at most
        delta, and otherwise ``delta (abs(d) - delta / 2)``.

    Returns
    -------
    Array
        As for :func:`mse_loss`.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`mse_loss`; or delta is not a positive number.

    Notes
    -----
    Huber, Annals of Mathematical Statistics 35 (1964). This is PyTorch's
    ``torch.nn.functional.huber_loss``.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([1.0, 3.0]), cyrt.asarray([0.0, 0.0])
    >>> cyrt.nn.huber_loss(x, targets, "none")
    Array([0.5, 2.5], dtype=float32)
    """
    most = positive_number(delta, "huber_loss", "delta")

    def loss(a: Array, b: Array) -> Array:
        difference = a - b
        limited = clip(difference, -most, most)
        return limited * (difference - 0.5 * limited)

    return _loss("huber_loss", x, targets, reduction, loss)


def huber_loss_vjp(
    g: Array, x: Array, targets: Array, reduction: str = "mean", delta: float = 1.0
) -> Array:
    """Compute the gradient of :func:`huber_loss` with respect to the predictions.

    Parameters
    ----------
    g : Array
        The gradient of the loss, of its shape and x's type.
    x, targets, reduction, delta
        As for :func:`huber_loss`.

    Returns
    -------
    Array
        The differences, clipped to -delta and delta, times g; if the loss is a mean, divided by the
        number of elements. It has x's shape and type. The gradient of the targets is its negative.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([0.5, 3.0]), cyrt.asarray([0.0, 0.0])
    >>> cyrt.nn.huber_loss_vjp(cyrt.asarray(2.0), x, targets)
    Array([0.5, 1. ], dtype=float32)
    """
    name = "huber_loss_vjp"
    most = positive_number(delta, name, "delta")
    return _slope(name, g, x, targets, reduction, lambda a, b: clip(a - b, -most, most))


@differentiable
def binary_cross_entropy(
    x: Array, targets: Array, reduction: str = "mean", *, with_logits: bool = False
) -> Array:
    """Compute the cross entropy of two classes: the negative logarithm of the target's probability.

    Parameters
    ----------
    x : Array
        The probabilities of class 1, or their logits: float16, bfloat16, float32 or float64.
    targets : Array
        The correct probabilities of class 1, from 0 to 1, of x's type and shape.
    reduction : str
        As for :func:`mse_loss`.
    with_logits : bool
        Whether x holds logits, whose sigmoids are the probabilities. Logits keep the accuracy of
        probabilities that are nearly 0 or 1.

    Returns
    -------
    Array
        ``-(targets log(x) + (1 - targets) log(1 - x))``, reduced as by :func:`mse_loss`.
        Logarithms of probabilities are at least -100.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`mse_loss`; or `with_logits` is not a bool.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.binary_cross_entropy``, and for logits
    ``binary_cross_entropy_with_logits``.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([0.5, 0.75]), cyrt.asarray([0.0, 1.0])
    >>> cyrt.nn.binary_cross_entropy(x, targets, "none").round(3)
    Array([0.693, 0.288], dtype=float32)
    """
    name = "binary_cross_entropy"
    check_bool(with_logits, f"{name}: with_logits")

    def of_logits(a: Array, t: Array) -> Array:
        # This order keeps the accuracy where a target is 0 or 1.
        return softplus(-_abs(a)) + (relu(a) * (1 - t) + relu(-a) * t)

    def of_probabilities(a: Array, t: Array) -> Array:
        yes, no = clip(log(a), _LEAST_LOG), clip(log1p(-a), _LEAST_LOG)
        return -(t * yes + (1 - t) * no)

    return _loss(name, x, targets, reduction, of_logits if with_logits else of_probabilities)


def binary_cross_entropy_vjp(
    g: Array, x: Array, targets: Array, reduction: str = "mean", *, with_logits: bool = False
) -> Array:
    """Compute the gradient of :func:`binary_cross_entropy` with respect to x.

    Parameters
    ----------
    g : Array
        The gradient of the loss, of its shape and x's type.
    x, targets, reduction, with_logits
        As for :func:`binary_cross_entropy`.

    Returns
    -------
    Array
        ``(x - targets) / (x (1 - x)) g``, with a divisor of at least 1e-12, or for logits
        ``(sigmoid(x) - targets) g``; if the loss is a mean, divided by the number of elements. It
        has x's shape and type.

    Examples
    --------
    >>> import cyrt
    >>> x, targets = cyrt.asarray([0.5, 0.75]), cyrt.asarray([0.0, 1.0])
    >>> cyrt.nn.binary_cross_entropy_vjp(cyrt.ones(2), x, targets, "none").round(3)
    Array([ 2.   , -1.333], dtype=float32)
    """
    name = "binary_cross_entropy_vjp"
    check_bool(with_logits, f"{name}: with_logits")

    def of_logits(a: Array, t: Array) -> Array:
        return sigmoid(a) - t

    def of_probabilities(a: Array, t: Array) -> Array:
        return (a - t) / clip(a * (1 - a), _LEAST_VARIANCE)

    return _slope(name, g, x, targets, reduction, of_logits if with_logits else of_probabilities)


def _check(name: str, x: Array, targets: Array, reduction: str) -> None:
    check_floating(name, "x", x)
    check_alike(name, "targets", targets, x, "x")
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"{name}: reduction: expected 'mean', 'sum' or 'none', got {show(reduction)}"
        )


def _loss(
    name: str, x: Array, targets: Array, reduction: str, function: Callable[[Array, Array], Array]
) -> Array:
    """Apply a function to predictions and targets in the type of sums, and reduce its result."""
    _check(name, x, targets, reduction)
    wide = wide_type(x)
    losses = function(x.astype(wide, copy=False), targets.astype(wide, copy=False))
    if reduction != "none":
        losses = (mean if reduction == "mean" else _sum)(losses)
    return losses.astype(x.dtype, copy=False)


def _slope(
    name: str,
    g: Array,
    x: Array,
    targets: Array,
    reduction: str,
    function: Callable[[Array, Array], Array],
    factor: float = 1.0,
) -> Array:
    """Multiply the gradient of the result by a loss's derivative: a function times a factor."""
    _check(name, x, targets, reduction)
    check_gradient(name, g, x.shape if reduction == "none" else (), x, "x")
    wide = wide_type(x)
    slope = function(x.astype(wide, copy=False), targets.astype(wide, copy=False))
    if reduction == "mean" and x.size:
        factor /= x.size
    gradient = g.astype(wide, copy=False)
    if factor != 1:
        gradient = gradient * factor
    return (slope * gradient).astype(x.dtype, copy=False)


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_vjp",
    "huber_loss",
    "huber_loss_vjp",
    "l1_loss",
    "l1_loss_vjp",
    "mse_loss",
    "mse_loss_vjp",
]
