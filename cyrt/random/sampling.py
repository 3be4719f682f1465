"""Random orders, and random choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex

import numpy as np

from cyrt.dtypes import DEFAULTS
from cyrt.ndarray import Array
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.reduce import argmax
from cyrt.ops.sort import argsort
from cyrt.ops.take import take
from cyrt.random.drawing import draw
from cyrt.random.keys import Key, bits_of
from cyrt.runtime.device import Device


def permutation(
    x: Array | SupportsIndex, *, axis: int = 0, device: Device | SupportsIndex | None = None,
    key: Key | None = None,
) -> Array:
    """A random order, of which all are equally likely.

    Parameters
    ----------
    x : Array or int
        What is put in that order; or how many integers, from 0.
    axis : int
        Of an array: which of its axes. Slices along it stay whole.
    device : Device, optional
        Of the integers; the current one where left out.
    key : Key, optional
        What the order is a function of; the next one of the process where left out.

    Returns
    -------
    Array
        Of x's shape and type; of int64 where a number was given.

    Raises
    ------
    ValueError
        A negative number.
    """
    bits = bits_of(key, "permutation")
    if isinstance(x, (int, np.integer)):
        if index(x) < 0:
            raise ValueError(f"permutation: expected 0 or more, got {x}")
        return _order(index(x), bits, device)
    array = check_array(x, "permutation")
    along = axis_of(axis, array.ndim)
    return take(array, _order(array.shape[along], bits, array.device), axis=along)


def _order(n: int, bits: int, device: Device | SupportsIndex | None) -> Array:
    """The order that sorts n random numbers of 64 bits."""
    return argsort(draw("randint", bits, (), (n,), DEFAULTS["i"], device, kernel="uint64",
                        variant=1))


def categorical(
    logits: Array, axis: int = -1, shape: SupportsIndex | Sequence[int] | None = None, *,
    key: Key | None = None,
) -> Array:
    """Random categories, of given logarithms of their probabilities.

    Parameters
    ----------
    logits : Array
        Real; a constant added to all of a distribution changes nothing. Minus infinity: never.
    axis : int
        Along which the categories of a distribution lie.
    shape : int or tuple of int, optional
        Of the result; that of logits without the axis is broadcast to it, and is taken where this
        is left out.
    key : Key, optional
        What the choices are a function of; the next one of the process where left out.

    Returns
    -------
    Array
        Of int64: places along the axis.

    Raises
    ------
    TypeError
        The logits are complex or bool.
    ValueError
        No categories, or a shape that the logits do not broadcast to.
    """
    bits = bits_of(key, "categorical")
    array = check_array(logits, "logits")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"categorical: logits: expected a real type, got {array.dtype}")
    along = axis_of(axis, array.ndim) - array.ndim
    count = array.shape[along]
    if count == 0:
        raise ValueError(f"categorical: axis {axis} of shape {array.shape} has no categories")
    each = array.dtype if array.dtype.name == "float64" else DEFAULTS["f"]
    rows = tuple(size for axis, size in enumerate(array.shape, -array.ndim) if axis != along)
    given = rows if shape is None else tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if len(given) < len(rows) or any(
            size not in (1, wanted) for size, wanted in zip(rows[::-1], given[::-1], strict=False)):
        raise ValueError(f"categorical: logits of shape {array.shape} do not broadcast to {given} "
                         f"without axis {axis}")
    place = len(given) + 1 + along
    noise = draw("gumbel", bits, (), (*given[:place], count, *given[place:]), each, array.device)
    noise += array
    return argmax(noise, axis=along)
