"""Arrays taken apart and put together, as NumPy does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import array_beside
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import asarray, empty, zeros
from cyrt.ops.manipulation import concat, tile
from cyrt.ops.search import flatnonzero
from cyrt.ops.shapes import (
    atleast_3d,
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
    split,
)
from cyrt.ops.take import take

_MOST_PARTS = 1 << 24        # views, each an object on the host


def column_stack(arrays: Iterable[Array], /) -> Array:
    """Arrays side by side, vectors as columns."""
    return concat([each[:, None] if each.ndim == 1 else reshape(each, (1, 1)) if each.ndim == 0
                   else each for each in _arrays(arrays, "column_stack")], axis=1)


def dstack(arrays: Iterable[Array], /) -> Array:
    """Arrays one behind the other: along a third axis, which vectors and matrices get."""
    return concat([atleast_3d(each) for each in _arrays(arrays, "dstack")], axis=2)


def _arrays(arrays: Iterable[Array], name: str) -> list[Array]:
    return [check_array(each, name) for each in arrays]


def block(arrays: Any) -> Array:
    """Arrays joined by nested lists: the innermost along the last axis, and so on outwards.

    Parameters
    ----------
    arrays : nested list of Array or number, or Array
        All as deep.

    Raises
    ------
    ValueError
        Lists of different depths, an empty one, no Array at all.
    TypeError
        A tuple among the lists, a NumPy array.
    """
    leaves = list(_leaves(arrays, 0))
    depths = {depth for _, depth in leaves}
    if len(depths) != 1:
        raise ValueError(f"block: expected lists of one depth, got the depths {sorted(depths)}")
    depth = depths.pop()
    first = next((leaf for leaf, _ in leaves if isinstance(leaf, Array)), None)
    if first is None:
        raise ValueError("block: expected at least one Array")
    ndim = max(depth, *(leaf.ndim for leaf, _ in leaves if isinstance(leaf, Array)))
    return _joined(arrays, first, ndim, depth) if depth else duplicate(first)


def _leaves(given: Any, depth: int) -> Iterable[tuple[Any, int]]:
    if isinstance(given, tuple):
        raise TypeError("block: expected lists of arrays, got a tuple")
    if not isinstance(given, list):
        yield given, depth
        return
    if not given:
        raise ValueError("block: a list is empty")
    for each in given:
        yield from _leaves(each, depth + 1)


def _joined(given: Any, first: Array, ndim: int, left: int) -> Array:
    if left:
        return concat([_joined(each, first, ndim, left - 1) for each in given], axis=-left)
    leaf = array_beside(first, given, "block")
    return leaf[(None,) * (ndim - leaf.ndim)]


def array_split(x: Array, /, indices_or_sections: int | Sequence[int],
                axis: int = 0) -> list[Array]:
    """Views of parts along an axis, as :func:`cyrt.split`, the first ones longer by one where an
    int does not divide."""
    size = check_array(x, "array_split: x").shape[axis_of(axis, x.ndim)]
    if isinstance(indices_or_sections, Array):
        indices_or_sections = indices_or_sections.tolist()
    if not hasattr(indices_or_sections, "__index__"):
        return split(x, indices_or_sections, axis=axis)
    parts = index(indices_or_sections)
    if not 0 < parts <= _MOST_PARTS:
        raise ValueError(f"array_split: expected 1 to {_MOST_PARTS:,} parts, got {parts}")
    length, longer = divmod(size, parts)
    return split(x, [length * i + min(i, longer) for i in range(1, parts)], axis=axis)


def hsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the second axis, the first of a vector."""
    return split(_at_least(x, "hsplit", 1), indices_or_sections, axis=min(1, x.ndim - 1))


def vsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the first axis of a matrix."""
    return split(_at_least(x, "vsplit", 2), indices_or_sections, axis=0)


def dsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the third axis."""
    return split(_at_least(x, "dsplit", 3), indices_or_sections, axis=2)


def _at_least(x: Array, name: str, ndim: int) -> Array:
    if check_array(x, f"{name}: x").ndim < ndim:
        raise ValueError(f"{name}: expected at least {ndim} dimensions, got shape {x.shape}")
    return x


def append(arr: Array, values: Any, axis: int | None = None) -> Array:
    """Values behind an array's, along an axis.

    Parameters
    ----------
    arr : Array
    values : Array, number or sequence
        Of arr's shape but along the axis.
    axis : int, optional
        Left out: both are flattened.
    """
    values = array_beside(check_array(arr, "append: arr"), values, "append: values")
    return concat([arr, values], axis=axis)


def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """An array without some of its parts along an axis.

    Parameters
    ----------
    arr : Array
    obj : int, slice, or sequence or Array of ints or bools
        Which; an Array is waited for.
    axis : int, optional
        Left out: the array is flattened.

    Raises
    ------
    IndexError
        An int out of range.
    """
    arr, axis = _along(arr, axis, "delete")
    places = np.arange(arr.shape[axis])
    kept = np.delete(places, _on_host(obj))
    return take(arr, asarray(kept, device=arr.device), axis=axis)


def insert(arr: Array, obj: Any, values: Any, axis: int | None = None) -> Array:
    """An array with more parts before some of its own along an axis.

    Parameters
    ----------
    arr : Array
    obj : int, slice, or sequence or Array of ints
        Before which; an Array is waited for.
    values : Array, number or sequence
        Broadcast, and cast to arr's type.
    axis : int, optional
        Left out: the array is flattened.

    Raises
    ------
    IndexError
        An int out of range.
    """
    arr, axis = _along(arr, axis, "insert")
    values = astype(array_beside(arr, values, "insert: values"), arr.dtype, copy=False)
    size = arr.shape[axis]
    places = _on_host(obj)
    places = np.arange(size)[places] if isinstance(places, slice) else np.array(places)
    if (places.size and places.dtype.kind not in "iu") or places.ndim > 1:
        raise TypeError(f"insert: obj: expected an int, a slice or a sequence of ints, got {obj}")
    for each in places.reshape(-1):
        if not -size <= each <= size:
            raise IndexError(f"index {each} is out of bounds for axis {axis} with size {size}")
    places[places < 0] += size
    before = (slice(None),) * axis
    if places.size == 1:
        values = values[(None,) * (arr.ndim - values.ndim)]
        if places.ndim == 0:
            values = moveaxis(values, 0, axis)
        shape = (*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1:])
        first = places.item()
        return concat([arr[(*before, slice(first))], broadcast_to(values, shape),
                       arr[(*before, slice(first, None))]], axis=axis)
    places = places.astype(np.int64)
    places[places.argsort(kind="stable")] += np.arange(places.size)
    result = empty((*arr.shape[:axis], size + places.size, *arr.shape[axis + 1:]),
                   dtype=arr.dtype, device=arr.device)
    kept = np.delete(np.arange(size + places.size), places)
    result[(*before, asarray(places, device=arr.device))] = values
    result[(*before, asarray(kept, device=arr.device))] = arr
    return result


def _along(arr: Array, axis: int | None, name: str) -> tuple[Array, int]:
    """The array, flattened without an axis, and the axis."""
    check_array(arr, f"{name}: arr")
    return (ravel(arr), 0) if axis is None else (arr, axis_of(axis, arr.ndim))


def _on_host(obj: Any) -> Any:
    return obj.numpy() if isinstance(obj, Array) else obj


def resize(a: Array, new_shape: Any) -> Array:
    """The elements, in C order, over and over in another shape; zeros where there are none.

    Parameters
    ----------
    a : Array
    new_shape : int or tuple of int
    """
    result = empty(new_shape, dtype=check_array(a, "resize: a").dtype, device=a.device)
    if a.size == 0:
        return zeros(new_shape, dtype=a.dtype, device=a.device)
    flat = tile(ravel(a), -(-result.size // a.size))
    return reshape(flat[:result.size], result.shape)


def trim_zeros(filt: Array, trim: str = "fb") -> Array:
    """A vector without the zeros at its ends, a view; it waits for how many there are.

    Parameters
    ----------
    filt : Array
        Of one dimension.
    trim : str
        ``"f"`` the front, ``"b"`` the back, ``"fb"`` both.
    """
    if check_array(filt, "trim_zeros: filt").ndim != 1:
        raise ValueError(f"trim_zeros: expected one dimension, got shape {filt.shape}")
    if not isinstance(trim, str) or trim.lower() not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim: expected 'f', 'b' or 'fb', got {trim!r}")
    found = flatnonzero(filt)
    if found.size == 0:
        return filt[:0]
    first, last = found[0].item(), found[-1].item()
    return filt[first if "f" in trim.lower() else 0:
                last + 1 if "b" in trim.lower() else filt.size]
