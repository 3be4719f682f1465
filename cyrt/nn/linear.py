"""Linear layers."""

from __future__ import annotations

from collections.abc import Callable

from cyrt.ndarray import Array
from cyrt.nn.activations import gelu, gelu_tanh, relu, silu, swiglu
from cyrt.nn.norm import rms_norm
from cyrt.ops.matmul import matmul


def _swiglu_of_halves(y: Array) -> Array:
    half = y.shape[-1] // 2
    return swiglu(y[..., :half], y[..., half:])


_ACTIVATIONS: dict[str | None, Callable[[Array], Array]] = {
    None: lambda y: y,
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "swiglu": _swiglu_of_halves,
}


def linear(
    x: Array,
    w: Array,
    b: Array | None = None,
    activation: str | None = None,
    residual: Array | None = None,
    norm: tuple[Array, float] | None = None,
) -> Array:
    """Multiply by a matrix of weights, with what precedes and follows in a linear layer.

    The result is ``residual + activation(rms_norm(x, *norm) @ w.mT + b)``.

    Parameters
    ----------
    x : Array
        Inputs of a floating-point type and shape (..., in).
    w : Array
        Weights of shape (out, in).
    b : Array, optional
        A bias of shape (out,).
    activation : str, optional
        "relu", "gelu", "gelu_tanh", "silu" or "swiglu". For "swiglu" the first half of w's rows
        makes the gate, and the result has out / 2 features.
    residual : Array, optional
        Added at the end; of the result's shape.
    norm : tuple of Array and float, optional
        The weight and the epsilon of an :func:`rms_norm` of x.

    Returns
    -------
    Array
        An array of shape (..., out), and of the type that the operands promote to.

    Raises
    ------
    ValueError
        The shapes do not fit, or there is no such activation.
    TypeError
        An operand is no Array, or the types do not promote.

    Examples
    --------
    >>> import cyrt
    >>> x, w = cyrt.asarray([[1.0, -2.0]]), cyrt.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> cyrt.nn.linear(x, w, activation="relu")
    Array([[1., 0.]], dtype=float32)
    """
    _check(x, w, b, activation, norm)
    y = matmul(x if norm is None else rms_norm(x, *norm), w.mT)
    if b is not None:
        y = y + b
    y = _ACTIVATIONS[activation](y)
    if residual is None:
        return y
    if residual.shape != y.shape:
        raise ValueError(f"linear: residual: expected shape {y.shape}, got {residual.shape}")
    return residual + y


def _check(
    x: Array, w: Array, b: Array | None, activation: str | None, norm: tuple[Array, float] | None
) -> None:
    for name, operand in ("x", x), ("w", w), ("b", b):
        if not isinstance(operand, Array) and not (name == "b" and operand is None):
            raise TypeError(f"linear: {name}: expected an Array, got {type(operand).__name__}")
    if x.ndim == 0 or w.ndim != 2 or x.shape[-1] != w.shape[1]:
        raise ValueError(
            f"linear: expected x of shape (..., in) and w of shape (out, in), got {x.shape} and "
            f"{w.shape}"
        )
    if b is not None and b.shape != w.shape[:1]:
        raise ValueError(f"linear: b: expected shape {w.shape[:1]}, got {b.shape}")
    if activation not in _ACTIVATIONS:
        names = ", ".join(map(repr, filter(None, _ACTIVATIONS)))
        raise ValueError(f"linear: activation: expected None or one of {names}, got {activation!r}")
    if activation == "swiglu" and w.shape[0] % 2:
        raise ValueError(f"linear: swiglu takes an even number of rows of w, got {w.shape}")
    if norm is not None and not (isinstance(norm, tuple) and len(norm) == 2):
        raise TypeError(f"linear: norm: expected a tuple of weight and eps, got {norm!r}")


__all__ = ["linear"]
