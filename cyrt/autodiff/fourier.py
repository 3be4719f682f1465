"""The gradients of discrete Fourier transforms.

A transform is linear, and its matrix is symmetric: the gradient is the transform of the gradient.
In half a spectrum, most numbers also stand for their conjugates. These count twice in a transform
between real numbers and half a spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyrt import fft, tape
from cyrt.ndarray import Array
from cyrt.ops.arange import arange
from cyrt.ops.creation import zeros
from cyrt.ops.functions import equal, logical_or
from cyrt.ops.manipulation import concat
from cyrt.ops.shapes import reshape
from cyrt.ops.ternary import where

_Shape = tuple[int, ...]
# It computes the gradient of a transform of n points from g, n, the axis and the norm.
_Gradient = Callable[[Array, int, int, Any], Array]


def _with_factor(x: Array, n: int, axis: int, factor: float) -> Array:
    """Multiply half a spectrum by a factor, but not the numbers that are their own conjugates."""
    indices = arange(n // 2 + 1, device=x.device)
    alone = logical_or(equal(indices, 0), equal(indices * 2, n))
    shape = [1] * x.ndim
    shape[axis] = n // 2 + 1
    return x * reshape(where(alone, 1.0, factor), shape)


def _rfft(g: Array, n: int, axis: int, norm: Any) -> Array:
    return fft.hfft(_with_factor(g, n, axis, 0.5), n, axis, norm)


def _ihfft(g: Array, n: int, axis: int, norm: Any) -> Array:
    return fft.irfft(_with_factor(g, n, axis, 0.5), n, axis, norm)


def _irfft(g: Array, n: int, axis: int, norm: Any) -> Array:
    return _with_factor(fft.ihfft(g, n, axis, norm), n, axis, 2.0)


def _hfft(g: Array, n: int, axis: int, norm: Any) -> Array:
    return _with_factor(fft.rfft(g, n, axis, norm), n, axis, 2.0)


def _fitted(x: Array, size: int, axis: int) -> Array:
    """Cut an axis, or append zeros to it: the reverse of what a transform does first."""
    own = x.shape[axis]
    if own > size:
        return x[(slice(None),) * axis + (slice(size),)]
    if own == size:
        return x
    shape = list(x.shape)
    shape[axis] = size - own
    return concat([x, zeros(shape, x.dtype, device=x.device)], axis)


def _register_one(function: Any, points: Callable[[Array, int, Any], int], of: _Gradient) -> None:
    """Register a transform along one axis. `points` gives n from the gradient of the result, the
    size of the axis, and the axis."""

    def backward(g: Array, x_shape: _Shape, n: Any, axis: Any, norm: Any) -> Array:
        along = int(axis) % len(x_shape)
        size = x_shape[along]
        count = points(g, size, along) if n is None else int(n)
        return _fitted(of(g, count, along, norm), size, along)

    tape.register(function, "x", backward)


def _register_several(function: Any, whole: _Gradient, last: _Gradient, half: str) -> None:
    """Register a transform along several axes: `last` is the gradient along the last axis, `whole`
    that along the others. `half` says what has half a spectrum along the last axis: "result",
    "input", or "" for neither."""

    def backward(g: Array, x_shape: _Shape, s: Any, axes: Any, norm: Any) -> Array:
        ndim = len(x_shape)
        if axes is None:
            first = 0 if s is None else ndim - min(len(s), ndim)
            axes = range(first, ndim)
        along = [int(axis) % ndim for axis in axes]
        if not along:
            return g
        points = [x_shape[axis] for axis in along]
        if s is None and half == "input":
            points[-1] = 2 * (points[-1] - 1)
        elif s is not None:
            points = [own if int(n) == -1 else int(n) for own, n in zip(points, s, strict=True)]
        steps = list(zip(along, points, [whole] * (len(along) - 1) + [last], strict=True))
        # The function transforms in this order, and each transform finds these sizes.
        steps = steps if half == "input" else steps[::-1]
        sizes, done = list(x_shape), []
        for axis, n, of in steps:
            done.append((axis, n, of, sizes[axis]))
            sizes[axis] = n // 2 + 1 if of is last and half == "result" else n
        for axis, n, of, size in reversed(done):
            g = _fitted(of(g, n, axis, norm), size, axis)
        return g

    tape.register(function, "x", backward)


def _as_result(g: Array, size: int, axis: int) -> int:
    return g.shape[axis]


def _as_input(g: Array, size: int, axis: int) -> int:
    return size


_register_one(fft.fft, _as_result, fft.fft)
_register_one(fft.ifft, _as_result, fft.ifft)
_register_one(fft.rfft, _as_input, _rfft)
_register_one(fft.ihfft, _as_input, _ihfft)
_register_one(fft.irfft, _as_result, _irfft)
_register_one(fft.hfft, _as_result, _hfft)
for _function in (fft.fftn, fft.fft2):
    _register_several(_function, fft.fft, fft.fft, "")
for _function in (fft.ifftn, fft.ifft2):
    _register_several(_function, fft.ifft, fft.ifft, "")
for _function in (fft.rfftn, fft.rfft2):
    _register_several(_function, fft.fft, _rfft, "result")
for _function in (fft.irfftn, fft.irfft2):
    _register_several(_function, fft.ifft, _irfft, "input")
