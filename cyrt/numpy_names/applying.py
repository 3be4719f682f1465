"""Functions of the caller's, called with arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy_names.grids import indices
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.creation import asarray
from cyrt.ops.manipulation import stack
from cyrt.ops.shapes import moveaxis, reshape


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Array, *args: Any,
                     **kwargs: Any) -> Array:
    """What a function gives of each row along an axis; it is called once a row.

    Parameters
    ----------
    func1d : callable
        Takes an array of one dimension, then the further arguments; gives an array or a number, of
        one shape for all rows.
    axis : int
    arr : Array
        At least one row.

    Returns
    -------
    Array
        In the axis' place what the function gave.
    """
    along = axis_of(axis, check_array(arr, "apply_along_axis: arr").ndim)
    rows = moveaxis(arr, along, -1)
    outer = rows.shape[:-1]
    if not prod(outer):
        raise ValueError(f"apply_along_axis: arr: there is no row, the shape is {arr.shape}")
    found = stack([asarray(func1d(row, *args, **kwargs), device=arr.device)
                   for row in reshape(rows, (-1, rows.shape[-1]))])
    inner = found.ndim - 1
    return moveaxis(reshape(found, (*outer, *found.shape[1:])), tuple(range(-inner, 0)),
                    tuple(range(along, along + inner)))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float,
                 **kwargs: Any) -> Any:
    """What a function gives of the indices along each dimension; called once, with arrays.

    Parameters
    ----------
    function : callable
    shape : tuple of int
    dtype : DType
        Of the indices; ``float`` is float32 here.
    """
    return function(*indices(shape, dtype), **kwargs)
