"""Random permutations, and random categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex

import numpy as np

from cyrt.dtypes import DEFAULTS
from cyrt.ndarray import Array
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.gather import take
from cyrt.ops.reduce import argmax
from cyrt.ops.sort import argsort
from cyrt.random.drawing import draw
from cyrt.random.keys import Key, bits_of, keyed
from cyrt.runtime.device import Device


@keyed
def permutation(
    x: Array | SupportsIndex,
    *,
    axis: SupportsIndex = 0,
    device: Device | SupportsIndex | str | None = None,
    key: Key | None = None,
) -> Array:
    """Return a random permutation; all permutations are equally likely.

    Parameters
    ----------
    x : Array or int
        The array to permute; or an int n, which stands for the integers from 0 to n - 1.
    axis : int
        The axis of an array whose slices are permuted.
    device : Device, optional
        The integers' device, by default the current one.
    key : Key, optional
        The key, on which alone the permutation depends. Default: the process's next key.

    Returns
    -------
    Array
        An array of x's shape and type; int64 if x is a number.

    Raises
    ------
    ValueError
        The int is negative.

    Notes
    -----
    The slices are sorted by random numbers of 64 bits.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.permutation(4, key=cyrt.random.key(7))
    Array([0, 2, 3, 1], dtype=int64)
    """
    bits = bits_of(key, "permutation")
    if isinstance(x, (int, np.integer)):
        if index(x) < 0:
            raise ValueError(f"permutation: expected 0 or more, got {x}")
        return _random_order(index(x), bits, device)
    array = check_array(x, "permutation")
    along = axis_of(axis, array.ndim)
    return take(array, _random_order(array.shape[along], bits, array.device), axis=along)


def _random_order(n: int, bits: int, device: Device | SupportsIndex | str | None) -> Array:
    """Return the indices that sort n random numbers of 64 bits."""
    return argsort(
        draw("randint", bits, (), (n,), DEFAULTS["i"], device, kernel="uint64", variant=1)
    )


@keyed
def categorical(
    logits: Array,
    axis: int = -1,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    key: Key | None = None,
) -> Array:
    """Return random categories from the logarithms of their probabilities.

    Parameters
    ----------
    logits : Array
        An array of a real type. Adding a constant to all logits of a distribution has no effect. A
        category whose logit is minus infinity is never chosen.
    axis : int
        The axis of a distribution's categories.
    shape : int or tuple of int, optional
        The result's shape, to which the logits' shape without the axis is broadcast; by default
        that shape.
    key : Key, optional
        The key, on which alone the choices depend. Default: the process's next key.

    Returns
    -------
    Array
        An array of int64: indices along the axis.

    Raises
    ------
    TypeError
        The logits are complex or bool.
    ValueError
        There are no categories, or the logits do not broadcast to the shape.

    Notes
    -----
    A choice is the index of the greatest sum of a logit and a number of Gumbel's distribution. This
    is JAX's ``jax.random.categorical``, with the key as a keyword.

    Examples
    --------
    >>> import cyrt
    >>> logits = cyrt.log(cyrt.asarray([0.5, 0.25, 0.25]))
    >>> cyrt.random.categorical(logits, shape=6, key=cyrt.random.key(7))
    Array([2, 0, 2, 0, 2, 0], dtype=int64)
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
    result = rows
    if shape is not None:
        result = tuple(map(index, shape if isinstance(shape, Iterable) else (shape,)))
    if not _broadcasts(rows, result):
        raise ValueError(
            f"categorical: logits of shape {array.shape} do not broadcast to {result} "
            f"without axis {axis}"
        )
    position = len(result) + 1 + along
    noise = draw(
        "gumbel", bits, (), (*result[:position], count, *result[position:]), each, array.device
    )
    noise += array
    return argmax(noise, axis=along)


def _broadcasts(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, result) == result
    except ValueError:
        return False
