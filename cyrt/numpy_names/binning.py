"""Values counted by bins."""

from __future__ import annotations

from itertools import pairwise
from operator import gt, index, lt
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import array_beside, float_types
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import arange, linspace
from cyrt.ops.manipulation import stack
from cyrt.ops.scan import cumulative_sum, diff
from cyrt.ops.search import searchsorted
from cyrt.ops.shapes import ravel
from cyrt.ops.sort import argsort, sort
from cyrt.ops.take import take
from cyrt.ops.ternary import where


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each of the integers 0, 1, 2 ... is there; it waits for the greatest of them.

    Parameters
    ----------
    x : Array
        Integers of 0 or more, of one dimension.
    weights : Array, optional
        Of x's shape and a real type: each integer counts as much.
    minlength : int
        The result's length at least.

    Returns
    -------
    Array
        int64. With weights float32, float64 where they are; summed in float64, to whose precision
        beside the sum of them all a bin is exact.

    Raises
    ------
    ValueError
        A negative integer; not one dimension; weights of another shape.
    """
    if check_array(x, "bincount: x").ndim != 1:
        raise ValueError(f"bincount: x: expected one dimension, got shape {x.shape}")
    if x.dtype.kind not in "biu":
        raise TypeError(f"bincount: x: expected integers, got {x.dtype}")
    if index(minlength) < 0:
        raise ValueError(f"bincount: minlength: expected 0 or more, got {minlength}")
    length = 0
    if x.size:
        least, greatest = stack([reduce.min(x), reduce.max(x)]).tolist()
        if least < 0:
            raise ValueError(f"bincount: x: expected integers of 0 or more, got {least}")
        length = int(greatest) + 1
    x = astype(x, "int64", copy=False)
    edges = arange(max(length, index(minlength)) + 1, device=x.device)
    if weights is None:
        return diff(searchsorted(sort(x), edges))
    return weighted(x, weights, edges, "bincount")


def weighted(x: Array, weights: Array, edges: Array, name: str, closed: bool = False) -> Array:
    """The sums of the weights of x's elements between each edge and the next; `closed`: on the
    last edge, too."""
    if check_array(weights, f"{name}: weights").shape != x.shape:
        raise ValueError(f"{name}: weights: expected shape {x.shape}, got {weights.shape}")
    if weights.dtype.kind == "c":
        raise TypeError(f"{name}: weights: expected a real type, got {weights.dtype}")
    order = argsort(x)
    bounds = _bounds(take(x, order), edges, closed)
    weights = take(weights, order)
    dtype = weights.dtype if weights.dtype == "float64" else "float32"
    finite = elementary.isfinite(weights)

    def sums(values: Array) -> Array:
        return diff(take(cumulative_sum(values, include_initial=True), bounds))

    result = sums(where(finite, astype(weights, "float64"), 0))
    # An infinity or a NaN is of its own bin only.
    for value, there in ((float("inf"), weights == float("inf")),
                         (float("-inf"), weights == float("-inf")),
                         (float("nan"), weights != weights)):
        result = where(sums(astype(there, "int64")) > 0, result + value, result)
    return astype(result, dtype, copy=False)


def _bounds(ordered: Array, edges: Array, closed: bool) -> Array:
    """How many elements are before each edge; `closed`: those on the last one, too."""
    found = searchsorted(ordered, edges)
    if closed:
        found[-1:] = searchsorted(ordered, edges[-1:], side="right")
    return found


def histogram(a: Array, bins: Any = 10, range: tuple[float, float] | None = None,
              density: bool | None = None, weights: Array | None = None) -> tuple[Array, Array]:
    """How many elements are in each of several bins.

    Parameters
    ----------
    a : Array
        Of a real type; its shape does not matter.
    bins : int, or Array or sequence of numbers
        How many bins of one width, or their edges, ascending.
    range : tuple of two floats, optional
        From where to where with a number of bins; from the least element to the greatest where
        left out.
    density : bool, optional
        Whether each is divided by the number of them all and by its bin's width.
    weights : Array, optional
        Of a's shape: each element counts as much, see :func:`cyrt.bincount`.

    Returns
    -------
    hist : Array
        int64, or a float with weights or `density`. A bin has its left edge, the last one both.
    edges : Array
        One more than bins. Of a's type where that is a float, else float32. Not finite where a is
        not, without a range: then nothing is counted.
    """
    values = ravel(check_array(a, "histogram: a"))
    if values.dtype.kind == "c":
        raise TypeError(f"histogram: expected a real type, got {a.dtype}")
    even = hasattr(bins, "__index__") and not isinstance(bins, Array)
    edges = _even_edges(values, index(bins), range) if even else \
        _edges(values, bins, "histogram")
    result = float_types(values)[0] if even else edges.dtype
    values, edges = _comparable(values, edges)
    if weights is None:
        found = diff(_bounds(sort(values), edges, True))
    else:
        if check_array(weights, "histogram: weights").shape != a.shape:
            raise ValueError(f"histogram: weights: expected shape {a.shape}, got {weights.shape}")
        found = weighted(values, ravel(weights), edges, "histogram", True)
    if even:
        found = where(elementary.isfinite(edges[0]) & elementary.isfinite(edges[-1]), found, 0)
    if density:
        dtype, computed = float_types(found, astype(edges[:0], result))
        found = astype(astype(found, computed) / diff(astype(edges, computed)) / reduce.sum(found),
                       dtype, copy=False)
    return found, astype(edges, result, copy=False)


def _edges(values: Array, bins: Any, name: str, descending: bool = False) -> Array:
    """Edges that are given: of one dimension, and in order where they lie on the host."""
    edges = array_beside(values, bins, f"{name}: bins")
    if edges.ndim != 1:
        raise ValueError(f"{name}: bins: expected one dimension, got shape {edges.shape}")
    if not isinstance(bins, Array):
        rises, falls = (any(function(*each) for each in pairwise(bins)) for function in (lt, gt))
        if falls and (rises or not descending):
            raise ValueError(f"{name}: bins: expected ascending "
                             f"{'or descending ' if descending else ''}numbers, got {bins}")
    return edges


def _comparable(values: Array, edges: Array) -> tuple[Array, Array]:
    """Values and edges in a type that holds both: integers beside floats, or unsigned ones of 64
    bits beside signed ones, as float64."""
    kinds = {values.dtype.kind, edges.dtype.kind}
    if len(kinds) == 1 or ("f" not in kinds and "uint64" not in (values.dtype, edges.dtype)):
        return values, edges
    return _double(values), _double(edges)


def _double(x: Array) -> Array:
    return x if x.dtype.kind == "f" else astype(x, "float64")


def _even_edges(values: Array, count: int, limits: tuple[float, float] | None) -> Array:
    if count < 1:
        raise ValueError(f"histogram: bins: expected 1 or more, got {count}")
    dtype = values.dtype if values.dtype.kind == "f" else "float64"
    if limits is not None or values.size == 0:
        low, high = (0.0, 1.0) if limits is None else map(float, limits)
        if not (float("-inf") < low <= high < float("inf")):
            raise ValueError("histogram: range: expected two finite numbers, ascending, got "
                             f"{limits}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        return linspace(low, high, count + 1, dtype=dtype, device=values.device)
    low, high = (astype(each, "float64") for each in (reduce.min(values), reduce.max(values)))
    alike = low == high
    low, high = where(alike, low - 0.5, low), where(alike, high + 0.5, high)
    steps = arange(count + 1, dtype="float64", device=values.device)
    edges = low + steps * ((high - low) / count)
    edges[-1:] = high
    return astype(edges, dtype)


def histogram_bin_edges(a: Array, bins: Any = 10,
                        range: tuple[float, float] | None = None) -> Array:
    """The edges that :func:`cyrt.histogram` takes."""
    return histogram(a, bins, range)[1]


def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    """Which bin each element is in: how many edges are at it or below.

    Parameters
    ----------
    x : Array
        Of a real type.
    bins : Array or sequence of numbers
        The edges, ascending or descending, of one dimension; a NaN is greater than all numbers.
    right : bool
        Whether an element on an edge belongs to the bin that the edge closes.

    Returns
    -------
    Array
        int64, of x's shape: 0 before the first edge.
    """
    edges = _edges(check_array(x, "digitize: x"), bins, "digitize", descending=True)
    x, edges = _comparable(x, edges)
    side = "left" if right else "right"
    ascending = searchsorted(edges, x, side=side)
    if edges.size < 2:
        return ascending
    descending = edges.size - searchsorted(edges[::-1], x, side=side)
    first, last = edges[0], edges[-1]
    return where((first <= last) | (last != last), ascending, descending)
