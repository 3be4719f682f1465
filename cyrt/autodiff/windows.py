"""The gradients of convolutions, pools and interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyrt import tape
from cyrt.autodiff.adapting import unread
from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.nn import conv, pool
from cyrt.nn.activations import relu_vjp
from cyrt.nn.interpolate import interpolate, interpolate_vjp
from cyrt.ops.reduce import sum as _sum

_OPERANDS = ("x", "weight", "bias")
_Gradients = tuple[Array | None, Array | None, Array | None]


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
        g = relu_vjp(g, result)
    return (
        conv.conv_input_vjp(g, x.shape, weight, *numbers) if wanted[0] else None,
        conv.conv_weight_vjp(g, x, weight.shape, *numbers) if wanted[1] else None,
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


def _plain(
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
    tape.register(_function, _OPERANDS, _plain)
for _transpose in (conv.conv_transpose1d, conv.conv_transpose2d, conv.conv_transpose3d):
    tape.register(_transpose, _OPERANDS, _transposed)


def _avg_pool(
    g: Array, x_shape: tuple[int, ...], x_dtype: DType, kernel_size: Any, stride: Any, padding: Any
) -> Array:
    return pool.avg_pool_vjp(g, unread(g, x_shape, x_dtype), kernel_size, stride, padding)


def _interpolate(
    g: Array,
    x_shape: tuple[int, ...],
    x_dtype: DType,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
) -> Array:
    x = unread(g, x_shape, x_dtype)
    return interpolate_vjp(g, x, size, scale_factor, mode, align_corners)


tape.register(
    pool.max_pool,
    "x",
    lambda g, x, kernel_size, stride, padding: pool.max_pool_vjp(
        g, x, kernel_size, stride, padding
    ),
)
tape.register(pool.avg_pool, "x", _avg_pool)
tape.register(interpolate, "x", _interpolate)
