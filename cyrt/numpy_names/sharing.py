"""Views of neighbours, and which arrays share memory."""

from __future__ import annotations

from operator import index
from types import SimpleNamespace
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.shapes import moveaxis
from cyrt.ops.views import origin, windows


def sliding_window_view(x: Array, window_shape: Any, axis: Any = None) -> Array:
    """All windows of a size, each of which begins one element after its neighbour: a view.

    Parameters
    ----------
    x : Array
    window_shape : int or tuple of int
        The size along each axis.
    axis : int or tuple of int, optional
        Where the windows slide; all axes where left out. One named twice has windows of windows.

    Returns
    -------
    Array
        The places of the windows, then what is in them. Windows share elements: it is to be read,
        of several values written to one element any is kept.
    """
    check_array(x, "sliding_window_view: x")
    lengths = _ints(window_shape)
    axes = range(x.ndim) if axis is None else _ints(axis)
    if len(lengths) != len(axes):
        raise ValueError(f"sliding_window_view: window_shape {window_shape} is of {len(lengths)} "
                         f"axes, but there are {len(axes)}")
    found = x
    for each, length in zip(axes, lengths, strict=True):
        along = axis_of(each, x.ndim)
        if not 0 <= length <= found.shape[along]:
            raise ValueError(f"sliding_window_view: window_shape: expected 0 to "
                             f"{found.shape[along]} along axis {along}, got {length}")
        found = moveaxis(windows(moveaxis(found, along, -1), length), -2, along)
    return found


def _ints(given: Any) -> tuple[int, ...]:
    return tuple(map(index, given if isinstance(given, (tuple, list)) else (given,)))


def may_share_memory(a: Array, b: Array) -> bool:
    """Whether the ranges overlap in which the elements of two arrays lie."""
    return _compared(np.may_share_memory, a, b, "may_share_memory")


def shares_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have bytes in common; see :func:`numpy.shares_memory`."""
    return _compared(np.shares_memory, a, b, "shares_memory")


def _compared(function: Any, a: Array, b: Array, name: str) -> bool:
    for each in (a, b):
        check_array(each, name)
    return a.device == b.device and bool(function(_outline(a), _outline(b)))


def _outline(x: Array) -> np.ndarray:
    """An array of NumPy's that lies as x does; its elements are not there to be read."""
    return np.asarray(SimpleNamespace(__array_interface__={
        "version": 3, "data": (origin(x), True), "shape": x.shape, "strides": x.strides,
        "typestr": f"|V{x.itemsize}"}))
