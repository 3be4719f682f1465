"""Sets of elements: NumPy's functions, made of the standard's."""

from __future__ import annotations

from math import prod
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy_names.naming import lexsort
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import arange, empty, full
from cyrt.ops.manipulation import concat
from cyrt.ops.promotion import result_type
from cyrt.ops.scan import cumulative_sum, diff
from cyrt.ops.search import flatnonzero
from cyrt.ops.sets import isin, unique_all, unique_values
from cyrt.ops.shapes import moveaxis, ravel, reshape
from cyrt.ops.sort import argsort
from cyrt.ops.take import take


def unique(ar: Array, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True) -> Any:
    """The unique elements, or parts along an axis, ascending; it waits for how many there are.

    Parameters
    ----------
    ar : Array
    return_index : bool
        Whether the first place of each in `ar`, flattened or along the axis, is returned, too.
    return_inverse : bool
        The place of each element of `ar` among them, of its shape; of one dimension along an axis.
    return_counts : bool
        How often each is there.
    axis : int, optional
        Whose parts are compared, by their first elements, then the next; elements where left out.
    equal_nan : bool
        Whether all NaN are one; see :func:`cyrt.unique_all`. Parts with one are never equal.

    Returns
    -------
    Array, or tuple of Arrays
        The elements, of one dimension, or the parts; then what is asked for, int64.
    """
    check_array(ar, "unique: ar")
    if axis is not None:
        axis = axis_of(axis, ar.ndim)
        if ar.ndim == 1:                            # its parts are its elements
            axis = None
    found = list(unique_all(ar) if axis is None else _parts(ar, axis))
    if axis is None and equal_nan and ar.dtype.kind in "fc":
        found = _with_one_nan(*found)
    wanted = (True, return_index, return_inverse, return_counts)
    found = [each for each, asked in zip(found, wanted, strict=True) if asked]
    return found[0] if len(found) == 1 else tuple(found)


def _parts(ar: Array, axis: int) -> list[Array]:
    """The unique parts along an axis, their first places, the inverse, the counts."""
    parts = moveaxis(ar, axis, 0)
    n = parts.shape[0]
    rows = reshape(parts, (n, prod(parts.shape[1:])))
    order = lexsort(rows.T[::-1]) if rows.shape[1] else arange(n, device=ar.device)
    ordered = take(rows, order, axis=0)
    first = concat([full(min(n, 1), True, dtype="bool", device=ar.device),
                    reduce.any(ordered[1:] != ordered[:-1], axis=1)])
    places = flatnonzero(first)
    inverse = empty(n, dtype="int64", device=ar.device)
    inverse[order] = cumulative_sum(astype(first, "int64")) - 1
    values = take(parts, take(order, places), axis=0)
    return [moveaxis(values, 0, axis), take(order, places), inverse, diff(places, append=n)]


def _with_one_nan(values: Array, places: Array, inverse: Array, counts: Array) -> list[Array]:
    """All NaN as the last element."""
    nan = elementary.isnan(values)
    known = values.size - reduce.count_nonzero(nan).item()
    if known == values.size:
        return [values, places, inverse, counts]
    order = argsort(astype(nan, "uint8"))           # complex ones may lie among the others
    rank = empty(values.size, dtype="int64", device=values.device)
    rank[order] = elementary.minimum(arange(values.size, device=values.device), known)
    order = order[:known + 1]
    first = places[nan]
    places, counts = take(places, order), concat([
        take(counts, order[:known]), reduce.sum(counts[nan], keepdims=True)])
    places[known:] = reduce.min(first)
    return [take(values, order), places, take(rank, inverse.ravel()).reshape(inverse.shape),
            counts]


def _both(ar1: Array, ar2: Array, name: str) -> tuple[Array, Array]:
    """Flat, of one type."""
    dtype = result_type(check_array(ar1, f"{name}: ar1"), check_array(ar2, f"{name}: ar2"))
    ar1, ar2 = (astype(ravel(each), dtype, copy=False) for each in (ar1, ar2))
    return ar1, ar2


def union1d(ar1: Array, ar2: Array) -> Array:
    """The unique elements of both, ascending; it waits for how many there are."""
    return unique(concat(_both(ar1, ar2, "union1d")))


def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False,
                return_indices: bool = False) -> Any:
    """The unique elements that are in both, ascending; it waits for how many there are.

    Parameters
    ----------
    ar1, ar2 : Array
    assume_unique : bool
        Whether the elements of each are known to be unique.
    return_indices : bool
        Whether the first places of the elements in both, flattened, are returned, too.

    Returns
    -------
    Array, or tuple of three Arrays
    """
    ar1, ar2 = _both(ar1, ar2, "intersect1d")
    if not return_indices:
        values = unique_values(ar1)
        return values[isin(values, ar2)]
    values, first, *_ = unique_all(ar1)
    others, second, *_ = unique_all(ar2)
    common = isin(values, others)
    return values[common], first[common], second[isin(others, values)]


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The unique elements of one array that are not in another, ascending; in their own order
    where they are known to be unique. It waits for how many there are."""
    check_array(ar1, "setdiff1d: ar1")
    ar1 = ravel(ar1) if assume_unique else unique(ar1)
    return ar1[isin(*_both(ar1, ar2, "setdiff1d"), invert=True)]


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The unique elements that are in one of two arrays only, ascending; it waits for how many
    there are."""
    ar1, ar2 = _both(ar1, ar2, "setxor1d")
    return unique(concat([ar1[isin(ar1, ar2, invert=True)], ar2[isin(ar2, ar1, invert=True)]]))
