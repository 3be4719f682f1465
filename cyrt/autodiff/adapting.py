"""Fitting gradients to the operands that they belong to."""

from __future__ import annotations

from typing import Any

from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import empty, zeros
from cyrt.ops.functions import real
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.shapes import reshape
from cyrt.runtime.device import Device


def adapt(gradient: Any, shape: tuple[int, ...], dtype: DType, broadcast: bool, name: str) -> Array:
    """Return a gradient in the shape and the type of its operand.

    Parameters
    ----------
    gradient : Array
    shape : tuple of int
    dtype : DType
        The gradient of a real operand is the real part of a complex one.
    broadcast : bool
        Whether the operand may have been broadcast: its gradient is the sum over the dimensions
        along which it was.
    name : str
        The function that has the gradient, for messages.

    Raises
    ------
    TypeError
        The gradient is no Array, or not of a floating-point type.
    ValueError
        It has another shape.
    """
    if not isinstance(gradient, Array):
        raise TypeError(
            f"{name}: a gradient: expected an Array of shape {shape} and {dtype}, got "
            f"{type(gradient).__name__}"
        )
    if gradient.dtype.kind not in "fc":
        raise TypeError(f"{name}: a gradient: expected {dtype}, got {gradient.dtype}")
    if gradient.shape != shape:
        if not broadcast:
            raise ValueError(
                f"{name}: a gradient: expected shape {shape} and {dtype}, got {gradient.shape} "
                f"and {gradient.dtype}"
            )
        gradient = sum_to(gradient, shape)
    if gradient.dtype.kind == "c" and dtype.kind == "f":
        gradient = real(gradient)
    return astype(gradient, dtype, copy=False)


def own(gradient: Array | None, shape: tuple[int, ...], dtype: DType, device: Device) -> Array:
    """Return a new array with a gradient's values, or with zeros for None."""
    return zeros(shape, dtype, device=device) if gradient is None else copy(gradient)


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the dimensions along which an array of that shape was broadcast."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, size in enumerate(shape) if size == 1 and gradient.shape[extra + i] != 1
    )
    return reshape(_sum(gradient, axes), shape)


def unread(g: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return an array in place of an argument of which a gradient needs no values."""
    return empty(shape, dtype, device=g.device)
