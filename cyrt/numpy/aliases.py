"""Functions whose names, or orders of arguments, differ in NumPy from the array API standard."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from cyrt.ndarray import Array
from cyrt.ops import reduce
from cyrt.ops.arguments import axes_of, axis_of, check_array, check_real, int_of
from cyrt.ops.copy import check_device, write_out
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import asarray
from cyrt.ops.gather import take_along_axis
from cyrt.ops.rounding import round
from cyrt.ops.shapes import flip, moveaxis, reshape, swapaxes, transpose
from cyrt.ops.sort import argsort, sort

__all__ = [
    "amax",
    "amin",
    "argpartition",
    "around",
    "array",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "fliplr",
    "flipud",
    "lexsort",
    "ndim",
    "partition",
    "ptp",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "transpose",
]

# NumPy's other names.
amax, amin, around = reduce.max, reduce.min, round


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None
) -> Array:
    """Make a new array; see :func:`cyrt.asarray`.

    Parameters
    ----------
    object : Array, number, nested sequence, or array of another library
    dtype : DType, optional
        The result's type; see :func:`cyrt.asarray`.
    copy : bool, optional
        With None, the elements are copied only if a copy is needed; with False, a ValueError is
        raised if it is.
    ndmin : int
        The least number of dimensions; new dimensions of size 1 are put first.
    device : Device or int, optional
    """
    result = asarray(object, dtype=dtype, device=device, copy=copy)
    return (
        result[(None,) * max(0, int_of(ndmin, "array: ndmin") - result.ndim)] if ndmin else result
    )


def asanyarray(a: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Array:
    """NumPy's other name of :func:`cyrt.asarray`.

    Parameters
    ----------
    a, dtype, device, copy
        As for :func:`cyrt.asarray`.

    Returns
    -------
    Array
    """
    return asarray(a, dtype=dtype, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """An array in C order with at least one dimension; `a` itself if it is such an array already.

    Parameters
    ----------
    a : Array or other input of :func:`cyrt.asarray`
    dtype : DType, optional
        The element type. Default: as for :func:`cyrt.asarray`.

    Returns
    -------
    Array
    """
    result = asarray(a, dtype=dtype)
    if result.ndim == 0:
        return reshape(result, (1,))
    return result if result.flags.c_contiguous else duplicate(result)


def asfortranarray(a: Any, dtype: Any = None) -> Array:
    """An array in Fortran order, in which the first index changes fastest, with at least one
    dimension; `a` itself if it is such an array already.

    Parameters
    ----------
    a : Array or other input of :func:`cyrt.asarray`
    dtype : DType, optional
        The element type. Default: as for :func:`cyrt.asarray`.

    Returns
    -------
    Array
    """
    result = asarray(a, dtype=dtype)
    if result.ndim == 0:
        return reshape(result, (1,))
    return result if result.flags.f_contiguous else transpose(duplicate(transpose(result)))


def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    """A view with an axis moved before another one; :func:`cyrt.moveaxis` is clearer.

    Parameters
    ----------
    a : Array
        An array of any type.
    axis : int
        The axis to move.
    start : int
        The axis before which it is moved; the number of dimensions of `a` moves it to the end.

    Returns
    -------
    Array
        A view.
    """
    check_array(a, "rollaxis: a")
    along = axis_of(axis, a.ndim)
    before = int_of(start, "rollaxis: start")
    before += a.ndim if before < 0 else 0
    if not 0 <= before <= a.ndim:
        raise AxisError(f"rollaxis: start: expected {-a.ndim} to {a.ndim}, got {start}")
    return moveaxis(a, along, before - (along < before))


def ptp(a: Array, axis: Any = None, *, keepdims: bool = False, out: Array | None = None) -> Array:
    """The difference of the largest and smallest elements over axes; see :func:`cyrt.max`.

    Parameters
    ----------
    a : Array
        An array of a real type.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all axes.
    keepdims : bool
        Whether the result keeps the reduced axes, with size 1.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.

    Returns
    -------
    Array
        An array of the shape without the axes, and of a's type.
    """
    check_real(a, "ptp: a")
    greatest = reduce.max(a, axis=axis, keepdims=keepdims)
    result: Array = write_out("ptp", greatest - reduce.min(a, axis=axis, keepdims=keepdims), out)
    return result


def partition(a: Array, kth: Any, axis: int | None = -1) -> Array:
    """The elements sorted, so that the k-th one is at its position; see :func:`cyrt.sort`.

    Parameters
    ----------
    a : Array
        An array of a real type or bool.
    kth : int or sequence of int
        The positions; negative ones count from the end.
    axis : int, optional
        The axis to sort along. None flattens `a` first.

    Returns
    -------
    Array
        A sorted copy of a's shape and type: all elements are in order, not only the k-th one.
    """
    return sort(a, _check_kth(a, kth, axis, "partition"))


def argpartition(a: Array, kth: Any, axis: int | None = -1) -> Array:
    """The indices in `a` of the elements that :func:`cyrt.partition` returns.

    Parameters
    ----------
    a, kth, axis
        As for :func:`cyrt.partition`.

    Returns
    -------
    Array
        The indices along the axis, int64, of a's shape.
    """
    return argsort(a, _check_kth(a, kth, axis, "argpartition"))


def _check_kth(a: Array, kth: Any, axis: int | None, name: str) -> int | None:
    """Return the axis; ValueError if `kth` is out of bounds."""
    n = size(check_array(a, f"{name}: a"), axis)
    for each in kth if isinstance(kth, (tuple, list)) else (kth,):
        if not -n <= int_of(each, f"{name}: kth") < n:
            raise ValueError(f"{name}: kth: {each} is out of bounds for {n} elements")
    return axis


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by the last key, then by the key before it, and so on.

    Parameters
    ----------
    keys : Array or sequence of Array
        The keys; an Array has a key in each row.
    axis : int
        The axis to sort along.

    Returns
    -------
    Array
        The indices along the axis, int64, of the shape of a key.
    """
    keys = [check_array(each, "lexsort: keys") for each in keys]
    if not keys:
        raise ValueError("lexsort: expected at least one key")
    for each in keys:
        check_device(each, keys[0], "lexsort: keys")
    order = argsort(keys[0], axis)
    for each in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(each, order, axis), axis), axis)
    return order


def ndim(a: Any) -> int:
    """The number of dimensions; 0 for a number.

    Parameters
    ----------
    a : Array, number or sequence

    Returns
    -------
    int
    """
    return a.ndim if isinstance(a, Array) else np.ndim(a)


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions; ``()`` for a number.

    Parameters
    ----------
    a : Array, number or sequence

    Returns
    -------
    tuple of int
    """
    return a.shape if isinstance(a, Array) else np.shape(a)


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the size along an axis.

    Parameters
    ----------
    a : Array, number or sequence
    axis : int, optional
        Default: all axes.

    Returns
    -------
    int
    """
    sizes = shape(a)
    return prod(sizes) if axis is None else sizes[axis_of(axis, len(sizes))]


def fliplr(m: Array) -> Array:
    """A view with the columns in reverse order: :func:`cyrt.flip` along axis 1.

    Parameters
    ----------
    m : Array
        An array of two dimensions or more.

    Returns
    -------
    Array
        A view of m's shape and type.
    """
    if check_array(m, "fliplr: m").ndim < 2:
        raise ValueError(f"fliplr: expected at least two dimensions, got shape {m.shape}")
    return flip(m, axis=1)


def flipud(m: Array) -> Array:
    """A view with the rows in reverse order: :func:`cyrt.flip` along axis 0.

    Parameters
    ----------
    m : Array
        An array of one dimension or more.

    Returns
    -------
    Array
        A view of m's shape and type.
    """
    if check_array(m, "flipud: m").ndim < 1:
        raise ValueError("flipud: expected at least one dimension, got a 0-dimensional array")
    return flip(m, axis=0)


def rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    """A view rotated by multiples of 90 degrees, from the first axis towards the second.

    Parameters
    ----------
    m : Array
        At least two dimensions.
    k : int
        The number of rotations by 90 degrees; negative numbers rotate the other way.
    axes : tuple of two ints
        The plane of the rotation.
    """
    check_array(m, "rot90: m")
    plane = axes_of(tuple(axes), m.ndim, "rot90: axes")
    if len(plane) != 2:
        raise ValueError(f"rot90: axes: expected two, got {axes}")
    quarters = int_of(k, "rot90: k") % 4
    if quarters == 0:
        return m[...]
    if quarters == 2:
        return flip(m, axis=plane)
    if quarters == 1:
        return swapaxes(flip(m, axis=plane[1]), *plane)
    return flip(swapaxes(m, *plane), axis=plane[1])
