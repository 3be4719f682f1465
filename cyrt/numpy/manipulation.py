"""Splitting, concatenation, insertion and deletion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.coercion import as_array_like
from cyrt.ops.arguments import axis_of, check_array, check_vector, int_of, is_int
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import asarray, empty, zeros
from cyrt.ops.gather import take
from cyrt.ops.manipulation import concat, tile
from cyrt.ops.search import flatnonzero
from cyrt.ops.shapes import atleast_3d, moveaxis, ravel, reshape, split

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "insert",
    "resize",
    "trim_zeros",
    "vsplit",
]

_MOST_PARTS = 1 << 24  # views, each an object on the host


def column_stack(arrays: Iterable[Array], /) -> Array:
    """Concatenate arrays along the second axis; vectors become columns.

    Parameters
    ----------
    arrays : iterable of Array
        The arrays, whose shapes are equal except along the second axis.

    Returns
    -------
    Array
        An array of the promoted type.
    """
    return concat(
        [
            each[:, None] if each.ndim == 1 else reshape(each, (1, 1)) if each.ndim == 0 else each
            for each in _arrays(arrays, "column_stack")
        ],
        axis=1,
    )


def dstack(arrays: Iterable[Array], /) -> Array:
    """Concatenate arrays along the third axis, which vectors and matrices get first.

    Parameters
    ----------
    arrays : iterable of Array
        The arrays. A vector of shape ``(n,)`` is used as ``(1, n, 1)``, and a matrix of shape
        ``(m, n)`` as ``(m, n, 1)``.

    Returns
    -------
    Array
        An array of the promoted type.
    """
    return concat([atleast_3d(each) for each in _arrays(arrays, "dstack")], axis=2)


def _arrays(arrays: Iterable[Array], name: str) -> list[Array]:
    return [check_array(each, name) for each in arrays]


def block(arrays: Any) -> Array:
    """Concatenate nested lists of arrays: the innermost lists along the last axis, and so on.

    Parameters
    ----------
    arrays : nested list of Array or number, or Array
        All lists have the same depth.

    Raises
    ------
    ValueError
        The depths differ, a list is empty, or there is no Array.
    TypeError
        A list contains a tuple or a NumPy array.
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
    return _concatenate_nested(arrays, first, ndim, depth) if depth else duplicate(first)


def _leaves(nested: Any, depth: int) -> Iterable[tuple[Any, int]]:
    if isinstance(nested, tuple):
        raise TypeError("block: expected lists of arrays, got a tuple")
    if not isinstance(nested, list):
        yield nested, depth
        return
    if not nested:
        raise ValueError("block: a list is empty")
    for each in nested:
        yield from _leaves(each, depth + 1)


def _concatenate_nested(nested: Any, first: Array, ndim: int, left: int) -> Array:
    if left:
        return concat(
            [_concatenate_nested(each, first, ndim, left - 1) for each in nested], axis=-left
        )
    leaf = as_array_like(first, nested, "block")
    return leaf[(None,) * (ndim - leaf.ndim)]


def array_split(
    x: Array, /, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[Array]:
    """Views of parts along an axis, whose sizes may differ by 1; see :func:`cyrt.split`.

    Parameters
    ----------
    x : Array
        An array of one dimension or more.
    indices_or_sections : int, or sequence or Array of ints
        The number of parts, of which the first ones are longer by 1 if the size of the axis is no
        multiple of it; or the indices at which new parts begin.
    axis : int
        The axis to split.

    Returns
    -------
    list of Array
        Views.
    """
    size = check_array(x, "array_split: x").shape[axis_of(axis, x.ndim)]
    if isinstance(indices_or_sections, Array):
        indices_or_sections = indices_or_sections.tolist()
    if not is_int(indices_or_sections):
        return split(x, indices_or_sections, axis=axis)
    parts = int_of(indices_or_sections, "array_split: indices_or_sections")
    if not 0 < parts <= _MOST_PARTS:
        raise ValueError(f"array_split: expected 1 to {_MOST_PARTS:,} parts, got {parts}")
    length, longer = divmod(size, parts)
    return split(x, [length * i + min(i, longer) for i in range(1, parts)], axis=axis)


def hsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the second axis, or along the only axis of a vector.

    Parameters
    ----------
    x : Array
        An array of one dimension or more.
    indices_or_sections : int, or sequence or Array of ints
        As for :func:`cyrt.split`.

    Returns
    -------
    list of Array
        Views.
    """
    return split(_at_least(x, "hsplit", 1), indices_or_sections, axis=min(1, x.ndim - 1))


def vsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the first axis of a matrix.

    Parameters
    ----------
    x : Array
        An array of two dimensions or more.
    indices_or_sections : int, or sequence or Array of ints
        As for :func:`cyrt.split`.

    Returns
    -------
    list of Array
        Views.
    """
    return split(_at_least(x, "vsplit", 2), indices_or_sections, axis=0)


def dsplit(x: Array, /, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """:func:`cyrt.split` along the third axis.

    Parameters
    ----------
    x : Array
        An array of three dimensions or more.
    indices_or_sections : int, or sequence or Array of ints
        As for :func:`cyrt.split`.

    Returns
    -------
    list of Array
        Views.
    """
    return split(_at_least(x, "dsplit", 3), indices_or_sections, axis=2)


def _at_least(x: Array, name: str, ndim: int) -> Array:
    if check_array(x, f"{name}: x").ndim < ndim:
        raise ValueError(f"{name}: expected at least {ndim} dimensions, got shape {x.shape}")
    return x


def append(arr: Array, values: Any, axis: int | None = None) -> Array:
    """Append values to an array along an axis.

    Parameters
    ----------
    arr : Array
    values : Array, number or sequence
        They have the shape of arr except along the axis.
    axis : int, optional
        Default: both are flattened.
    """
    values = as_array_like(check_array(arr, "append: arr"), values, "append: values")
    return concat([arr, values], axis=axis)


def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """Delete slices along an axis.

    Parameters
    ----------
    arr : Array
    obj : int, slice, or sequence or Array of ints or bools
        The indices of the slices; the call waits for the values of an Array.
    axis : int, optional
        By default the array is flattened.

    Raises
    ------
    IndexError
        An int is out of range.
    """
    arr, axis = _flat_or_axis(arr, axis, "delete")
    positions = np.arange(arr.shape[axis])
    kept = np.delete(positions, _to_host(obj))
    return take(arr, asarray(kept, device=arr.device), axis=axis)


def insert(arr: Array, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Insert slices along an axis.

    Parameters
    ----------
    arr : Array
    obj : int, slice, or sequence or Array of ints
        The indices before which to insert; the call waits for the values of an Array.
    values : Array, number or sequence
        They are broadcast, and cast to arr's type.
    axis : int, optional
        By default the array is flattened.

    Raises
    ------
    IndexError
        An int is out of range.
    """
    arr, axis = _flat_or_axis(arr, axis, "insert")
    values = astype(as_array_like(arr, values, "insert: values"), arr.dtype, copy=False)
    size = arr.shape[axis]
    positions = _to_host(obj)
    positions = np.arange(size)[positions] if isinstance(positions, slice) else np.array(positions)
    if (positions.size and positions.dtype.kind not in "iu") or positions.ndim > 1:
        raise TypeError(f"insert: obj: expected an int, a slice or a sequence of ints, got {obj}")
    for each in positions.reshape(-1):
        if not -size <= each <= size:
            raise IndexError(f"index {each} is out of bounds for axis {axis} with size {size}")
    positions[positions < 0] += size
    before = (slice(None),) * axis
    if positions.size == 1:
        values = values[(None,) * (arr.ndim - values.ndim)]
        if positions.ndim == 0:
            values = moveaxis(values, 0, axis)
        shape = (*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1 :])
        first = positions.item()
        return concat(
            [
                arr[(*before, slice(first))],
                broadcast_to(values, shape),
                arr[(*before, slice(first, None))],
            ],
            axis=axis,
        )
    positions = positions.astype(np.int64)
    positions[positions.argsort(kind="stable")] += np.arange(positions.size)
    result = empty(
        (*arr.shape[:axis], size + positions.size, *arr.shape[axis + 1 :]),
        dtype=arr.dtype,
        device=arr.device,
    )
    kept = np.delete(np.arange(size + positions.size), positions)
    result[(*before, asarray(positions, device=arr.device))] = values
    result[(*before, asarray(kept, device=arr.device))] = arr
    return result


def _flat_or_axis(arr: Array, axis: int | None, name: str) -> tuple[Array, int]:
    """Return the array, flattened if there is no axis, and the axis."""
    check_array(arr, f"{name}: arr")
    return (ravel(arr), 0) if axis is None else (arr, axis_of(axis, arr.ndim))


def _to_host(obj: Any) -> Any:
    return obj.numpy() if isinstance(obj, Array) else obj


def resize(a: Array, new_shape: Any) -> Array:
    """The elements in another shape, in C order, repeated as needed; zeros if `a` is empty.

    Parameters
    ----------
    a : Array
    new_shape : int or tuple of int
    """
    result = empty(new_shape, dtype=check_array(a, "resize: a").dtype, device=a.device)
    if a.size == 0:
        return zeros(new_shape, dtype=a.dtype, device=a.device)
    flat = tile(ravel(a), -(-result.size // a.size))
    return reshape(flat[: result.size], result.shape)


def trim_zeros(filt: Array, trim: str = "fb") -> Array:
    """A view of a vector without the zeros at its ends; the call waits for their number.

    Parameters
    ----------
    filt : Array
        One-dimensional.
    trim : str
        ``"f"`` for the front, ``"b"`` for the back, ``"fb"`` for both.
    """
    check_vector(filt, "trim_zeros: filt")
    if not isinstance(trim, str) or trim.lower() not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim: expected 'f', 'b' or 'fb', got {show(trim)}")
    found = flatnonzero(filt)
    if found.size == 0:
        return filt[:0]
    first, last = found[0].item(), found[-1].item()
    return filt[
        first if "f" in trim.lower() else 0 : last + 1 if "b" in trim.lower() else filt.size
    ]
