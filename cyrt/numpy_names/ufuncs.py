"""The methods that NumPy's functions of two operands have: reduce, accumulate, outer, at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cyrt.kernels.families.elementwise import BINARY
from cyrt.ndarray import Array
from cyrt.numpy_names.binning import weighted
from cyrt.numpy_names.coercion import array_beside
from cyrt.ops import functions as elementary
from cyrt.ops import reduce as reductions
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import arange
from cyrt.ops.manipulation import stack
from cyrt.ops.scan import cumprod, cumsum, cumulative_sum, diff
from cyrt.ops.search import searchsorted
from cyrt.ops.shapes import broadcast_to, moveaxis, ravel, reshape
from cyrt.ops.sort import argsort
from cyrt.ops.take import take
from cyrt.ops.ternary import where


def _reduce(function: Callable[..., Array], array: Any, axis: Any = 0, dtype: Any = None,
            out: Array | None = None, keepdims: bool = False, initial: Any = None,
            where: Any = None) -> Array:
    """Over axes, the first where left out; a sequence of arrays is stacked."""
    if isinstance(array, (list, tuple)):
        array = stack(array)
    if dtype is not None:
        array = astype(check_array(array, "reduce"), dtype, copy=False)
    # any and all, whose results are bool, begin with nothing else.
    more = {} if initial is None else {"initial": initial}
    return function(array, axis=axis if array.ndim else None, out=out, keepdims=keepdims,
                    where=where, **more)


def _accumulate(function: Callable[..., Array], array: Array, axis: int = 0) -> Array:
    """Up to each element along an axis, by distances of 1, 2, 4 ..."""
    result = copy(check_array(array, "accumulate"))
    line = moveaxis(result, axis_of(axis, result.ndim), 0)
    step = 1
    while step < line.shape[0]:
        line[step:] = function(line[step:], line[:-step])
        step *= 2
    return result


def _scanned(function: Callable[..., Array], array: Array, axis: int = 0, dtype: Any = None,
             out: Array | None = None) -> Array:
    return function(array, axis, dtype, out)


def _outer(function: Callable[..., Array], a: Array, b: Array) -> Array:
    """Of each element of a with each of b: a's dimensions, then b's."""
    check_array(a, "outer"), check_array(b, "outer")
    return function(reshape(a, (*a.shape, *(1,) * b.ndim)), b)


def _at(function: Callable[..., Array], a: Array, indices: Any, b: Any) -> None:
    """In place, at indices of which some may be named several times: then each counts."""
    places, values = _named(a, indices, b)
    if a.dtype.kind == "c":
        parts = ((a.real, values.real), (a.imag, values.imag))
    else:
        parts = ((a, values),)
    for target, each in parts:
        total = _total(ravel(places), ravel(each), a.size)
        target[...] = function(target, astype(reshape(total, a.shape), target.dtype))


def _named(a: Array, indices: Any, b: Any) -> tuple[Array, Array]:
    """Which elements of a are named, by their places in C order, and the values for each."""
    places = reshape(arange(check_array(a, "at: a").size, device=a.device), a.shape)[indices]
    values = astype(array_beside(a, b, "at: b", a.dtype), a.dtype, copy=False)
    return places, broadcast_to(values, places.shape)


def _extreme_at(function: Callable[..., Array], a: Array, indices: Any, b: Any) -> None:
    """The largest or smallest of the values at each place, in place; see `_at`."""
    places, values = map(ravel, _named(a, indices, b))
    if places.size == 0:
        return
    order = argsort(values)
    order = take(order, argsort(take(places, order)))           # by places, then by values
    places, values = take(places, order), take(values, order)
    ends = searchsorted(places, arange(a.size + 1, device=a.device))
    first, last = take(values, ends[:-1]), take(values, ends[1:] - 1)
    # NaN is last, and is the smallest, too.
    found = last if function is elementary.maximum else where(last == last, first, last)
    found = reshape(where(diff(ends) > 0, found, ravel(a)), a.shape)
    a[...] = function(a, found)


def _total(places: Array, values: Array, size: int) -> Array:
    """The sums of the values at each place."""
    edges = arange(size + 1, device=values.device)
    if values.dtype.kind == "f":
        return weighted(places, values, edges, "at")
    order = argsort(places)
    sums = cumulative_sum(astype(take(values, order), "int64"), include_initial=True)
    return diff(take(sums, searchsorted(take(places, order), edges)))


for _name in BINARY:
    _each = getattr(elementary, _name)
    _each.outer = partial(_outer, _each)
for _each, _function in ((elementary.add, reductions.sum), (elementary.multiply, reductions.prod),
                         (elementary.maximum, reductions.max), (elementary.minimum, reductions.min),
                         (elementary.logical_and, reductions.all),
                         (elementary.logical_or, reductions.any)):
    _each.reduce = partial(_reduce, _function)
for _each, _scan in ((elementary.add, cumsum), (elementary.multiply, cumprod)):
    _each.accumulate = partial(_scanned, _scan)
for _each in (elementary.maximum, elementary.minimum):
    _each.accumulate = partial(_accumulate, _each)
for _each in (elementary.add, elementary.subtract):
    _each.at = partial(_at, _each)
for _each in (elementary.maximum, elementary.minimum):
    _each.at = partial(_extreme_at, _each)
