"""Checks of a call's arguments, their broadcasting, and the layouts that kernels get."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cyrt.cupy_compat.parameters import UserParameter
from cyrt.dtypes import DType, dtype
from cyrt.ndarray import Array
from cyrt.ops.creation import asarray

# Floats below are finite in a real type of so many bytes; two bytes are packed here.
_MOST = {4: 3.4e38, 8: np.inf}
_PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class OperandLayout(NamedTuple):
    """The layout of an array in memory: its shape, and its strides in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def contiguous(self, itemsize: int) -> bool:
        """Whether its elements are contiguous in C order."""
        for count, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if count != 1 and step != itemsize:
                return False
            itemsize *= count
        return True

    def reach(self) -> int:
        """The largest distance in bytes of an element from the first."""
        return sum(abs(step) * max(count - 1, 0) for count, step in zip(*self, strict=True))


def operand(kernel: str, parameter: UserParameter, value: Any, *, output: bool = False) -> Any:
    """Return an argument as an Array, or as a number."""
    if isinstance(value, Array):
        return value
    if not isinstance(value, (np.ndarray, np.generic)) and (
        hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__")
    ):
        return asarray(value, copy=False)
    number = isinstance(value, (bool, int, float, complex)) or (
        isinstance(value, np.generic)
        and value.dtype.names is None
        and value.dtype.kind not in "OSU"
    )
    if output or not number:
        advice = "; cyrt.asarray copies it to the device" if isinstance(value, np.ndarray) else ""
        raise TypeError(
            f"{kernel}: argument {parameter.name}: expected an array of the device"
            f"{'' if output else ' or a number'}, got {type(value).__name__}{advice}"
        )
    return value


def number_type(value: Any) -> DType:
    """The element type of a number."""
    return dtype(value.dtype if isinstance(value, np.generic) else _PYTHON[type(value)])


def convert(value: Any, target: DType) -> tuple[Any, ...]:
    """Convert a number as C does; return the values of the kernel's parameters for it."""
    if type(value) is float and target.kind == "f" and abs(value) < _MOST.get(target.itemsize, 0):
        return (value,)
    if isinstance(value, int) and not isinstance(value, bool) and target.kind in "iu":
        value &= (1 << 8 * target.itemsize) - 1
        if target.kind == "i" and value >> 8 * target.itemsize - 1:
            value -= 1 << 8 * target.itemsize
        return (value,)
    if isinstance(value, (complex, np.complexfloating)) and target.kind not in "cb":
        value = value.real
    with np.errstate(all="ignore"):
        number = np.asarray(value).astype(target.numpy)
    if target.kind == "c":
        return number.real.item(), number.imag.item()
    if target.itemsize == 2 and target.kind == "f":
        return (number.view(np.uint16).item(),)
    return (number.item(),)


def broadcast_shape(
    kernel: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The shape to which all shapes broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise ValueError(f"{kernel}: the arguments' shapes do not broadcast: {given}") from None


def broadcast_layout(array: Array, shape: tuple[int, ...]) -> OperandLayout:
    """The layout of an array that is repeated along new dimensions and dimensions of size 1."""
    new = len(shape) - array.ndim
    strides = [
        0 if own == 1 and count != 1 else step
        for own, count, step in zip(array.shape, shape[new:], array.strides, strict=True)
    ]
    return OperandLayout(shape, (*[0] * new, *strides))


def merge_axes(
    layouts: Sequence[OperandLayout], shape: tuple[int, ...]
) -> tuple[list[OperandLayout], tuple[int, ...]]:
    """Join the axes that are one to all layouts, in the same order of elements.

    Returns
    -------
    list of OperandLayout, tuple of int
        The layouts with as few axes as possible, at least one, and their common shape.
    """
    axes: list[tuple[int, tuple[int, ...]]] = []
    for axis, count in enumerate(shape):
        steps = tuple(each.strides[axis] for each in layouts)
        if count == 1:
            continue
        if axes and all(
            outer == inner * count for outer, inner in zip(axes[-1][1], steps, strict=True)
        ):
            axes[-1] = axes[-1][0] * count, steps
        else:
            axes.append((count, steps))
    if not axes:
        axes.append((1, (0,) * len(layouts)))
    sizes = tuple(count for count, _ in axes)
    merged = [
        OperandLayout(sizes, tuple(steps[i] for _, steps in axes)) for i in range(len(layouts))
    ]
    return merged, sizes


def is_small(shape: tuple[int, ...], layouts: Sequence[OperandLayout]) -> bool:
    """Whether 32 bits hold every size, every stride and every distance in bytes."""
    numbers = [prod(shape), *shape]
    for each in layouts:
        numbers += [*each.shape, *map(abs, each.strides), prod(each.shape), each.reach()]
    return max(numbers, default=0) < 1 << 31


def split(
    parameters: Sequence[UserParameter], values: Sequence[Any]
) -> tuple[list[DType | None], list[DType | None]]:
    """The element types of the arrays, and those of the numbers."""
    return (
        [each.dtype if isinstance(each, Array) else None for each in values],
        [None if each is None or isinstance(each, Array) else number_type(each) for each in values],
    )
