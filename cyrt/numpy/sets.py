"""Set operations on elements."""

from __future__ import annotations

from math import prod
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray, lexsort
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arange import arange
from cyrt.ops.arguments import axis_of, check_array, check_flags
from cyrt.ops.copy import astype, check_device
from cyrt.ops.creation import empty, full
from cyrt.ops.gather import take
from cyrt.ops.manipulation import concat
from cyrt.ops.promotion import result_type
from cyrt.ops.scan import cumulative_sum, diff
from cyrt.ops.search import flatnonzero
from cyrt.ops.sets import isin, unique_all, unique_values
from cyrt.ops.shapes import moveaxis, ravel, reshape
from cyrt.ops.sort import argsort

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]


def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """The unique elements, or slices along an axis, ascending; the call waits for their number.

    Parameters
    ----------
    ar : Array
    return_index : bool
        Whether to return the index of the first occurrence of each unique element, in the flattened
        `ar` or along the axis.
    return_inverse : bool
        Whether to return the index of each element of `ar` in the result. The indices have ar's
        shape; with an axis they are one-dimensional.
    return_counts : bool
        Whether to return the numbers of occurrences.
    axis : int, optional
        The axis whose slices are compared, in lexicographic order; by default elements are
        compared.
    equal_nan : bool
        Whether all NaN are equal, unlike in :func:`cyrt.unique_all`. Slices with NaN are never
        equal.

    Returns
    -------
    Array, or tuple of Arrays
        The elements, one-dimensional, or the slices; then the requested arrays, int64.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.unique(cyrt.asarray([3, 1, 3, 2]))
    Array([1, 2, 3], dtype=int64)
    >>> values, counts = cyrt.unique(cyrt.asarray([3, 1, 3, 2]), return_counts=True)
    >>> counts
    Array([1, 1, 2], dtype=int64)
    """
    check_flags(
        "unique",
        return_index=return_index,
        return_inverse=return_inverse,
        return_counts=return_counts,
        equal_nan=equal_nan,
    )
    check_array(ar, "unique: ar")
    if axis is not None:
        axis = axis_of(axis, ar.ndim)
        if ar.ndim == 1:  # its slices are its elements
            axis = None
    found = list(unique_all(ar) if axis is None else _unique_parts(ar, axis))
    if axis is None and equal_nan and ar.dtype.kind in "fc":
        found = _merge_nan(*found)
    wanted = (True, return_index, return_inverse, return_counts)
    found = [each for each, is_wanted in zip(found, wanted, strict=True) if is_wanted]
    return found[0] if len(found) == 1 else tuple(found)


def _unique_parts(ar: Array, axis: int) -> list[Array]:
    """The unique slices along an axis, their first positions, the inverse, and the counts."""
    parts = moveaxis(ar, axis, 0)
    n = parts.shape[0]
    rows = reshape(parts, (n, prod(parts.shape[1:])))
    order = lexsort(rows.T[::-1]) if rows.shape[1] else arange(n, device=ar.device)
    ordered = take(rows, order, axis=0)
    first = concat(
        [
            full(min(n, 1), True, dtype="bool", device=ar.device),
            reduce.any(ordered[1:] != ordered[:-1], axis=1),
        ]
    )
    positions = flatnonzero(first)
    inverse = empty(n, dtype="int64", device=ar.device)
    inverse[order] = cumulative_sum(astype(first, "int64")) - 1
    values = take(parts, take(order, positions), axis=0)
    values = ascontiguousarray(moveaxis(values, 0, axis))
    return [values, take(order, positions), inverse, diff(positions, append=n)]


def _merge_nan(values: Array, positions: Array, inverse: Array, counts: Array) -> list[Array]:
    """Merge all NaN into one, the last element."""
    nan = elementary.isnan(values)
    known = values.size - reduce.count_nonzero(nan).item()
    if known == values.size:
        return [values, positions, inverse, counts]
    order = argsort(astype(nan, "uint8"))  # complex NaN need not be the last elements
    rank = empty(values.size, dtype="int64", device=values.device)
    rank[order] = elementary.minimum(arange(values.size, device=values.device), known)
    order = order[: known + 1]
    first = positions[nan]
    positions, counts = (
        take(positions, order),
        concat([take(counts, order[:known]), reduce.sum(counts[nan], keepdims=True)]),
    )
    positions[known:] = reduce.min(first)
    return [
        take(values, order),
        positions,
        take(rank, inverse.ravel()).reshape(inverse.shape),
        counts,
    ]


def _flat_pair(ar1: Array, ar2: Array, name: str) -> tuple[Array, Array]:
    """Flatten two arrays and cast them to their promoted type."""
    dtype = result_type(check_array(ar1, f"{name}: ar1"), check_array(ar2, f"{name}: ar2"))
    check_device(ar2, ar1, name, "ar2")
    ar1, ar2 = (astype(ravel(each), dtype, copy=False) for each in (ar1, ar2))
    return ar1, ar2


def union1d(ar1: Array, ar2: Array) -> Array:
    """The unique elements of two arrays, ascending; the call waits for their number.

    Parameters
    ----------
    ar1, ar2 : Array
        Arrays of any shape; they are flattened.

    Returns
    -------
    Array
        A one-dimensional array of the promoted type.
    """
    found: Array = unique(concat(_flat_pair(ar1, ar2, "union1d")))
    return found


def intersect1d(
    ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The unique elements that two arrays have in common, ascending.

    The call waits for their number.

    Parameters
    ----------
    ar1, ar2 : Array
        Arrays of any shape; they are flattened.
    assume_unique : bool
        Whether the elements of each array are known to be unique. It has no effect.
    return_indices : bool
        Whether to return the first positions of the elements in both flattened arrays.

    Returns
    -------
    Array, or tuple of three Arrays
        The elements, one-dimensional; with `return_indices` also the positions in `ar1` and in
        `ar2`, int64.
    """
    check_flags("intersect1d", assume_unique=assume_unique, return_indices=return_indices)
    ar1, ar2 = _flat_pair(ar1, ar2, "intersect1d")
    if not return_indices:
        values = unique_values(ar1)
        return values[isin(values, ar2)]
    values, first, *_ = unique_all(ar1)
    others, second, *_ = unique_all(ar2)
    common = isin(values, others)
    return values[common], first[common], second[isin(others, values)]


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The unique elements of one array that are not in another; the call waits for their number.

    Parameters
    ----------
    ar1, ar2 : Array
        Arrays of any shape; they are flattened.
    assume_unique : bool
        Whether the elements of each array are known to be unique. The result then keeps their
        order.

    Returns
    -------
    Array
        A one-dimensional array of ar1's type, ascending unless `assume_unique` is True.
    """
    check_flags("setdiff1d", assume_unique=assume_unique)
    check_array(ar1, "setdiff1d: ar1")
    ar1 = ravel(ar1) if assume_unique else unique(ar1)
    return ar1[isin(*_flat_pair(ar1, ar2, "setdiff1d"), invert=True)]


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The unique elements that only one of two arrays has, ascending.

    The call waits for their number. A NaN of one array differs from a NaN of the other, as in
    NumPy.

    Parameters
    ----------
    ar1, ar2 : Array
        Arrays of any shape; they are flattened.
    assume_unique : bool
        Whether the elements of each array are known to be unique.

    Returns
    -------
    Array
        A one-dimensional array of the promoted type.
    """
    check_flags("setxor1d", assume_unique=assume_unique)
    ar1, ar2 = _flat_pair(ar1, ar2, "setxor1d")
    if not assume_unique:
        ar1, ar2 = unique(ar1), unique(ar2)
    alone = concat([ar1[isin(ar1, ar2, invert=True)], ar2[isin(ar2, ar1, invert=True)]])
    found: Array = unique(alone, equal_nan=False)
    return found
