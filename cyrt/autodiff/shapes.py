"""The gradients of functions that change shapes, join, split and repeat."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cyrt import tape
from cyrt.autodiff.adapting import sum_to
from cyrt.autodiff.indexing import scatter
from cyrt.ndarray import Array
from cyrt.numpy.diagonals import diag
from cyrt.ops import broadcasting, copy, manipulation, matmul, shapes, views
from cyrt.ops.arange import arange
from cyrt.ops.creation import zeros
from cyrt.ops.manipulation import concat, stack
from cyrt.ops.reduce import sum as _sum
from cyrt.ops.scatter import add_at
from cyrt.ops.shapes import reshape

_Shape = tuple[int, ...]


def _inverse(axes: Any) -> _Shape:
    order = [int(each) % len(axes) for each in axes]
    return tuple(sorted(range(len(order)), key=order.__getitem__))


tape.register(shapes.reshape, "x", lambda g, x_shape, order: reshape(g, x_shape, order))
tape.register(shapes.permute_dims, "x", lambda g, axes: shapes.permute_dims(g, _inverse(axes)))
tape.register(
    shapes.moveaxis, "x", lambda g, source, destination: shapes.moveaxis(g, destination, source)
)
tape.register(shapes.swapaxes, "x", lambda g, axis1, axis2: shapes.swapaxes(g, axis1, axis2))
tape.register(shapes.flip, "x", lambda g, axis: shapes.flip(g, axis))
tape.register(shapes.expand_dims, "x", lambda g, x_shape: reshape(g, x_shape))
tape.register(shapes.squeeze, "x", lambda g, x_shape: reshape(g, x_shape))
tape.register(matmul.matrix_transpose, "x", lambda g: g.mT)
tape.register(broadcasting.broadcast_to, "x", lambda g, x_shape: sum_to(g, x_shape))
tape.register(copy.copy, "x", lambda g: g)
tape.register(copy.astype, "x", lambda g, x_device: copy.to_device(g, x_device))
tape.register(copy.to_device, "x", lambda g, x_device: copy.to_device(g, x_device))
tape.refuse(views.view_as, "the bytes of elements have no gradient")


# -- joining and splitting -------------------------------------------------------------------------


def _concat(g: Array, arrays_shape: list[_Shape], axis: int) -> list[Array]:
    ends, end = [], 0
    for shape in arrays_shape[:-1]:
        end += shape[axis]
        ends.append(end)
    return shapes.split(g, ends, axis)


def _split(g: list[Array | None], x_shape: _Shape, indices_or_sections: Any, axis: int) -> Array:
    size, count = x_shape[axis], len(g)
    if count == 1:
        bounds = [0, size]
    elif hasattr(indices_or_sections, "__index__"):
        bounds = [size * each // count for each in range(count + 1)]
    else:
        bounds = [0, *map(int, indices_or_sections), size]
    starts = [slice(first, last).indices(size)[0] for first, last in pairwise(bounds)]
    like = next(each for each in g if each is not None)
    if bounds == sorted(bounds) and bounds[-1] == size and min(bounds) >= 0:
        sizes = [last - first for first, last in pairwise(bounds)]
        parts = [
            zeros(_with(x_shape, axis, length), like.dtype, device=like.device)
            if each is None
            else each
            for each, length in zip(g, sizes, strict=True)
        ]
        return concat(parts, axis)
    target = zeros(x_shape, like.dtype, device=like.device)
    for start, each in zip(starts, g, strict=True):  # parts may overlap
        if each is not None:
            end = start + each.shape[axis]
            target[(slice(None),) * (axis % len(x_shape)) + (slice(start, end),)] += each
    return target


def _with(shape: _Shape, axis: int, size: int) -> _Shape:
    sizes = list(shape)
    sizes[axis] = size
    return tuple(sizes)


def _unstack(g: list[Array | None], axis: int) -> Array:
    like = next(each for each in g if each is not None)
    return stack(
        [zeros(like.shape, like.dtype, device=like.device) if each is None else each for each in g],
        axis,
    )


tape.register(concat, "arrays", _concat, sequence=True)
tape.register(stack, "arrays", lambda g, axis: list(shapes.unstack(g, axis=axis)), sequence=True)
tape.register(shapes.split, "x", _split)
tape.register(shapes.unstack, "x", _unstack)


# -- repeating -------------------------------------------------------------------------------------


def _roll(g: Array, shift: Any, axis: Any) -> Array:
    back = -shift if hasattr(shift, "__index__") else tuple(-int(each) for each in shift)
    return manipulation.roll(g, back, axis)


def _tile(g: Array, x_shape: _Shape) -> Array:
    sizes = (1,) * (g.ndim - len(x_shape)) + x_shape
    if g.size == 0:
        return zeros(x_shape, g.dtype, device=g.device)
    split = [
        each for size, full in zip(sizes, g.shape, strict=True) for each in (full // size, size)
    ]
    return reshape(_sum(reshape(g, split), tuple(range(0, len(split), 2))), x_shape)


def _repeat(g: Array, x_shape: _Shape, repeats: Any, axis: Any) -> Array:
    along = 0 if axis is None else axis % len(x_shape)
    own = (int(np.prod(x_shape)),) if axis is None else x_shape
    counts = np.asarray(repeats.numpy() if isinstance(repeats, Array) else repeats)
    if counts.size == 1:
        split = (*own[: along + 1], int(counts.reshape(())), *own[along + 1 :])
        return reshape(_sum(reshape(g, split), along + 1), x_shape)
    indices = np.repeat(np.arange(own[along]), counts)
    return reshape(scatter(g, (slice(None),) * along + (indices,), own), x_shape)


tape.register(manipulation.roll, "x", _roll)
tape.register(manipulation.tile, "x", _tile)
tape.register(manipulation.repeat, "x", _repeat)


# -- views of several dimensions -------------------------------------------------------------------


def _diagonal(g: Array, x_shape: _Shape, offset: int, axis1: int, axis2: int) -> Array:
    """Put g on the diagonals, whose rows and columns are an index each."""
    ndim = len(x_shape)
    row, column = axis1 % ndim, axis2 % ndim
    indices = arange(g.shape[-1], device=g.device)
    rest = tuple(d for d in range(ndim) if d not in (row, column))
    target = zeros(
        (*(x_shape[d] for d in rest), x_shape[row], x_shape[column]), g.dtype, device=g.device
    )
    key = (slice(None),) * len(rest) + (indices + max(-offset, 0), indices + max(offset, 0))
    target = add_at(target, key, g)
    return shapes.moveaxis(target, (ndim - 2, ndim - 1), (row, column))


def _windows(g: Array, x_shape: _Shape, length: int) -> Array:
    target = zeros(x_shape, g.dtype, device=g.device)
    for i in range(length):
        target[..., i : i + g.shape[-2]] += g[..., i]
    return target


def _diag(g: Array, v_shape: _Shape, k: int) -> Array:
    return _diagonal(g, v_shape, k, 0, 1) if len(v_shape) == 2 else views.diagonal(g, k)


tape.register(views.diagonal, "x", _diagonal)
tape.register(diag, "v", _diag)
tape.register(views.windows, "x", _windows)
