"""Checks of arguments that many functions take: axes, bools and arrays."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyrt.ndarray import Array


def check_bool(value: Any, name: str) -> bool:
    """Return a bool, Python's or NumPy's; otherwise raise a TypeError that names its type."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name}: expected a bool, got {type(value).__name__}")


def axis_of(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return an axis counted from 0; numpy.exceptions.AxisError if there is no such axis."""
    try:
        if isinstance(axis, bool):
            raise TypeError
        found = index(axis)
    except TypeError:
        raise TypeError(f"{name}: expected an int, got {type(axis).__name__}") from None
    if not -ndim <= found < ndim:
        from numpy.exceptions import AxisError

        raise AxisError(found, ndim)
    return found % ndim


def axes_of(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from 0: all for None, or those of an int or a tuple; ValueError for
    duplicates."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(axis_of(each, ndim, name) for each in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: {axis} names an axis twice, of {ndim}")
    return found


def check_array(x: Any, name: str) -> Array:
    """Return x if it is an Array; otherwise raise a TypeError that names its type."""
    if isinstance(x, Array):
        return x
    advice = (
        "; cyrt.asarray() copies it to the device"
        if (hasattr(x, "__array__") or isinstance(x, (list, tuple)))
        else ""
    )
    raise TypeError(
        f"{name}: expected an Array, got {type(x).__module__}.{type(x).__name__}{advice}"
    )
