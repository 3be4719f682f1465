"""The gradients of activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cyrt import tape
from cyrt.autodiff.compositions import through
from cyrt.ndarray import Array
from cyrt.nn import activations as act
from cyrt.nn.gated import swiglu_vjp
from cyrt.ops import functions as f
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.ternary import ternary, where


def _of_input(
    function: Any, vjp: Callable[[Array, Array], Array], composition: Callable[[Array], Array]
) -> None:
    tape.register(
        function,
        "x",
        lambda g, x: vjp(g, x),
        composed=lambda g, x: through(composition, g, (x,))[0],
        strict=False,
    )


# -- one operand -----------------------------------------------------------------------------------

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


@tape.differentiable
def relu_slope(slope: Array, activated: Array) -> Array:
    """Return the gradient of relu's input from `slope`, the gradient of its result.

    It is linear in `slope`. The derivative of relu at x equals its derivative at the result.
    """
    return act.relu_vjp(slope, activated)


def _exponential(x: Array, alpha: float) -> Array:
    """x where it is positive, and elsewhere alpha times exp(x) - 1."""
    positive = f.greater(x, 0)
    return where(positive, x, f.expm1(where(positive, 0.0, x)) * alpha)


def _gelu(x: Array) -> Array:
    return x * 0.5 * (f.erf(x * math.sqrt(0.5)) + 1.0)


def _gelu_tanh(x: Array) -> Array:
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (f.tanh(inner) + 1.0)


def _silu(x: Array) -> Array:
    return x * f.sigmoid(x)


def _hardswish(x: Array) -> Array:
    inner = where(f.less(x, 3), x * (x + 3.0) / 6.0, x)
    return where(f.greater(x, -3), inner, 0.0)


def _leaky_relu(x: Array, negative_slope: float) -> Array:
    return where(f.greater(x, 0), x, x * negative_slope)


def _softplus(x: Array, beta: float) -> Array:
    return f.logaddexp(x * beta, 0.0) / beta


tape.register(
    act.relu,
    "x",
    lambda g, result: act.relu_vjp(g, result),
    composed=lambda g, result: relu_slope(g, result),
    strict=False,
)
tape.register(relu_slope, "slope", lambda g, activated: relu_slope(g, activated))
tape.register(relu_slope, "activated", lambda g: None)
_of_input(act.gelu, act.gelu_vjp, _gelu)
_of_input(act.gelu_tanh, act.gelu_tanh_vjp, _gelu_tanh)
_of_input(act.silu, act.silu_vjp, _silu)
_of_input(act.selu, act.selu_vjp, lambda x: _exponential(x, _SELU_ALPHA) * _SELU_SCALE)
_of_input(act.hardswish, act.hardswish_vjp, _hardswish)
tape.register(
    act._leaky_relu,
    "x",
    lambda g, x, negative_slope: act.leaky_relu_vjp(g, x, negative_slope),
    composed=lambda g, x, negative_slope: through(_leaky_relu, g, (x, negative_slope))[0],
    strict=False,
)
tape.register(
    act._elu,
    "x",
    lambda g, x, alpha: act.elu_vjp(g, x, alpha),
    composed=lambda g, x, alpha: through(_exponential, g, (x, alpha))[0],
    strict=False,
)
tape.register(
    act._softplus,
    "x",
    lambda g, x, beta: act.softplus_vjp(g, x, beta=beta),
    composed=lambda g, x, beta: through(_softplus, g, (x, beta))[0],
    strict=False,
)


# -- gates -----------------------------------------------------------------------------------------


def _swiglu(g: Array, gate: Any, up: Any) -> tuple[Any, Any]:
    if not isinstance(gate, Array):
        return None, g * act.silu(gate)
    if not isinstance(up, Array):
        return act.silu_vjp(g * up, gate), None
    return swiglu_vjp(g, broadcast_to(gate, g.shape), broadcast_to(up, g.shape))


def _composed_swiglu(g: Array, gate: Any, up: Any) -> tuple[Any, ...]:
    return through(lambda gate, up: gate * f.sigmoid(gate) * up, g, (gate, up))


def _gate(g: Array, x: Any, gate: Any) -> Array:
    found: Array = ternary("glu_gate_vjp", g, x, gate, None)
    return found


def _composed_gate(g: Array, x: Any, gate: Any) -> Array:
    share = f.sigmoid(gate)
    found: Array = g * x * (share * (1.0 - share))
    return found


tape.register(act._glu, "x", lambda g, gate: act._glu(g, gate), strict=False)
tape.register(act._glu, "gate", _gate, composed=_composed_gate, strict=False)
tape.register(act.swiglu, ("gate", "up"), _swiglu, composed=_composed_swiglu, strict=False)
