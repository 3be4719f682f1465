"""Rows of a table by their indices, and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt import settings
from cyrt.dtypes import DEFAULTS
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.nn.checks import check_floating, check_gradient
from cyrt.ops.arange import arange
from cyrt.ops.arguments import axis_of, check_array, check_integers, count_of
from cyrt.ops.copy import check_device
from cyrt.ops.creation import zeros
from cyrt.ops.functions import equal
from cyrt.ops.gather import take
from cyrt.ops.scatter import combine_at
from cyrt.ops.shapes import expand_dims, reshape
from cyrt.tape import differentiable


@differentiable
def embedding(x: Array, weight: Array) -> Array:
    """Take rows of a table of vectors by their indices.

    Parameters
    ----------
    x : Array
        Indices of rows: integers of any shape. Negative ones count from the end.
    weight : Array
        The table, of shape (rows, features), of any type.

    Returns
    -------
    Array
        Shape (*x.shape, features), of the weight's type. Indices that are out of range are treated
        as by :func:`cyrt.take`.

    Raises
    ------
    TypeError
        An argument is not an Array, or x is not of an integer type.
    ValueError
        The weight is not 2-dimensional, or is on another device.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.embedding``.

    Examples
    --------
    >>> import cyrt
    >>> weight = cyrt.asarray([[0.0, 0.0], [1.0, 2.0]])
    >>> cyrt.nn.embedding(cyrt.asarray([1, 0, 1]), weight)
    Array([[1., 2.],
           [0., 0.],
           [1., 2.]], dtype=float32)
    """
    _check_table("embedding", x, weight)
    return take(weight, x, axis=0)


def embedding_vjp(g: Array, x: Array, weight: Array) -> Array:
    """Compute the gradient of :func:`embedding` with respect to the weight.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and the weight's type.
    x : Array
        Indices of rows, as for :func:`embedding`.
    weight : Array
        The table, of a real floating-point type; its values are not read.

    Returns
    -------
    Array
        An array of the weight's shape and type: for each row the sum of g over the elements of x
        that are the row's index, computed in float32, or for float64 in float64. Equal inputs give
        equal bits.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`embedding`; or g has another type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, weight, g = cyrt.asarray([1, 1]), cyrt.zeros((3, 1)), cyrt.ones((2, 1))
    >>> cyrt.nn.embedding_vjp(g, x, weight)[:, 0]
    Array([0., 2., 0.], dtype=float32)
    """
    name = "embedding_vjp"
    _check_table(name, x, weight)
    check_floating(name, "weight", weight)
    features = weight.shape[1]
    check_gradient(name, g, (*x.shape, features), weight, "weight")
    result = zeros(weight.shape, dtype=weight.dtype, device=weight.device)
    if x.size and weight.size:
        # This adds in a wider type, and always in the same order.
        combine_at("add", result, (reshape(x, (x.size,)),), reshape(g, (x.size, features)))
    return result


def one_hot(x: Array, num_classes: int, *, axis: int = -1, dtype: Any = None) -> Array:
    """Make a vector of each index, with 1 at the index and 0 elsewhere.

    Parameters
    ----------
    x : Array
        Integers of any shape.
    num_classes : int
        The length of the vectors.
    axis : int
        The vectors' axis in the result.
    dtype : DType, optional
        Type of the result, by default float32.

    Returns
    -------
    Array
        An array with one dimension more than x. If an index is out of range, its vector is zeros on
        a GPU. On the emulated device it is a fault, which the next wait reports, and with
        ``CYRT_CHECK=1`` an IndexError.

    Raises
    ------
    TypeError
        x is not an Array of integers, or the length is not an int.
    ValueError
        The length is negative.
    IndexError
        An index is out of range, with ``CYRT_CHECK=1``.
    numpy.exceptions.AxisError
        The result has no such axis.

    Notes
    -----
    The arguments are those of JAX's ``jax.nn.one_hot``. The result of PyTorch's function is int64.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.one_hot(cyrt.asarray([2, 0]), 3)
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    name = "one_hot"
    check_integers(x, f"{name}: x")
    count = count_of(num_classes, f"{name}: num_classes")
    along = axis_of(axis, x.ndim + 1)
    kind = DEFAULTS["f"] if dtype is None else _dtype(dtype)
    if settings.get("CYRT_CHECK"):
        numbers = x.numpy()
        for each in (numbers.min(), numbers.max()) if numbers.size else ():
            if not 0 <= int(each) < count:
                raise IndexError(f"{name}: x: {each} is out of bounds for {count} classes")
    classes = arange(count, dtype=x.dtype, device=x.device) if _fits(count, x) else None
    if classes is None:
        x, classes = x.astype("int64"), arange(count, device=x.device)
    if count and x.device.emulated:
        # The gather traps. As an unsigned number, a negative index does not count from the end.
        take(classes, x.astype("uint64"))
    classes = reshape(classes, (count, *(1,) * (x.ndim - along)))
    return equal(expand_dims(x, axis=along), classes).astype(kind, copy=False)


def _fits(count: int, x: Array) -> bool:
    return count - 1 <= np.iinfo(x.dtype.numpy).max


def _check_table(name: str, x: Array, weight: Array) -> None:
    check_integers(x, f"{name}: x")
    check_array(weight, f"{name}: weight")
    if weight.ndim != 2:
        raise ValueError(
            f"{name}: weight: expected shape (rows, features), got {weight.shape}; the "
            "numbers of rows are the first argument"
        )
    check_device(weight, x, name, "weight")


__all__ = ["embedding", "embedding_vjp", "one_hot"]
