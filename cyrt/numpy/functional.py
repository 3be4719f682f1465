"""Functions that call the caller's functions with arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy.grids import indices
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import copy
from cyrt.ops.creation import asarray
from cyrt.ops.manipulation import stack
from cyrt.ops.shapes import expand_dims, moveaxis, reshape

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction"]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Array, *args: Any, **kwargs: Any
) -> Array:
    """Apply a function to each one-dimensional slice along an axis.

    Parameters
    ----------
    func1d : callable
        It is called for each slice, with an array of one dimension and the further arguments. It
        returns a number, or arrays that all have the same shape.
    axis : int
    arr : Array
        There must be at least one slice.

    Returns
    -------
    Array
        The dimensions of the function's results replace the axis.
    """
    along = axis_of(axis, check_array(arr, "apply_along_axis: arr").ndim)
    rows = moveaxis(arr, along, -1)
    outer = rows.shape[:-1]
    if not prod(outer):
        raise ValueError(f"apply_along_axis: arr: there is no row, the shape is {arr.shape}")
    found = stack(
        [
            asarray(func1d(row, *args, **kwargs), device=arr.device)
            for row in reshape(rows, (prod(outer), rows.shape[-1]))
        ]
    )
    inner = found.ndim - 1
    found = moveaxis(
        reshape(found, (*outer, *found.shape[1:])),
        tuple(range(-inner, 0)),
        tuple(range(along, along + inner)),
    )
    return found if found.flags.c_contiguous else copy(found)


def apply_over_axes(func: Callable[..., Any], a: Array, axes: Any) -> Array:
    """Apply a function that reduces an axis to several axes, one after the other.

    Parameters
    ----------
    func : callable
        It is called with an array and an axis. It returns an array of as many dimensions, or of one
        less; then the axis is kept with size 1.
    a : Array
    axes : int or sequence of int

    Examples
    --------
    >>> import cyrt
    >>> cyrt.apply_over_axes(cyrt.sum, cyrt.ones((2, 3, 4)), [0, 2])
    Array([[[8.],
            [8.],
            [8.]]], dtype=float32)
    """
    result = check_array(a, "apply_over_axes: a")
    for each in axes if isinstance(axes, (tuple, list)) else (axes,):
        along = axis_of(each, a.ndim)
        found = check_array(func(result, along), "apply_over_axes: the function's result")
        if found.ndim == a.ndim - 1:
            found = expand_dims(found, axis=along)
        if found.ndim != a.ndim:
            raise ValueError(
                f"apply_over_axes: func: expected {a.ndim} dimensions or one less, got shape "
                f"{found.shape}"
            )
        result = found
    return result


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Any:
    """Call a function once with arrays of the indices along each dimension.

    Parameters
    ----------
    function : callable
    shape : tuple of int
    dtype : DType
        The indices' type; ``float`` is float32 here.
    """
    return function(*indices(shape, dtype), **kwargs)
