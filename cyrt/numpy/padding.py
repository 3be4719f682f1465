"""Padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arange import arange
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import assign
from cyrt.ops.creation import empty
from cyrt.ops.gather import take
from cyrt.ops.ternary import clip

__all__ = ["pad"]

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(array: Array, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """Pad an array.

    Parameters
    ----------
    array : Array
    pad_width : int, or tuple of one or two ints, or one such tuple for each dimension
        The number of elements before and after.
    mode : str
        ``"constant"``; ``"edge"`` repeats the outermost element; ``"reflect"`` mirrors the elements
        without the outermost one, ``"symmetric"`` with it; ``"wrap"`` continues at the other end.
    constant_values : as pad_width, of numbers
        The values of mode ``"constant"``.

    Returns
    -------
    Array
        A copy in array's type.

    Raises
    ------
    ValueError
        A width is negative, the mode is unknown, or an empty dimension has no elements to repeat.
    """
    widths = _pairs_per_dimension(pad_width, check_array(array, "pad: array").ndim, "pad_width")
    if any(type(each) is not int for pair in widths for each in pair):
        raise TypeError(f"pad: pad_width: expected ints, got {pad_width}")
    if any(each < 0 for pair in widths for each in pair):
        raise ValueError(f"pad: pad_width: expected 0 or more, got {pad_width}")
    if mode == "constant":
        return _constant(array, widths, constant_values)
    if mode not in _MODES:
        raise ValueError(f"pad: mode: expected one of {', '.join(_MODES)}, got {mode!r}")
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        if before + after == 0:
            continue
        if size == 0:
            raise ValueError(f"pad: axis {axis} is empty: it has nothing for mode {mode!r}")
        positions = arange(-before, size + after, device=array.device)
        if mode == "edge":
            positions = clip(positions, 0, size - 1)
        elif mode == "wrap":
            positions = positions % size
        elif mode == "symmetric":
            positions = positions % (2 * size)
            positions = elementary.minimum(positions, 2 * size - 1 - positions)
        else:
            # The distance from the far end, in a period that runs there and back.
            positions = size - 1 - elementary.abs(positions % max(1, 2 * (size - 1)) - (size - 1))
        array = take(array, positions, axis=axis)
    return array if any(map(any, widths)) else array.copy()


def _constant(array: Array, widths: list[list[Any]], values: Any) -> Array:
    values = _pairs_per_dimension(values, array.ndim, "constant_values")
    sizes = [size + sum(each) for size, each in zip(array.shape, widths, strict=True)]
    result = empty(sizes, dtype=array.dtype, device=array.device)
    # The borders of later dimensions overwrite the corners.
    for axis, (before, _) in enumerate(widths):
        around = (slice(None),) * axis
        assign(result[(*around, slice(before))], values[axis][0])
        assign(result[(*around, slice(before + array.shape[axis], None))], values[axis][1])
    inner = tuple(
        slice(first, first + size) for (first, _), size in zip(widths, array.shape, strict=True)
    )
    assign(result[inner], array)
    return result


def _pairs_per_dimension(values: Any, ndim: int, name: str) -> list[list[Any]]:
    """The pair of the values before and after, for each dimension."""
    try:
        pairs: list[list[Any]] = np.broadcast_to(np.asarray(values), (ndim, 2)).tolist()
        return pairs
    except ValueError:
        raise ValueError(
            f"pad: {name}: expected one value, a pair or {ndim} pairs, got {values}"
        ) from None
