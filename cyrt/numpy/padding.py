"""Padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arange import arange
from cyrt.ops.arguments import check_array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype
from cyrt.ops.creation import empty
from cyrt.ops.gather import take
from cyrt.ops.manipulation import concat
from cyrt.ops.shapes import moveaxis, reshape
from cyrt.ops.ternary import clip

__all__ = ["pad"]

_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reduce.max,
    "mean": reduce.mean,
    "minimum": reduce.min,
}
_MODES = ("constant", "edge", "linear_ramp", *_STATISTICS, "reflect", "symmetric", "wrap")


def pad(
    array: Array,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
) -> Array:
    """Pad an array.

    Parameters
    ----------
    array : Array
    pad_width : int, or tuple of one or two ints, or one such tuple for each dimension
        The number of elements before and after.
    mode : str
        ``"constant"`` uses `constant_values`; ``"edge"`` repeats the outermost element;
        ``"reflect"`` mirrors the elements without the outermost one, ``"symmetric"`` with it;
        ``"wrap"`` continues at the other end. ``"maximum"``, ``"mean"`` and ``"minimum"`` use the
        maximum, mean or minimum of the elements along each axis. ``"linear_ramp"`` goes from the
        outermost element to an end value.
    constant_values : as pad_width, of numbers
        The values of mode ``"constant"``.
    end_values : as pad_width, of numbers
        The outermost values of mode ``"linear_ramp"``.
    stat_length : as pad_width, optional
        The number of outermost elements from which a maximum, mean or minimum is computed; by
        default all.

    Returns
    -------
    Array
        A copy of the same type.

    Raises
    ------
    ValueError
        A width is negative, the mode is unknown, an argument is not one of the mode's, or an empty
        dimension has no elements to repeat.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.pad(cyrt.asarray([1, 2, 3]), (1, 2))
    Array([0, 1, 2, 3, 0, 0], dtype=int64)
    >>> cyrt.pad(cyrt.asarray([1, 2, 3]), 1, mode="edge")
    Array([1, 1, 2, 3, 3], dtype=int64)
    """
    widths = _pairs_per_dimension(pad_width, check_array(array, "pad: array").ndim, "pad_width")
    if any(type(each) is not int for pair in widths for each in pair):
        raise TypeError(f"pad: pad_width: expected ints, got {show(pad_width)}")
    if any(each < 0 for pair in widths for each in pair):
        raise ValueError(f"pad: pad_width: expected 0 or more, got {show(pad_width)}")
    if mode not in _MODES:
        raise ValueError(f"pad: mode: expected one of {', '.join(_MODES)}, got {show(mode)}")
    for name, value, modes in (
        ("constant_values", constant_values, ("constant",)),
        ("end_values", end_values, ("linear_ramp",)),
        ("stat_length", stat_length, _STATISTICS),
    ):
        unused = value is None or (isinstance(value, int) and value == 0)
        if not unused and mode not in modes:
            raise ValueError(f"pad: {name}: the mode {mode!r} has no such argument")
    if mode == "constant":
        return _constant(array, widths, constant_values)
    if mode in _STATISTICS or mode == "linear_ramp":
        return _by_borders(array, widths, mode, end_values, stat_length)
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
            # The distance from the other end, in a period that goes there and back.
            positions = size - 1 - elementary.abs(positions % max(1, 2 * (size - 1)) - (size - 1))
        array = take(array, positions, axis=axis)
    return array if any(map(any, widths)) else array.copy()


def _by_borders(
    array: Array, widths: list[list[Any]], mode: str, end_values: Any, stat_length: Any
) -> Array:
    """Pad one axis after the other; later axes also pad what earlier ones have added."""
    ends = _pairs_per_dimension(end_values, array.ndim, "end_values")
    lengths = _pairs_per_dimension(stat_length, array.ndim, "stat_length")
    result = array
    for axis, (width, end, length) in enumerate(zip(widths, ends, lengths, strict=True)):
        if not any(width):
            continue
        if array.shape[axis] == 0:
            raise ValueError(f"pad: axis {axis} is empty: it has nothing for mode {mode!r}")
        line = moveaxis(result, axis, 0)
        parts = [line]
        for backwards in (False, True):
            count = width[backwards]
            towards = line[::-1] if backwards else line
            if mode == "linear_ramp":
                border = _ramp(towards[:1], end[backwards], count)
            else:
                border = _statistic(towards, mode, length[backwards])
                border = broadcast_to(border, (count, *border.shape[1:]))
            if backwards:
                parts.append(border[::-1])
            else:
                parts.insert(0, border)
        result = moveaxis(concat(parts, axis=0), 0, axis)
    return result.copy()


def _statistic(line: Array, mode: str, length: Any) -> Array:
    """A statistic of the first elements, along the first axis."""
    if length is not None:
        if type(length) is not int or length < 1:
            raise ValueError(f"pad: stat_length: expected ints of 1 or more, got {length}")
        line = line[:length]
    if mode != "mean" or line.dtype.kind in "fc":
        return _STATISTICS[mode](line, axis=0, keepdims=True)
    found = elementary.round(reduce.mean(astype(line, "float64"), axis=0, keepdims=True))
    return astype(found, line.dtype)


def _ramp(edge: Array, end: Any, count: int) -> Array:
    """A number of elements from an end value towards the edge, which is not included."""
    dtype = edge.dtype
    wide = astype(edge, "complex128" if dtype.kind == "c" else "float64", copy=False)
    steps = arange(count, dtype="float64", device=edge.device) / max(count, 1)
    found = end + (wide - end) * reshape(steps, (count, *(1,) * (edge.ndim - 1)))
    return astype(elementary.floor(found) if dtype.kind in "iu" else found, dtype, copy=False)


def _constant(array: Array, widths: list[list[Any]], values: Any) -> Array:
    values = _pairs_per_dimension(values, array.ndim, "constant_values")
    sizes = [size + sum(each) for size, each in zip(array.shape, widths, strict=True)]
    result = empty(sizes, dtype=array.dtype, device=array.device)
    # The borders of later dimensions overwrite the corners.
    for axis, (before, _) in enumerate(widths):
        around = (slice(None),) * axis
        result[(*around, slice(before))] = values[axis][0]
        result[(*around, slice(before + array.shape[axis], None))] = values[axis][1]
    inner = tuple(
        slice(first, first + size) for (first, _), size in zip(widths, array.shape, strict=True)
    )
    result[inner] = array
    return result


def _pairs_per_dimension(values: Any, ndim: int, name: str) -> list[list[Any]]:
    """The pair of the values before and after, for each dimension."""
    try:
        pairs: list[list[Any]] = np.broadcast_to(np.asarray(values), (ndim, 2)).tolist()
        return pairs
    except ValueError:
        raise ValueError(
            f"pad: {name}: expected one value, a pair or {ndim} pairs, got {show(values)}"
        ) from None
