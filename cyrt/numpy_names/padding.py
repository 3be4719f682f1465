"""Arrays with borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import assign
from cyrt.ops.creation import arange, empty
from cyrt.ops.take import take
from cyrt.ops.ternary import clip

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(array: Array, pad_width: Any, mode: str = "constant", *,
        constant_values: Any = 0) -> Array:
    """An array with a border.

    Parameters
    ----------
    array : Array
    pad_width : int, or tuple of one or two ints, or one such tuple for each dimension
        How many elements before and behind.
    mode : str
        ``"constant"``; ``"edge"``: the outermost element; ``"reflect"``: the elements inwards from
        it, which is not repeated; ``"symmetric"``: from itself; ``"wrap"``: those of the other
        end.
    constant_values : as pad_width, of numbers
        For ``"constant"``.

    Returns
    -------
    Array
        A copy, of array's type.

    Raises
    ------
    ValueError
        A negative width, another mode, an empty dimension where its elements are to be repeated.
    """
    widths = _for_each_side(pad_width, check_array(array, "pad: array").ndim, "pad_width")
    if any(type(each) is not int for pair in widths for each in pair):
        raise TypeError(f"pad: pad_width: expected ints, got {pad_width}")
    if any(each < 0 for pair in widths for each in pair):
        raise ValueError(f"pad: pad_width: expected 0 or more, got {pad_width}")
    if mode == "constant":
        return _constant(array, widths, constant_values)
    if mode not in _MODES:
        raise ValueError(f"pad: mode: expected one of {', '.join(_MODES)}, got {mode!r}")
    for axis, (before, behind) in enumerate(widths):
        size = array.shape[axis]
        if before + behind == 0:
            continue
        if size == 0:
            raise ValueError(f"pad: axis {axis} is empty: it has nothing for mode {mode!r}")
        places = arange(-before, size + behind, device=array.device)
        if mode == "edge":
            places = clip(places, 0, size - 1)
        elif mode == "wrap":
            places = places % size
        elif mode == "symmetric":
            places = places % (2 * size)
            places = elementary.minimum(places, 2 * size - 1 - places)
        else:
            # There and back again: the distance from the far end.
            places = size - 1 - elementary.abs(places % max(1, 2 * (size - 1)) - (size - 1))
        array = take(array, places, axis=axis)
    return array if any(map(any, widths)) else array.copy()


def _constant(array: Array, widths: list[list[Any]], values: Any) -> Array:
    values = _for_each_side(values, array.ndim, "constant_values")
    sizes = [size + sum(each) for size, each in zip(array.shape, widths, strict=True)]
    result = empty(sizes, dtype=array.dtype, device=array.device)
    # Later dimensions' borders go over the corners.
    for axis, (before, _) in enumerate(widths):
        around = (slice(None),) * axis
        assign(result[(*around, slice(before))], values[axis][0])
        assign(result[(*around, slice(before + array.shape[axis], None))], values[axis][1])
    inner = tuple(slice(first, first + size) for (first, _), size in
                  zip(widths, array.shape, strict=True))
    assign(result[inner], array)
    return result


def _for_each_side(given: Any, ndim: int, name: str) -> list[list[Any]]:
    """(before, behind) for each dimension."""
    try:
        return np.broadcast_to(np.asarray(given), (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(f"pad: {name}: expected one value, a pair or {ndim} pairs, got "
                         f"{given}") from None
