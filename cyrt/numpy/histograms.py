"""Histograms: values counted by bins."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from operator import gt, lt
from typing import Any, Literal

from cyrt import settings
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.coercion import as_array_like, float_types
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arange import arange, linspace
from cyrt.ops.arguments import check_array, check_flags, check_vector, count_of, int_of, is_int
from cyrt.ops.copy import astype, check_device
from cyrt.ops.creation import zeros
from cyrt.ops.manipulation import stack
from cyrt.ops.scan import diff
from cyrt.ops.scatter import combine_by_key
from cyrt.ops.search import searchsorted
from cyrt.ops.shapes import ravel, reshape
from cyrt.ops.sort import sort
from cyrt.ops.ternary import where
from cyrt.tape import refuse_as_number

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count the occurrences of the integers 0, 1, 2 ...; the call waits for the greatest integer.

    Parameters
    ----------
    x : Array
        Integers of 0 or more, one-dimensional.
    weights : Array, optional
        An array of x's shape and of a real type; the result has sums of weights instead of counts.
    minlength : int
        The minimum length of the result.

    Returns
    -------
    Array
        Type int64; with weights float64 if the weights have that type, otherwise float32. The
        weights of each integer are summed separately, in float64.

    Raises
    ------
    ValueError
        An integer is negative, x is not one-dimensional, or the weights have another shape.
    """
    if check_vector(x, "bincount: x").dtype.kind not in "biu":
        raise TypeError(f"bincount: x: expected integers, got {x.dtype}")
    minlength, length = count_of(minlength, "bincount: minlength"), 0
    if x.size:
        least, greatest = stack([reduce.min(x), reduce.max(x)]).tolist()
        if least < 0:
            raise ValueError(f"bincount: x: expected integers of 0 or more, got {least}")
        length = int(greatest) + 1
    length = max(length, minlength)
    if weights is None:
        edges = arange(length + 1, device=x.device)
        return diff(searchsorted(sort(astype(x, "int64", copy=False)), edges))
    return _sum_by_bin(x, weights, x.shape, length, "bincount")


def _sum_by_bin(bins: Array, weights: Any, shape: tuple[int, ...], length: int, name: str) -> Array:
    """Sum the weights of each bin; bins have numbers below the length, weights the given shape."""
    if check_array(weights, f"{name}: weights").shape != shape:
        raise ValueError(f"{name}: weights: expected shape {shape}, got {weights.shape}")
    if weights.dtype.kind == "c":
        raise TypeError(f"{name}: weights: expected a real type, got {weights.dtype}")
    check_device(weights, bins, f"{name}: weights")
    result = "float64" if weights.dtype == "float64" else "float32"
    computed = "float64" if weights.dtype.kind in "biu" else result
    sums = zeros(length, dtype=computed, device=bins.device)
    keys = astype(ravel(bins), "uint32" if length <= 1 << 32 else "uint64", copy=False)
    combine_by_key("add", sums, keys, astype(ravel(weights), computed, copy=False))
    return astype(sums, result, copy=False)


def _bounds(ordered: Array, edges: Array) -> Array:
    """Count the elements before each edge, and those on the last edge too."""
    found = searchsorted(ordered, edges)
    found[-1:] = searchsorted(ordered, edges[-1:], side="right")
    return found


def histogram(
    a: Array,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """Count the elements in each bin.

    Parameters
    ----------
    a : Array
        A real type, any shape.
    bins : int, Array or sequence of numbers
        The number of bins of equal width, or the edges in ascending order. Edges in an Array that
        are not ascending raise ValueError in checking mode (``CYRT_CHECK=1``); otherwise a bin
        whose right edge is less than its left edge counts nothing.
    range : tuple of two floats, optional
        The first and last edge if `bins` is a number; by default the smallest and the greatest
        element.
    density : bool, optional
        Whether each count is divided by the total and by the bin's width.
    weights : Array, optional
        An array of a's shape: weights that are summed instead of counting, see
        :func:`cyrt.bincount`.

    Returns
    -------
    hist : Array
        Type int64, or a float type with weights or `density`. A bin includes its left edge; the
        last bin includes both.
    edges : Array
        One more than there are bins; of a's type if that is floating-point, otherwise float32.
        Without `range`, the edges are not finite if an element is not, and nothing is counted.
    """
    values = ravel(check_array(a, "histogram: a"))
    check_flags("histogram", density=density is not None and density)
    edges, even = _bin_edges(values, bins, range, "histogram")
    result = float_types(values)[0] if even else edges.dtype
    values, edges = _to_common_type(values, edges)
    if weights is None:
        found = elementary.maximum(diff(_bounds(sort(values), edges)), 0)
    else:
        # Bins are numbered from 1. Elements before the first edge have the number 0, those beyond
        # the last one, and NaN, the number of edges.
        count = edges.size
        numbers = searchsorted(edges, values, side="right")
        if count:
            numbers = where(values == edges[-1:], count - 1, numbers)
        found = _sum_by_bin(numbers, weights, a.shape, count + 1, "histogram")[1:-1]
    if even:
        found = where(elementary.isfinite(edges[0]) & elementary.isfinite(edges[-1]), found, 0)
    if density:
        dtype, computed = float_types(found, astype(edges[:0], result))
        found = astype(
            astype(found, computed) / diff(astype(edges, computed)) / reduce.sum(found),
            dtype,
            copy=False,
        )
    return found, astype(edges, result, copy=False)


def histogram2d(
    x: Array,
    y: Array,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Count the points in each bin of a plane.

    Parameters
    ----------
    x, y : Array
        The points' coordinates: a real type, one dimension, one size.
    bins : int, Array or sequence
        The number of bins or the edges, as for :func:`cyrt.histogram`, for both axes; or a sequence
        of two of these.
    range : sequence of two tuples of two floats, optional
        The first and last edge along each axis where there is a number of bins; None for those of
        the points.
    density, weights
        As for :func:`cyrt.histogram`.

    Returns
    -------
    hist : Array
        Shape (bins of x, bins of y). Counts are float64, as NumPy's are; see
        :func:`cyrt.bincount` for sums of weights.
    x_edges, y_edges : Array

    Examples
    --------
    >>> import cyrt
    >>> x, y = cyrt.asarray([0.5, 1.5, 1.5]), cyrt.asarray([0.5, 0.5, 1.5])
    >>> cyrt.histogram2d(x, y, [0, 1, 2])[0]
    Array([[1., 0.],
           [1., 1.]], dtype=float64)
    """
    for each in (check_array(x, "histogram2d: x"), check_array(y, "histogram2d: y")):
        if each.ndim != 1 or each.shape != x.shape:
            raise ValueError(
                f"histogram2d: expected one dimension and one size, got shapes {x.shape} and "
                f"{y.shape}"
            )
    alike = not hasattr(bins, "__len__") or len(bins) != 2
    found, edges = _of_several(
        "histogram2d", [x, y], [bins, bins] if alike else bins, range, density, weights
    )
    return found, edges[0], edges[1]


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Array | None = None,
) -> tuple[Array, tuple[Array, ...]]:
    """Count the points in each bin of a space of several dimensions.

    Parameters
    ----------
    sample : Array or sequence of Array
        Shape (points, dimensions), of a real type; or an array of one dimension for each
        coordinate.
    bins : int or sequence
        The number of bins along each dimension; or for each of them the number or the edges, as for
        :func:`cyrt.histogram`.
    range : sequence of tuples of two floats, optional
        The first and last edge along each dimension where there is a number of bins; None for those
        of the points.
    density, weights
        As for :func:`cyrt.histogram`.

    Returns
    -------
    hist : Array
        A dimension for each coordinate. Counts are float64, as NumPy's are; see
        :func:`cyrt.bincount` for sums of weights.
    edges : tuple of Array
        The edges along each dimension.

    Examples
    --------
    >>> import cyrt
    >>> points = cyrt.asarray([[0.5, 0.5], [1.5, 0.5], [1.5, 1.5]])
    >>> cyrt.histogramdd(points, [[0, 1, 2], [0, 2]])[0]
    Array([[1.],
           [2.]], dtype=float64)
    """
    name = "histogramdd"
    if isinstance(sample, (list, tuple)):
        parts = [check_array(each, f"{name}: sample") for each in sample]
    else:
        check_array(sample, f"{name}: sample")
        parts = [sample] if sample.ndim == 1 else list(sample.T) if sample.ndim == 2 else []
    if not parts or any(each.ndim != 1 or each.shape != parts[0].shape for each in parts):
        raise ValueError(
            f"{name}: sample: expected shape (points, dimensions), or arrays of one dimension and "
            f"one size, got {[each.shape for each in parts] or sample.shape}"
        )
    each_bins = bins if hasattr(bins, "__len__") else [bins] * len(parts)
    return _of_several(name, parts, each_bins, range, density, weights)


def _of_several(
    name: str, parts: list[Array], bins: Any, limits: Any, density: Any, weights: Any
) -> tuple[Array, tuple[Array, ...]]:
    """Number the bins of all dimensions together, and count them."""
    check_flags(name, density=density is not None and density)
    limits = [None] * len(parts) if limits is None else limits
    for argument, values in (("bins", bins), ("range", limits)):
        if len(values) != len(parts):
            raise ValueError(
                f"{name}: {argument}: expected one for each of {len(parts)} dimensions, got "
                f"{len(values)}"
            )
    first = parts[0]
    keys = zeros(first.shape, dtype="int64", device=first.device)
    finite: Any = True
    all_edges, sizes = [], []
    for values, each, limit in zip(parts, bins, limits, strict=True):
        check_device(values, first, name)
        edges, even = _bin_edges(values, each, limit, name)
        if even:
            finite = finite & elementary.isfinite(edges[0]) & elementary.isfinite(edges[-1])
        all_edges.append(astype(edges, float_types(values)[0], copy=False) if even else edges)
        if edges.size < 2:
            raise ValueError(f"{name}: bins: expected two edges or more, got {edges.size}")
        values, edges = _to_common_type(values, edges)
        # Bins are numbered from 1; 0 and the last number are outside.
        numbers = searchsorted(edges, values, side="right")
        numbers = where(values == edges[-1:], edges.size - 1, numbers)
        keys = keys * (edges.size + 1) + numbers
        sizes.append(edges.size + 1)
    total = prod(sizes)
    if weights is None:
        found = diff(searchsorted(sort(keys), arange(total + 1, device=first.device)))
    else:
        found = _sum_by_bin(keys, weights, first.shape, total, name)
    found = reshape(found, sizes)[(slice(1, -1),) * len(sizes)]
    if finite is not True:
        found = where(finite, found, 0)
    if density:
        dtype, computed = float_types(found, *all_edges)
        volume: Any = reduce.sum(found)
        found = astype(found, computed)
        for d, edges in enumerate(all_edges):
            widths = diff(astype(edges, computed))
            found = found / reshape(widths, (-1, *(1,) * (len(sizes) - 1 - d)))
        found = astype(found / volume, dtype, copy=False)
    elif weights is None:
        found = astype(found, "float64")  # as NumPy counts in several dimensions
    elif finite is True:
        found = found.copy()  # it is a view of an array that has bins for the values outside
    return found, tuple(all_edges)


def _bin_edges(values: Array, bins: Any, limits: Any, name: str) -> tuple[Array, bool]:
    """The edges of bins, and whether these are a number of bins of equal width."""
    if values.dtype.kind == "c":
        raise TypeError(f"{name}: expected a real type, got {values.dtype}")
    if is_int(bins) and not isinstance(bins, Array):
        return _uniform_edges(values, int_of(bins, f"{name}: bins"), limits, name), True
    return _edges(values, bins, name), False


def _edges(values: Array, bins: Any, name: str, descending: bool = False) -> Array:
    """Convert and check the caller's edges.

    The order of those on the device is checked in checking mode, which waits for them.
    """
    if isinstance(bins, str) or not hasattr(bins, "__iter__"):
        raise TypeError(f"{name}: bins: expected edges or a number of bins, got {show(bins)}")
    edges = check_vector(as_array_like(values, bins, f"{name}: bins"), f"{name}: bins")
    if isinstance(bins, Array) and settings.get("CYRT_CHECK"):
        bins = bins.tolist()
    if not isinstance(bins, Array):
        rises, falls = (any(function(*each) for each in pairwise(bins)) for function in (lt, gt))
        if falls and (rises or not descending):
            raise ValueError(
                f"{name}: bins: expected ascending "
                f"{'or descending ' if descending else ''}numbers, got {bins}"
            )
    return edges


def _to_common_type(values: Array, edges: Array) -> tuple[Array, Array]:
    """Convert values and edges to types that compare exactly enough.

    Integers and floats, and uint64 and signed integers, are compared as float64.
    """
    kinds = {values.dtype.kind, edges.dtype.kind}
    if len(kinds) == 1 or ("f" not in kinds and "uint64" not in (values.dtype, edges.dtype)):
        return values, edges
    return _to_float64(values), _to_float64(edges)


def _to_float64(x: Array) -> Array:
    return x if x.dtype.kind == "f" else astype(x, "float64")


def _uniform_edges(
    values: Array, count: int, limits: tuple[float, float] | None, name: str
) -> Array:
    if count < 1:
        raise ValueError(f"{name}: bins: expected 1 or more, got {count}")
    dtype = values.dtype if values.dtype.kind == "f" else "float64"
    if limits is not None or values.size == 0:
        try:
            low, high = (0.0, 1.0) if limits is None else map(float, limits)
        except (TypeError, ValueError):
            raise TypeError(f"{name}: range: expected two numbers, got {show(limits)}") from None
        for each in limits or ():
            refuse_as_number(each, f"{name}: range")
        if not (float("-inf") < low <= high < float("inf")):
            raise ValueError(f"{name}: range: expected two finite numbers, ascending, got {limits}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        return linspace(low, high, count + 1, dtype=dtype, device=values.device)
    least, most = (astype(each, "float64") for each in (reduce.min(values), reduce.max(values)))
    alike = least == most
    first, last = where(alike, least - 0.5, least), where(alike, most + 0.5, most)
    steps = arange(count + 1, dtype="float64", device=values.device)
    edges = first + steps * ((last - first) / count)
    edges[-1:] = last
    return astype(edges, dtype)


def histogram_bin_edges(
    a: Array, bins: Any = 10, range: tuple[float, float] | None = None
) -> Array:
    """The edges of :func:`cyrt.histogram`'s bins.

    Parameters
    ----------
    a, bins, range
        As for :func:`cyrt.histogram`.

    Returns
    -------
    Array
        The edges, one more than there are bins; of a's type if that is floating-point, otherwise
        float32.
    """
    name = "histogram_bin_edges"
    values = ravel(check_array(a, f"{name}: a"))
    edges, even = _bin_edges(values, bins, range, name)
    return astype(edges, float_types(values)[0] if even else edges.dtype, copy=False)


def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    """The index of each element's bin: the number of edges at or below the element.

    Parameters
    ----------
    x : Array
        An array of a real type.
    bins : Array or sequence of numbers
        The edges, in ascending or descending order, one-dimensional; NaN is greater than all
        numbers.
    right : bool
        Whether bins include their right edge instead of the left one.

    Returns
    -------
    Array
        Type int64, of x's shape; 0 for elements before the first edge.
    """
    check_flags("digitize", right=right)
    edges = _edges(check_array(x, "digitize: x"), bins, "digitize", descending=True)
    x, edges = _to_common_type(x, edges)
    side: Literal["left", "right"] = "left" if right else "right"
    ascending = searchsorted(edges, x, side=side)
    if edges.size < 2:
        return ascending
    descending = edges.size - searchsorted(edges[::-1], x, side=side)
    first, last = edges[0], edges[-1]
    return where((first <= last) | (last != last), ascending, descending)
