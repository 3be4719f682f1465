"""The gradients of activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyrt import tape
from cyrt.ndarray import Array
from cyrt.nn import activations as act
from cyrt.nn.gated import swiglu_vjp
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.ternary import ternary


def _rule(function: Any, operand: str, backward: Callable[..., Any]) -> None:
    tape.register(function, operand, backward, strict=False)


def _of_input(function: Any, vjp: Callable[[Array, Array], Array]) -> None:
    _rule(function, "x", lambda g, x: vjp(g, x))


def _swiglu(g: Array, gate: Any, up: Any) -> tuple[Any, Any]:
    if not isinstance(gate, Array):
        return None, g * act.silu(gate)
    if not isinstance(up, Array):
        return act.silu_vjp(g * up, gate), None
    return swiglu_vjp(g, broadcast_to(gate, g.shape), broadcast_to(up, g.shape))


# The derivative of relu at x is that at its result.
_rule(act.relu, "x", lambda g, result: act.relu_vjp(g, result))
_of_input(act.gelu, act.gelu_vjp)
_of_input(act.gelu_tanh, act.gelu_tanh_vjp)
_of_input(act.silu, act.silu_vjp)
_of_input(act.selu, act.selu_vjp)
_of_input(act.hardswish, act.hardswish_vjp)
_rule(act._leaky_relu, "x", lambda g, x, negative_slope: act.leaky_relu_vjp(g, x, negative_slope))
_rule(act._elu, "x", lambda g, x, alpha: act.elu_vjp(g, x, alpha))
_rule(act._softplus, "x", lambda g, x, beta: act.softplus_vjp(g, x, beta=beta))
_rule(act._glu, "x", lambda g, gate: act._glu(g, gate))
_rule(act._glu, "gate", lambda g, x, gate: ternary("glu_gate_vjp", g, x, gate, None))
tape.register(act.swiglu, ("gate", "up"), _swiglu, strict=False)
