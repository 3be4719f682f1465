"""The gradients of convolutions, pools and interpolation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from cyrt import tape
from cyrt.autodiff.activations import relu_slope
from cyrt.autodiff.adapting import unread
from cyrt.autodiff.compositions import through
from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.nn import conv, pool
from cyrt.nn.interpolate import interpolate, interpolate_vjp
from cyrt.numpy.padding import pad
from cyrt.ops.manipulation import stack
from cyrt.ops.reduce import max as _max
from cyrt.ops.reduce import sum as _sum

_OPERANDS = ("x", "weight", "bias")
_Gradients = tuple[Array | None, Array | None, Array | None]


@tape.differentiable
def _of_input(
    slope: Array, shape: tuple[int, ...], weight: Array, numbers: tuple[Any, ...]
) -> Array:
    return conv.conv_input_vjp(slope, shape, weight, *numbers)


@tape.differentiable
def _of_weight(slope: Array, x: Array, shape: tuple[int, ...], numbers: tuple[Any, ...]) -> Array:
    return conv.conv_weight_vjp(slope, x, shape, *numbers)


# A convolution and its gradients are linear in both operands, and are each other's gradients.
tape.register(_of_input, "slope", lambda g, weight, numbers: conv.conv_general(g, weight, *numbers))
tape.register(
    _of_input,
    "weight",
    lambda g, slope, weight_shape, numbers: _of_weight(slope, g, weight_shape, numbers),
)
tape.register(_of_weight, "slope", lambda g, x, numbers: conv.conv_general(x, g, *numbers))
tape.register(
    _of_weight, "x", lambda g, slope, x_shape, numbers: _of_input(slope, x_shape, g, numbers)
)


def _convolution(
    g: Array,
    x: Array,
    weight: Array,
    bias: Array | None,
    activation: str | None,
    result: Array,
    wanted: tuple[bool, bool, bool],
    numbers: tuple[Any, ...],
) -> _Gradients:
    """The gradients of a convolution with relu or no activation; `numbers` are the arguments of
    :func:`cyrt.nn.conv_general` from the stride to `flip`."""
    if activation == "relu":
        g = relu_slope(g, result)
    return (
        _of_input(g, x.shape, weight, numbers) if wanted[0] else None,
        _of_weight(g, x, weight.shape, numbers) if wanted[1] else None,
        _sum(g, axis=tuple(range(g.ndim - 1))) if bias is not None and wanted[2] else None,
    )


def _general(
    g: Array,
    x: Array,
    weight: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    input_dilation: Any,
    groups: int,
    flip: bool,
    bias: Array | None,
    activation: str | None,
    result: Array,
    wanted: tuple[bool, bool, bool],
) -> _Gradients:
    numbers = stride, padding, dilation, input_dilation, groups, flip
    return _convolution(g, x, weight, bias, activation, result, wanted, numbers)


def _conv(
    g: Array,
    x: Array,
    weight: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    bias: Array | None,
    activation: str | None,
    result: Array,
    wanted: tuple[bool, bool, bool],
) -> _Gradients:
    numbers = stride, padding, dilation, 1, groups, False
    return _convolution(g, x, weight, bias, activation, result, wanted, numbers)


def _each(value: Any, count: int) -> Sequence[Any]:
    """Return one number for each spatial dimension."""
    return value if isinstance(value, (tuple, list)) else (value,) * count


def _transposed(
    g: Array,
    x: Array,
    weight: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    output_padding: Any,
    groups: int,
    bias: Array | None,
    activation: str | None,
    result: Array,
    wanted: tuple[bool, bool, bool],
) -> _Gradients:
    """A transposed convolution is one of a dilated input with reversed filters."""
    count = x.ndim - 2
    pads = []
    for size, removed, apart, more in zip(
        weight.shape[1:-1],
        _each(padding, count),
        _each(dilation, count),
        _each(output_padding, count),
        strict=True,
    ):
        before, after = removed if isinstance(removed, (tuple, list)) else (removed, removed)
        reach = apart * (size - 1)
        pads.append((reach - before, reach - after + more))
    numbers = 1, tuple(pads), dilation, stride, groups, True
    return _convolution(g, x, weight, bias, activation, result, wanted, numbers)


tape.register(conv.conv_general, _OPERANDS, _general)
for _function in (conv.conv1d, conv.conv2d, conv.conv3d):
    tape.register(_function, _OPERANDS, _conv)
for _transpose in (conv.conv_transpose1d, conv.conv_transpose2d, conv.conv_transpose3d):
    tape.register(_transpose, _OPERANDS, _transposed)


# -- pools and interpolation -----------------------------------------------------------------------


def _composed_max_pool(g: Array, x: Array, kernel_size: Any, stride: Any, padding: Any) -> Array:
    """The pool is the maximum of slices. Each slice has one element of each window."""
    count = x.ndim - 2
    sizes = _each(kernel_size, count)
    steps = _each(sizes if stride is None else stride, count)
    around = [
        tuple(each) if isinstance(each, (tuple, list)) else (each, each)
        for each in _each(padding, count)
    ]

    def composition(x: Array) -> Array:
        padded = pad(x, ((0, 0), *around, (0, 0)), constant_values=-math.inf)
        lengths = [step * size for step, size in zip(steps, g.shape[1:-1], strict=True)]

        def tap(offsets: tuple[int, ...]) -> Array:
            spans = zip(offsets, lengths, steps, strict=True)
            return padded[(slice(None), *(slice(at, at + long, step) for at, long, step in spans))]

        taps = [tap(offsets) for offsets in itertools.product(*map(range, sizes))]
        return _max(stack(taps), axis=0)

    found: Array = through(composition, g, (x,))[0]
    return found


@tape.differentiable
def _averaged_back(
    slope: Array, shape: tuple[int, ...], dtype: DType, numbers: tuple[Any, ...]
) -> Array:
    return pool.avg_pool_vjp(slope, unread(slope, shape, dtype), *numbers)


def _avg_pool(
    g: Array, x_shape: tuple[int, ...], x_dtype: DType, kernel_size: Any, stride: Any, padding: Any
) -> Array:
    return _averaged_back(g, x_shape, x_dtype, (kernel_size, stride, padding))


@tape.differentiable
def _interpolated_back(
    slope: Array, shape: tuple[int, ...], dtype: DType, numbers: tuple[Any, ...]
) -> Array:
    return interpolate_vjp(slope, unread(slope, shape, dtype), *numbers)


def _interpolate(
    g: Array,
    x_shape: tuple[int, ...],
    x_dtype: DType,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
) -> Array:
    return _interpolated_back(g, x_shape, x_dtype, (size, scale_factor, mode, align_corners))


tape.register(
    pool.max_pool,
    "x",
    lambda g, x, kernel_size, stride, padding: pool.max_pool_vjp(
        g, x, kernel_size, stride, padding
    ),
    composed=_composed_max_pool,
)
tape.register(pool.avg_pool, "x", _avg_pool)
tape.register(_averaged_back, "slope", lambda g, numbers: pool.avg_pool(g, *numbers))
tape.register(interpolate, "x", _interpolate)
tape.register(_interpolated_back, "slope", lambda g, numbers: interpolate(g, *numbers))
