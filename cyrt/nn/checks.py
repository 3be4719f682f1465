"""Checks of arguments that the operations written in Python share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cyrt.dtypes import DEFAULTS
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import check_device


def check_floating(name: str, argument: str, x: Array) -> None:
    check_array(x, f"{name}: {argument}")
    if x.dtype.kind != "f":
        raise TypeError(f"{name}: {argument}: expected a real floating-point type, got {x.dtype}")


def check_alike(name: str, argument: str, other: Array, x: Array, first: str) -> None:
    """Check that an argument has the type, the shape and the device of another argument, x."""
    check_array(other, f"{name}: {argument}")
    if other.dtype != x.dtype:
        raise TypeError(
            f"{name}: {argument}: expected {x.dtype}, the type of {first}, got {other.dtype}"
        )
    if other.shape != x.shape:
        raise ValueError(
            f"{name}: {argument}: expected shape {x.shape}, that of {first}, got {other.shape}"
        )
    check_device(other, x, name, argument)


def check_gradient(name: str, g: Array, shape: tuple[int, ...], like: Array, argument: str) -> None:
    """Check that a gradient has the shape of the result and the type of an argument."""
    check_array(g, f"{name}: g")
    if g.dtype != like.dtype:
        raise TypeError(f"{name}: g: expected {like.dtype}, the type of {argument}, got {g.dtype}")
    if g.shape != shape:
        raise ValueError(f"{name}: g: expected shape {shape}, that of the result, got {g.shape}")
    check_device(g, like, name, "g")


def number_of(
    value: Any, name: str, argument: str, least: float = -math.inf, most: float = math.inf
) -> float:
    """Return a finite number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"{name}: {argument}: expected a number, got {type(value).__name__}")
    number = float(value)
    if not (least <= number <= most and math.isfinite(number)):
        if math.isfinite(most):
            wanted = f"a number from {least} to {most}"
        else:
            wanted = "a finite number" + (f" of {least} or more" if math.isfinite(least) else "")
        raise ValueError(f"{name}: {argument}: expected {wanted}, got {value}")
    return number


def positive_number(value: Any, name: str, argument: str) -> float:
    """Return a finite number above 0."""
    if not (number := number_of(value, name, argument)) > 0:
        raise ValueError(f"{name}: {argument}: expected a number above 0, got {value}")
    return number


def parameter_of(
    value: Any, x: Any, name: str, argument: str, dtype: Any = None, *, positive: bool = False
) -> float:
    """Return the parameter of a function of x.

    It must be finite, and with `positive` above 0, also in the type in which x is computed.
    """
    number = (positive_number if positive else number_of)(value, name, argument)
    kind = _dtype(dtype) if dtype is not None else x.dtype if isinstance(x, Array) else None
    if kind is None or kind.kind not in "fc":
        kind = DEFAULTS["f"]
    with np.errstate(over="ignore"):
        rounded = abs(np.array(number).astype(kind.numpy))
    if not np.isfinite(rounded) or (positive and rounded == 0):
        raise ValueError(f"{name}: {argument}: {value} is out of the range of {kind}")
    return number


def wide_type(x: Array) -> str:
    """Return the type in which sums of x's elements are computed."""
    return "float64" if x.dtype.name == "float64" else "float32"
