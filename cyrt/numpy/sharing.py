"""Sliding windows, and tests for shared memory."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.shapes import moveaxis
from cyrt.ops.views import outline, windows

__all__ = ["may_share_memory", "shares_memory", "sliding_window_view"]


def sliding_window_view(x: Array, window_shape: Any, axis: Any = None) -> Array:
    """A view of all windows of a size; neighbouring windows are one element apart.

    Parameters
    ----------
    x : Array
    window_shape : int or tuple of int
        The size along each axis.
    axis : int or tuple of int, optional
        The axes along which windows slide, by default all. An axis may be named more than once.

    Returns
    -------
    Array
        A view: the dimensions of the windows' positions, then those of the windows. It is read-only
        if windows overlap.
    """
    check_array(x, "sliding_window_view: x")
    lengths = _ints(window_shape)
    axes = range(x.ndim) if axis is None else _ints(axis)
    if len(lengths) != len(axes):
        raise ValueError(
            f"sliding_window_view: window_shape {window_shape} is of {len(lengths)} "
            f"axes, but there are {len(axes)}"
        )
    found = x
    for each, length in zip(axes, lengths, strict=True):
        along = axis_of(each, x.ndim)
        if not 0 <= length <= found.shape[along]:
            raise ValueError(
                f"sliding_window_view: window_shape: expected 0 to "
                f"{found.shape[along]} along axis {along}, got {length}"
            )
        found = moveaxis(windows(moveaxis(found, along, -1), length), -2, along)
    return found


def _ints(value: Any) -> tuple[int, ...]:
    return tuple(map(index, value if isinstance(value, (tuple, list)) else (value,)))


def may_share_memory(a: Array, b: Array) -> bool:
    """Whether the address ranges of two arrays overlap; False if one is NumPy's.

    Parameters
    ----------
    a, b : Array or numpy.ndarray
        At least one is an Array.

    Returns
    -------
    bool
    """
    return _compare_memory(np.may_share_memory, a, b, "may_share_memory")


def shares_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have bytes in common; see :func:`numpy.shares_memory`.

    Parameters
    ----------
    a, b : Array or numpy.ndarray
        At least one is an Array.

    Returns
    -------
    bool
    """
    return _compare_memory(np.shares_memory, a, b, "shares_memory")


def _compare_memory(function: Any, a: Array, b: Array, name: str) -> bool:
    for each, other in ((a, b), (b, a)):
        if not (isinstance(each, np.ndarray) and isinstance(other, Array)):
            check_array(each, name)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False  # one lies on the host
    return a.device == b.device and bool(function(outline(a), outline(b)))
