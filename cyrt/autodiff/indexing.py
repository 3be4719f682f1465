"""The gradients of indexing, sorting, and writing."""

from __future__ import annotations

from typing import Any

from cyrt import tape
from cyrt.autodiff.adapting import sum_to
from cyrt.ndarray import Array
from cyrt.ops import gather, search, sets, sort
from cyrt.ops.arange import arange
from cyrt.ops.copy import assign
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import zeros
from cyrt.ops.functions import equal
from cyrt.ops.gather import put_at, take_along_axis
from cyrt.ops.scatter import add_at
from cyrt.ops.shapes import reshape
from cyrt.ops.ternary import where

_Shape = tuple[int, ...]


def _is_view(key: Any) -> bool:
    """Whether a key takes a view, in which no element occurs twice."""
    return all(
        each is None or each is Ellipsis or type(each) in (int, slice)
        for each in (key if isinstance(key, tuple) else (key,))
    )


def scatter(g: Array, key: Any, shape: _Shape) -> Array:
    """Return zeros of a shape to which g is added at a key; values of one element are summed."""
    target = zeros(shape, g.dtype, device=g.device)
    if not _is_view(key):
        return add_at(target, key, g)
    target[key] = g
    return target


def _add_part(target: Array, g: Array, key: Any) -> None:
    if _is_view(key):
        part = target[key]
        part += g
    else:
        add_at(target, key, g)


def _cleared(g: Array, key: Any) -> Array:
    g = duplicate(g)
    g[key] = 0.0
    return g


def _written(g: Array, key: Any, value_shape: _Shape) -> Array:
    """The gradient of values that are written at a key. Where an index occurs several times, one
    of the values has it: which of them a GPU writes last is not defined."""
    part = g[key]
    if not _is_view(key):
        numbers = reshape(arange(part.size, device=g.device), part.shape)
        last = zeros(g.shape, numbers.dtype, device=g.device)
        last[key] = numbers
        part = where(equal(last[key], numbers), part, 0.0)
    return sum_to(part, value_shape)


def _take(g: Array, x_shape: _Shape, indices: Any, axis: Any) -> Array:
    if axis is None:
        size = 1
        for each in x_shape:
            size *= each
        return reshape(scatter(g, (indices,), (size,)), x_shape)
    return scatter(g, (slice(None),) * (axis % len(x_shape)) + (indices,), x_shape)


def _scatter_along(g: Array, x_shape: _Shape, indices: Array, axis: Any) -> Array:
    """Add g at the indices of `take_along_axis`."""
    if axis is None:
        size = 1
        for each in x_shape:
            size *= each
        return reshape(_scatter_along(g, (size,), indices, 0), x_shape)
    key = [
        indices
        if d == axis % len(x_shape)
        else reshape(
            arange(size, device=g.device), (1,) * d + (size,) + (1,) * (len(x_shape) - 1 - d)
        )
        for d, size in enumerate(x_shape)
    ]
    return scatter(g, tuple(key), x_shape)


def _sort(g: Array, x: Array, axis: Any, descending: bool) -> Array:
    order = sort.argsort(x, axis, descending=descending)
    return reshape(
        take_along_axis(g, sort.argsort(order, axis), axis=0 if axis is None else axis), x.shape
    )


def _top_k(g: list[Array | None], x_shape: _Shape, axis: Any, result: Any) -> Array | None:
    return None if g[0] is None else _scatter_along(g[0], x_shape, result[1], axis)


tape.register(
    Array.__getitem__,
    "self",
    lambda g, key, self_shape: scatter(g, key, self_shape),
    into=lambda target, g, key, self_shape: _add_part(target, g, key),
)
tape.register(put_at, "out", _cleared)
tape.register(put_at, "value", _written)
tape.register(add_at, "out", lambda g: g)
tape.register(add_at, "values", lambda g, key, values_shape: sum_to(g[key], values_shape))
tape.register(assign, "out", lambda g: None)
tape.register(assign, "value", lambda g, value_shape: sum_to(g, value_shape))
tape.register(gather.take, "x", _take)
tape.register(take_along_axis, "x", _scatter_along)
tape.register(sort.sort, "x", _sort)
tape.register(sort.top_k, "x", _top_k)
for _constant in (sort.argsort, search.searchsorted, search.nonzero, search.contains):
    tape.register_constant(_constant)
for _set in (sets.unique_all, sets.unique_counts, sets.unique_inverse, sets.unique_values):
    tape.refuse(_set, "the elements that are equal to others have no gradient of their own")
