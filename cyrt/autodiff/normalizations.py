"""The gradients of softmax and of normalizations."""

from __future__ import annotations

from cyrt import tape
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


tape.register(softmax, "x", lambda g, result, axis: softmax_vjp(g, result, axis))
tape.register(log_softmax, "x", lambda g, result, axis: log_softmax_vjp(g, result, axis))
tape.register(
    layer_norm, _PARAMETERS, lambda g, x, weight, bias, eps: layer_norm_vjp(g, x, weight, bias, eps)
)
tape.register(rms_norm, ("x", "weight"), lambda g, x, weight, eps: rms_norm_vjp(g, x, weight, eps))
tape.register(normalize_channels, _PARAMETERS, _normalize_channels)
tape.register(
    group_norm,
    _PARAMETERS,
    lambda g, x, num_groups, weight, bias, eps: group_norm_vjp(g, x, num_groups, weight, bias, eps),
)
tape.register(
    instance_norm,
    _PARAMETERS,
    lambda g, x, weight, bias, eps: instance_norm_vjp(g, x, weight, bias, eps),
)
