"""The methods of NumPy's binary functions: ``reduce``, ``accumulate``, ``outer`` and ``at``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cyrt.builtin.rows.elementwise import BINARY
from cyrt.ndarray import Array
from cyrt.numpy_compat.coercion import as_array_like
from cyrt.numpy_compat.histograms import sum_weights
from cyrt.ops import functions as elementary
from cyrt.ops import reduce as reductions
from cyrt.ops.arange import arange
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype, copy
from cyrt.ops.gather import take
from cyrt.ops.manipulation import stack
from cyrt.ops.scan import cumprod, cumsum, cumulative_sum, diff
from cyrt.ops.search import searchsorted
from cyrt.ops.shapes import moveaxis, ravel, reshape
from cyrt.ops.sort import argsort
from cyrt.ops.ternary import where


def _reduce(
    function: Callable[..., Array],
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Reduce over axes, by default the first one; a sequence of arrays is stacked first."""
    if isinstance(array, (list, tuple)):
        array = stack(array)
    if dtype is not None:
        array = astype(check_array(array, "reduce"), dtype, copy=False)
    # any and all have no such argument.
    more = {} if initial is None else {"initial": initial}
    return function(
        array, axis=axis if array.ndim else None, out=out, keepdims=keepdims, where=where, **more
    )


def _accumulate(function: Callable[..., Array], array: Array, axis: int = 0) -> Array:
    """Accumulate along an axis by combining elements at distances of 1, 2, 4 ..."""
    result = copy(check_array(array, "accumulate"))
    line = moveaxis(result, axis_of(axis, result.ndim), 0)
    step = 1
    while step < line.shape[0]:
        line[step:] = function(line[step:], line[:-step])
        step *= 2
    return result


def _accumulate_by_scan(
    function: Callable[..., Array],
    array: Array,
    axis: int = 0,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    return function(array, axis, dtype, out)


def _outer(function: Callable[..., Array], a: Array, b: Array) -> Array:
    """Combine each element of a with each of b; a's dimensions are the first."""
    check_array(a, "outer"), check_array(b, "outer")
    return function(reshape(a, (*a.shape, *(1,) * b.ndim)), b)


def _at(function: Callable[..., Array], a: Array, indices: Any, b: Any) -> None:
    """Combine in place at indices; an index that occurs several times is combined each time."""
    positions, values = _indexed_values(a, indices, b)
    if a.dtype.kind == "c":
        parts = ((a.real, values.real), (a.imag, values.imag))
    else:
        parts = ((a, values),)
    for target, each in parts:
        total = _sum_by_position(ravel(positions), ravel(each), a.size)
        target[...] = function(target, astype(reshape(total, a.shape), target.dtype))


def _indexed_values(a: Array, indices: Any, b: Any) -> tuple[Array, Array]:
    """The positions in C order of a's indexed elements, and the value for each."""
    positions = reshape(arange(check_array(a, "at: a").size, device=a.device), a.shape)[indices]
    values = astype(as_array_like(a, b, "at: b", a.dtype), a.dtype, copy=False)
    return positions, broadcast_to(values, positions.shape)


def _extreme_at(function: Callable[..., Array], a: Array, indices: Any, b: Any) -> None:
    """Combine in place with the largest or smallest of the values at each index; see `_at`."""
    positions, values = map(ravel, _indexed_values(a, indices, b))
    if positions.size == 0:
        return
    order = argsort(values)
    order = take(order, argsort(take(positions, order)))  # by position, then by value
    positions, values = take(positions, order), take(values, order)
    ends = searchsorted(positions, arange(a.size + 1, device=a.device))
    first, last = take(values, ends[:-1]), take(values, ends[1:] - 1)
    # NaN is sorted last, but is also the minimum.
    found = last if function is elementary.maximum else where(last == last, first, last)
    found = reshape(where(diff(ends) > 0, found, ravel(a)), a.shape)
    a[...] = function(a, found)


def _sum_by_position(positions: Array, values: Array, size: int) -> Array:
    """Sum the values at each position."""
    edges = arange(size + 1, device=values.device)
    if values.dtype.kind == "f":
        return sum_weights(positions, values, edges, "at")
    order = argsort(positions)
    sums = cumulative_sum(astype(take(values, order), "int64"), include_initial=True)
    return diff(take(sums, searchsorted(take(positions, order), edges)))


def attach() -> None:
    """Add the methods to the functions, as attributes."""
    for name in BINARY:
        function = getattr(elementary, name)
        function.outer = partial(_outer, function)
    for function, reduction in (
        (elementary.add, reductions.sum),
        (elementary.multiply, reductions.prod),
        (elementary.maximum, reductions.max),
        (elementary.minimum, reductions.min),
        (elementary.logical_and, reductions.all),
        (elementary.logical_or, reductions.any),
    ):
        function.reduce = partial(_reduce, reduction)
    for function, scan in ((elementary.add, cumsum), (elementary.multiply, cumprod)):
        function.accumulate = partial(_accumulate_by_scan, scan)
    for function in (elementary.maximum, elementary.minimum):
        function.accumulate = partial(_accumulate, function)
    for function in (elementary.add, elementary.subtract):
        function.at = partial(_at, function)
    for function in (elementary.maximum, elementary.minimum):
        function.at = partial(_extreme_at, function)
