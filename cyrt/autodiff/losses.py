"""The gradients of losses."""

from __future__ import annotations

import math

from cyrt import tape
from cyrt.ndarray import Array
from cyrt.nn import losses
from cyrt.nn.checks import wide_type
from cyrt.nn.softmax import cross_entropy, cross_entropy_vjp, softmax
from cyrt.ops.arange import arange
from cyrt.ops.copy import astype
from cyrt.ops.functions import equal, greater_equal, less, log, log1p, logical_and
from cyrt.ops.shapes import expand_dims, reshape
from cyrt.ops.ternary import clip, where

_Pair = tuple[Array | None, Array | None]


def _of_difference(slope: Array, wanted: tuple[bool, bool]) -> _Pair:
    """Return the gradients of predictions and targets, of whose difference a loss is a function."""
    return slope, -slope if wanted[1] else None


def _mse(g: Array, x: Array, targets: Array, reduction: str, wanted: tuple[bool, bool]) -> _Pair:
    return _of_difference(losses.mse_loss_vjp(g, x, targets, reduction), wanted)


def _l1(g: Array, x: Array, targets: Array, reduction: str, wanted: tuple[bool, bool]) -> _Pair:
    return _of_difference(losses.l1_loss_vjp(g, x, targets, reduction), wanted)


def _huber(
    g: Array, x: Array, targets: Array, reduction: str, delta: float, wanted: tuple[bool, bool]
) -> _Pair:
    return _of_difference(losses.huber_loss_vjp(g, x, targets, reduction, delta), wanted)


def _cross_entropy_targets(g: Array, x: Array, reduction: str, with_logits: bool) -> Array:
    """The logarithm of the odds against class 1, which are linear in the target."""
    wide = x.astype(wide_type(x), copy=False)
    if with_logits:
        slope = -wide
    else:
        slope = clip(log1p(-wide), losses._LEAST_LOG) - clip(log(wide), losses._LEAST_LOG)
    if reduction == "mean" and x.size:
        slope = slope * (1 / x.size)
    return slope * g


def _composed_cross_entropy(
    g: Array, logits: Array, targets: Array, axis: int, ignore_index: int
) -> Array:
    """The difference of probabilities and targets: 0 for a target that is ignored, NaN for another
    one that is out of range."""
    classes = logits.shape[axis]
    sizes = [1] * logits.ndim
    sizes[axis] = classes
    indices = expand_dims(astype(targets, "int64", copy=False), axis)
    chosen = equal(reshape(arange(classes, device=logits.device), tuple(sizes)), indices)
    valid = logical_and(greater_equal(indices, 0), less(indices, classes))
    slope = softmax(logits, axis) - astype(chosen, logits.dtype)
    slope = where(equal(indices, ignore_index), 0.0, where(valid, slope, math.nan))
    return expand_dims(g, axis) * slope


tape.register(losses.mse_loss, ("x", "targets"), _mse)
tape.register(losses.l1_loss, ("x", "targets"), _l1)
tape.register(losses.huber_loss, ("x", "targets"), _huber)
tape.register(
    losses.binary_cross_entropy,
    "x",
    lambda g, x, targets, reduction, with_logits: losses.binary_cross_entropy_vjp(
        g, x, targets, reduction, with_logits=with_logits
    ),
)
tape.register(losses.binary_cross_entropy, "targets", _cross_entropy_targets)
tape.register(
    cross_entropy,
    "logits",
    lambda g, logits, targets, axis, ignore_index: cross_entropy_vjp(
        g, logits, targets, axis, ignore_index
    ),
    composed=_composed_cross_entropy,
)
