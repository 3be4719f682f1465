"""The gradients of softmax and of normalizations."""

from __future__ import annotations

import math
from typing import Any

from cyrt import tape
from cyrt.autodiff.compositions import through
from cyrt.ndarray import Array
from cyrt.nn.channel_norm import (
    batch_norm_vjp,
    group_norm,
    group_norm_vjp,
    instance_norm,
    instance_norm_vjp,
    normalize_channels,
)
from cyrt.nn.gradients import log_softmax_vjp
from cyrt.nn.norm import layer_norm, layer_norm_vjp, rms_norm, rms_norm_vjp
from cyrt.nn.softmax import log_softmax, softmax, softmax_vjp
from cyrt.ops.functions import rsqrt
from cyrt.ops.reduce import mean, var
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.shapes import reshape

_PARAMETERS = ("x", "weight", "bias")
_Gradients = tuple[Array | None, Array | None, Array | None]


def _normalize_channels(
    g: list[Array | None],
    x: Array,
    mean: Array | None,
    variance: Array | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> _Gradients:
    """The mean and the variance are results, too, of which nothing that is followed is made."""
    if g[0] is None:
        return None, None, None
    training = mean is None
    return batch_norm_vjp(g[0], x, mean, variance, weight, bias, training, eps=eps)


def _composed_softmax(g: Array, result: Array, axis: int) -> Array:
    return result * (g - _sum(g * result, axis, keepdims=True))


# -- compositions ----------------------------------------------------------------------------------


def _shifted(x: Array, scale: Array, weight: Array | None, bias: Array | None) -> Array:
    """Scale by an array of x's dimensions, by a weight, and add a bias."""
    x = x * scale if weight is None else x * scale * weight
    return x if bias is None else x + bias


def _composed_layer_norm(
    g: Array, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Any, ...]:
    def composition(x: Array, weight: Array | None, bias: Array | None) -> Array:
        scale = rsqrt(var(x, -1, keepdims=True) + eps)
        return _shifted(x - mean(x, -1, keepdims=True), scale, weight, bias)

    return through(composition, g, (x, weight, bias))


def _composed_rms_norm(g: Array, x: Array, weight: Array | None, eps: float) -> tuple[Any, ...]:
    def composition(x: Array, weight: Array | None) -> Array:
        return _shifted(x, rsqrt(mean(x * x, -1, keepdims=True) + eps), weight, None)

    return through(composition, g, (x, weight))


def _composed_channels(
    g: list[Array | None],
    x: Array,
    mean: Array | None,
    variance: Array | None,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> tuple[Any, ...]:
    if g[0] is None:
        return None, None, None
    if mean is None or variance is None:
        return _through_groups(g[0], x, (1, -1, x.shape[-1], 1), weight, bias, eps)
    scale = rsqrt(variance + eps)
    level = mean

    def composition(x: Array, weight: Array | None, bias: Array | None) -> Array:
        return _shifted(x - level, scale, weight, bias)

    return through(composition, g[0], (x, weight, bias))


def _through_groups(
    g: Array, x: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Any, ...]:
    """The gradients of a normalization of x in a shape (samples, positions, groups, channels), over
    the second and the last dimension."""

    def composition(x: Array, weight: Array | None, bias: Array | None) -> Array:
        rows = reshape(x, shape)
        scale = rsqrt(var(rows, (1, 3), keepdims=True) + eps)
        normal = reshape((rows - mean(rows, (1, 3), keepdims=True)) * scale, x.shape)
        normal = normal if weight is None else normal * weight
        return normal if bias is None else normal + bias

    return through(composition, g, (x, weight, bias))


def _composed_groups(
    g: Array, x: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Any, ...]:
    shape = x.shape[0], math.prod(x.shape[1:-1]), num_groups, x.shape[-1] // num_groups
    return _through_groups(g, x, shape, weight, bias, eps)


def _composed_instances(
    g: Array, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Any, ...]:
    return _composed_groups(g, x, x.shape[-1], weight, bias, eps)


tape.register(
    softmax, "x", lambda g, result, axis: softmax_vjp(g, result, axis), composed=_composed_softmax
)
tape.register(log_softmax, "x", lambda g, result, axis: log_softmax_vjp(g, result, axis))
tape.register(
    layer_norm,
    _PARAMETERS,
    lambda g, x, weight, bias, eps: layer_norm_vjp(g, x, weight, bias, eps),
    composed=_composed_layer_norm,
)
tape.register(
    rms_norm,
    ("x", "weight"),
    lambda g, x, weight, eps: rms_norm_vjp(g, x, weight, eps),
    composed=_composed_rms_norm,
)
tape.register(normalize_channels, _PARAMETERS, _normalize_channels, composed=_composed_channels)
tape.register(
    group_norm,
    _PARAMETERS,
    lambda g, x, num_groups, weight, bias, eps: group_norm_vjp(g, x, num_groups, weight, bias, eps),
    composed=_composed_groups,
)
tape.register(
    instance_norm,
    _PARAMETERS,
    lambda g, x, weight, bias, eps: instance_norm_vjp(g, x, weight, bias, eps),
    composed=_composed_instances,
)
