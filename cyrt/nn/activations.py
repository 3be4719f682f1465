"""Activation functions and their gradients, one kernel each."""

from __future__ import annotations

from typing import Any

from cyrt.ndarray import Array
from cyrt.nn.checks import check_floating, check_gradient, parameter_of
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import check_device
from cyrt.ops.creation import empty_like
from cyrt.ops.elementwise import Elementwise as _Elementwise
from cyrt.ops.signatures import Binary as _Binary
from cyrt.ops.signatures import Unary as _Unary
from cyrt.ops.signatures import documented
from cyrt.ops.ternary import ternary

_X = "cyrt.asarray([-1.0, 0.0, 2.0])"
_LIMITS = "The result at an infinity is the limit there; NaN gives NaN."


def _documented(summary: str, operands: str, result: str, notes: str, call: str, shown: str) -> str:
    kinds = "A real floating-point type; bool and integers are converted to float32"
    if "," in operands:
        kinds += ". Operands broadcast"
    example = f"cyrt.nn.{call}.round(3)", f"Array({shown}, dtype=float32)"
    return documented(summary, f"{operands} : Array", kinds, result, notes, example)


def _activation(name: str, summary: str, notes: str, shown: str) -> _Unary:
    text = _documented(
        summary, "x", "An array of x's shape and type", notes, f"{name}({_X})", shown
    )
    return _Elementwise(name, ("x",), text, "cyrt.nn")


def _vjp(name: str, shown: str = "") -> _Binary:
    text = _documented(
        f"Compute the gradient of :func:`{name}`'s input from that of its result.",
        "g, x",
        "The gradient of x: g times the derivative at x",
        "g is the gradient of the result.",
        f"{name}_vjp(cyrt.ones(3), {_X})",
        shown,
    )
    return _Elementwise(f"{name}_vjp", ("g", "x"), text, "cyrt.nn")


relu = _activation(
    "relu", "The greater of x and 0.", "Nair and Hinton, ICML 2010. NaN gives NaN.", "[0., 0., 2.]"
)
gelu = _activation(
    "gelu",
    "x times the cumulative normal distribution of x: Gaussian error linear units.",
    f"Hendrycks and Gimpel, arXiv:1606.08415. {_LIMITS}",
    "[-0.159,  0.   ,  1.954]",
)
gelu_tanh = _activation(
    "gelu_tanh",
    "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), which approximates :func:`gelu`.",
    f"Hendrycks and Gimpel, arXiv:1606.08415. {_LIMITS}",
    "[-0.159,  0.   ,  1.955]",
)
silu = _activation(
    "silu",
    "x times the sigmoid of x, also called swish.",
    f"Elfwing, Uchibe and Doya, arXiv:1702.03118. {_LIMITS}",
    "[-0.269,  0.   ,  1.762]",
)
selu = _activation(
    "selu",
    "1.0507 times :func:`elu` with an alpha of 1.6733: scaled exponential linear units.",
    "Klambauer et al., arXiv:1706.02515, where the constants have more digits. NaN gives NaN.",
    "[-1.111,  0.   ,  2.101]",
)
hardswish = _activation(
    "hardswish",
    "x * min(max(x + 3, 0), 6) / 6, which approximates :func:`silu`.",
    f"Howard et al., arXiv:1905.02244. {_LIMITS} PyTorch's is NaN at minus infinity.",
    "[-0.333,  0.   ,  1.667]",
)
relu_vjp = _vjp("relu", "[0., 0., 1.]")
gelu_vjp = _vjp("gelu", "[-0.083,  0.5  ,  1.085]")
gelu_tanh_vjp = _vjp("gelu_tanh", "[-0.083,  0.5  ,  1.086]")
silu_vjp = _vjp("silu", "[0.072, 0.5  , 1.091]")
sigmoid_vjp = _vjp("sigmoid", "[0.197, 0.25 , 0.105]")
tanh_vjp = _vjp("tanh", "[0.42 , 1.   , 0.071]")
selu_vjp = _vjp("selu", "[0.647, 1.758, 1.051]")
hardswish_vjp = _vjp("hardswish", "[0.167, 0.5  , 1.167]")
swiglu: _Binary = _Elementwise(
    "swiglu",
    ("gate", "up"),
    _documented(
        "The product of up and :func:`silu` of the gate.",
        "gate, up",
        "An array of the broadcast shape, and of the type to which both promote",
        "Shazeer, arXiv:2002.05202.",
        f"swiglu({_X}, cyrt.asarray(10.0))",
        "[-2.689,  0.   , 17.616]",
    ),
    "cyrt.nn",
)

# -- with a parameter ------------------------------------------------------------------------------

_softplus = _Elementwise("softplus", ("x", "beta"), "", "cyrt.nn")
_softplus_vjp = _vjp("softplus")
_leaky_relu = _Elementwise("leaky_relu", ("x", "negative_slope"), "", "cyrt.nn")
_elu = _Elementwise("elu", ("x", "alpha"), "", "cyrt.nn")
_glu = _Elementwise("glu", ("x", "gate"), "", "cyrt.nn")


def leaky_relu(x: Array, negative_slope: float = 0.01, *, out: Array | None = None) -> Array:
    """Return x where it is positive, and x times a slope elsewhere.

    Parameters
    ----------
    x : Array
        An array of a real floating-point type; bool and integers are converted to float32.
    negative_slope : float
        The slope; it is rounded to x's type.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; may be x.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x is not an Array of a real type, or the slope is not a number.
    ValueError
        The slope is not finite in the type computed in, or `out` has another shape.

    Notes
    -----
    Maas, Hannun and Ng, ICML 2013 workshop. This is PyTorch's ``torch.nn.functional.leaky_relu``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.leaky_relu(cyrt.asarray([-2.0, 3.0]), 0.5)
    Array([-1.,  3.], dtype=float32)
    """
    check_array(x, "leaky_relu: x")
    slope = parameter_of(negative_slope, x, "leaky_relu", "negative_slope")
    return _leaky_relu(x, slope, out=out)


def leaky_relu_vjp(
    g: Array, x: Array, negative_slope: float = 0.01, *, out: Array | None = None
) -> Array:
    """Compute the gradient of :func:`leaky_relu`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result; it broadcasts with x.
    x, negative_slope, out
        As for :func:`leaky_relu`.

    Returns
    -------
    Array
        The gradient of x: g where x is positive, and g times the slope elsewhere.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.leaky_relu_vjp(cyrt.ones(2), cyrt.asarray([-2.0, 3.0]), 0.5)
    Array([0.5, 1. ], dtype=float32)
    """
    return _slope("leaky_relu_vjp", g, x, negative_slope, "negative_slope", out)


def elu(x: Array, alpha: float = 1.0, *, out: Array | None = None) -> Array:
    """Return x where it is positive, and alpha (exp(x) - 1) elsewhere: exponential linear units.

    Parameters
    ----------
    x : Array
        An array of a real floating-point type; bool and integers are converted to float32.
    alpha : float
        The factor of the exponential; it is rounded to x's type.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; may be x.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x is not an Array of a real type, or alpha is not a number.
    ValueError
        alpha is not finite in the type computed in, or `out` has another shape.

    Notes
    -----
    Clevert, Unterthiner and Hochreiter, arXiv:1511.07289.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.elu(cyrt.asarray([-cyrt.inf, 3.0]), alpha=0.5)
    Array([-0.5,  3. ], dtype=float32)
    """
    check_array(x, "elu: x")
    return _elu(x, parameter_of(alpha, x, "elu", "alpha"), out=out)


def elu_vjp(g: Array, x: Array, alpha: float = 1.0, *, out: Array | None = None) -> Array:
    """Compute the gradient of :func:`elu`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result; it broadcasts with x.
    x, alpha, out
        As for :func:`elu`.

    Returns
    -------
    Array
        The gradient of x: g where x is positive, and g alpha exp(x) elsewhere.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.elu_vjp(cyrt.ones(2), cyrt.asarray([0.0, 3.0]), 0.5)
    Array([0.5, 1. ], dtype=float32)
    """
    return _slope("elu_vjp", g, x, alpha, "alpha", out)


def softplus(
    x: Any,
    /,
    out: Array | None = None,
    *,
    beta: float = 1.0,
    where: Array | bool | None = None,
    dtype: Any = None,
) -> Array:
    """Compute log(1 + exp(beta x)) / beta, without overflow of the exponential.

    Parameters
    ----------
    x : Array
        An array of a real floating-point type; bool and integers are converted to float32. The
        result for a number is a NumPy number.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; may be x.
    beta : float
        The factor of x, a positive number; it is rounded to x's type.
    where : Array or bool, optional
        Type bool: the elements of `out` that receive the result; others keep their values. Default:
        all.
    dtype : DType, optional
        Type of the result, to which x is cast first, within its kind.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x has an unsupported type or is a NumPy array, or beta is not a number.
    ValueError
        beta is not positive and finite in the type computed in, the shapes do not broadcast, or
        `out` has another shape.

    Notes
    -----
    Dugas et al., NIPS 2000. The argument beta is that of PyTorch's
    ``torch.nn.functional.softplus``, whose threshold is not needed here. The result at an infinity
    is the limit there; NaN gives NaN.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.softplus(cyrt.asarray([0.0, 100.0]), beta=2)
    Array([  0.3465736, 100.       ], dtype=float32)
    """
    beta = parameter_of(beta, x, "softplus", "beta", dtype, positive=True)
    return _softplus(x, beta, out=out, where=where, dtype=dtype)


def softplus_vjp(
    g: Any,
    x: Any,
    /,
    out: Array | None = None,
    *,
    beta: float = 1.0,
    where: Array | bool | None = None,
    dtype: Any = None,
) -> Array:
    """Compute the gradient of :func:`softplus`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result; it broadcasts with x.
    x, out, beta
        As for :func:`softplus`.
    where, dtype
        As for :func:`softplus`; if beta is not 1, they must be None.

    Returns
    -------
    Array
        The gradient of x: g times the sigmoid of beta x.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.softplus_vjp(cyrt.ones(1), cyrt.zeros(1), beta=2)
    Array([0.5], dtype=float32)
    """
    if beta == 1 and beta is not True:
        return _softplus_vjp(g, x, out=out, where=where, dtype=dtype)
    for argument, value in (("where", where), ("dtype", dtype)):
        if value is not None:
            raise TypeError(f"softplus_vjp: {argument}: expected None unless beta is 1")
    return _slope("softplus_of_beta_vjp", g, x, beta, "beta", out, positive=True)


def glu(x: Array, axis: int = -1) -> Array:
    """Multiply the first half of an axis by the sigmoid of the second half: gated linear units.

    Parameters
    ----------
    x : Array
        float16, bfloat16, float32 or float64.
    axis : int
        An axis of even size.

    Returns
    -------
    Array
        An array of x's type, and of its shape with half the size along the axis.

    Raises
    ------
    TypeError
        x is not an array of one of these types.
    ValueError
        The axis has an odd size.
    numpy.exceptions.AxisError
        x has no such axis.

    Notes
    -----
    Dauphin et al., arXiv:1612.08083. This is PyTorch's ``torch.nn.functional.glu``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.glu(cyrt.asarray([2.0, 4.0, 0.0, cyrt.inf]))
    Array([1., 4.], dtype=float32)
    """
    return _glu(*_halves("glu", x, axis))


def glu_vjp(g: Array, x: Array, axis: int = -1) -> Array:
    """Compute the gradient of :func:`glu`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and x's type.
    x, axis
        As for :func:`glu`.

    Returns
    -------
    Array
        The gradient of x, of x's shape and type.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        The errors of :func:`glu`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.glu_vjp(cyrt.ones(1), cyrt.asarray([4.0, 0.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    half, gate = _halves("glu_vjp", x, axis)
    check_gradient("glu_vjp", g, half.shape, x, "x")
    result = empty_like(x)
    of_half, of_gate = _halves("glu_vjp", result, axis)
    _glu(g, gate, out=of_half)
    ternary("glu_gate_vjp", g, half, gate, of_gate)
    return result


def _slope(
    name: str, g: Array, x: Array, number: float, argument: str, out: Any, *, positive: bool = False
) -> Array:
    """Multiply a gradient by the slope at x of a function with a parameter."""
    public = name.replace("_of_beta", "")
    check_array(g, f"{public}: g")
    check_array(x, f"{public}: x")
    check_device(g, x, public, "g")
    number = parameter_of(number, x, public, argument, positive=positive)
    return ternary(name, g, x, number, out)


def _halves(name: str, x: Array, axis: int) -> tuple[Array, Array]:
    check_floating(name, "x", x)
    along = axis_of(axis, x.ndim)
    size = x.shape[along]
    if size % 2:
        raise ValueError(f"{name}: x: expected an even size along axis {axis}, got shape {x.shape}")
    before = (slice(None),) * along
    return x[(*before, slice(size // 2))], x[(*before, slice(size // 2, None))]


__all__ = [
    "elu",
    "elu_vjp",
    "gelu",
    "gelu_tanh",
    "gelu_tanh_vjp",
    "gelu_vjp",
    "glu",
    "glu_vjp",
    "hardswish",
    "hardswish_vjp",
    "leaky_relu",
    "leaky_relu_vjp",
    "relu",
    "relu_vjp",
    "selu",
    "selu_vjp",
    "sigmoid_vjp",
    "silu",
    "silu_vjp",
    "softplus",
    "softplus_vjp",
    "swiglu",
    "tanh_vjp",
]
