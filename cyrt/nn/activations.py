"""Activation functions and their gradients, one kernel each."""

from __future__ import annotations

from cyrt.ops.elementwise import Elementwise as _Elementwise

_TEXT = """{summary}

Parameters
----------
{operands} : Array
    Arrays of a real floating-point type; bool and integers are computed in float32. They broadcast.
    The result for numbers alone is a NumPy number.
out : Array, optional
    The array that receives the result, which is cast to its type within its kind; may be an
    operand.
where : Array or bool, optional
    bool: which elements of `out` receive the result. The others keep their values. Default: all.
dtype : DType, optional
    Type of the result, to which operands are cast first, within their kind.

Returns
-------
Array
    {result}

Raises
------
TypeError
    An operand has an unsupported type or is a NumPy array, or the types do not promote.
ValueError
    The shapes do not broadcast, the arrays are on two devices, or `out` has another shape.

Notes
-----
{notes}
"""
_LIMITS = "At infinities the result is the limit; NaN gives NaN."


def _activation(name: str, summary: str, notes: str) -> _Elementwise:
    text = _TEXT.format(
        summary=summary, operands="x", result="An array of x's shape and type.", notes=notes
    )
    return _Elementwise(name, ("x",), text, "cyrt.nn")


def _vjp(name: str) -> _Elementwise:
    text = _TEXT.format(
        summary=f"Compute the gradient of :func:`{name}`'s input from that of its result.",
        operands="g, x",
        result="The gradient of x: the derivative at x times g.",
        notes="g is the gradient of the result.",
    )
    return _Elementwise(f"{name}_vjp", ("g", "x"), text, "cyrt.nn")


relu = _activation("relu", "The greater of x and 0.", "Nair and Hinton, ICML 2010. NaN gives NaN.")
gelu = _activation(
    "gelu",
    "x times the normal distribution's cumulative function: Gaussian error linear units.",
    f"Hendrycks and Gimpel, arXiv:1606.08415. {_LIMITS}",
)
gelu_tanh = _activation(
    "gelu_tanh",
    "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), which approximates :func:`gelu`.",
    f"Hendrycks and Gimpel, arXiv:1606.08415. {_LIMITS}",
)
silu = _activation(
    "silu",
    "x times its sigmoid, also called swish.",
    f"Elfwing, Uchibe and Doya, arXiv:1702.03118. {_LIMITS}",
)
softplus = _activation(
    "softplus",
    "log(1 + exp(x)), with no overflow in between.",
    f"Dugas et al., NIPS 2000. {_LIMITS}",
)
relu_vjp = _vjp("relu")
gelu_vjp = _vjp("gelu")
gelu_tanh_vjp = _vjp("gelu_tanh")
silu_vjp = _vjp("silu")
sigmoid_vjp = _vjp("sigmoid")
tanh_vjp = _vjp("tanh")
softplus_vjp = _vjp("softplus")
swiglu = _Elementwise(
    "swiglu",
    ("gate", "up"),
    _TEXT.format(
        summary=":func:`silu` of the gate, times up.",
        operands="gate, up",
        result="An array of the broadcast shape, and of the type that both promote to.",
        notes="Shazeer, arXiv:2002.05202.",
    ),
    "cyrt.nn",
)
