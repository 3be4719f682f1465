"""What NumPy calls otherwise than the standard."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from cyrt.dtypes import DType
from cyrt.dtypes import dtype as dtype_of
from cyrt.ndarray import Array
from cyrt.ops import reduce
from cyrt.ops.arguments import axes_of, axis_of, check_array
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.creation import asarray
from cyrt.ops.promotion import result_type
from cyrt.ops.rounding import round
from cyrt.ops.shapes import flip, permute_dims, reshape, swapaxes
from cyrt.ops.sort import argsort, sort
from cyrt.ops.take import take_along_axis

# NumPy's other names.
amax, amin, around = reduce.max, reduce.min, round


def array(object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0,
          device: Any = None) -> Array:
    """A new array of what is given; see :func:`cyrt.asarray`.

    Parameters
    ----------
    object : Array, number, nested sequence, or array of another library
    dtype : DType, optional
        Of the result; see :func:`cyrt.asarray`.
    copy : bool, optional
        None: a copy only where one is needed. False: ValueError where one is.
    ndmin : int
        Dimensions at least: new ones of size 1 come first.
    device : Device or int, optional
    """
    result = asarray(object, dtype=dtype, device=device, copy=copy)
    return result[(None,) * max(0, index(ndmin) - result.ndim)] if ndmin else result


def promote_types(type1: Any, type2: Any, /) -> DType:
    """The type that two promote to; see :func:`cyrt.result_type`."""
    return result_type(dtype_of(type1), dtype_of(type2))


def asanyarray(a: Any, dtype: Any = None, *, device: Any = None,
               copy: bool | None = None) -> Array:
    """NumPy's other name of :func:`cyrt.asarray`."""
    return asarray(a, dtype=dtype, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """An array in C order, of at least one dimension: a itself where it is one.

    Parameters
    ----------
    a : what :func:`cyrt.asarray` takes
    dtype : DType, optional
    """
    result = asarray(a, dtype=dtype)
    if result.ndim == 0:
        return reshape(result, (1,))
    steps = result.strides
    expected = result.itemsize
    for size, step in zip(reversed(result.shape), reversed(steps), strict=True):
        if size > 1 and step != expected:
            return duplicate(result)
        expected *= size
    return result


def transpose(a: Array, axes: Any = None) -> Array:
    """A view with the dimensions in another order, reversed where no axes are given; see
    :func:`cyrt.permute_dims`."""
    if axes is None:
        return check_array(a, "transpose: a").T
    return permute_dims(a, tuple(axes))


def ptp(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The largest less the smallest element over axes; see :func:`cyrt.max`."""
    return reduce.max(a, axis=axis, keepdims=keepdims) - reduce.min(a, axis=axis,
                                                                    keepdims=keepdims)


def partition(a: Array, kth: Any, axis: int | None = -1) -> Array:
    """The elements with the k-th in its place, lesser ones before it and greater ones behind: all
    are in order, see :func:`cyrt.sort`."""
    return sort(a, _checked(a, kth, axis, "partition"))


def argpartition(a: Array, kth: Any, axis: int | None = -1) -> Array:
    """The indices that :func:`cyrt.partition` takes elements from."""
    return argsort(a, _checked(a, kth, axis, "argpartition"))


def _checked(a: Array, kth: Any, axis: int | None, name: str) -> int | None:
    """The axis; ValueError for a k-th of it that there is not."""
    n = size(check_array(a, f"{name}: a"), axis)
    for each in kth if isinstance(kth, (tuple, list)) else (kth,):
        if not -n <= index(each) < n:
            raise ValueError(f"{name}: kth: {each} is out of bounds for {n} elements")
    return axis


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that put rows in order by the last key, equal ones by the one before, and so on.

    Parameters
    ----------
    keys : Array, whose rows are the keys, or sequence of Array
    axis : int
    """
    keys = [check_array(each, "lexsort: keys") for each in keys]
    if not keys:
        raise ValueError("lexsort: expected at least one key")
    order = argsort(keys[0], axis)
    for each in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(each, order, axis), axis), axis)
    return order


def ndim(a: Any) -> int:
    """How many dimensions it has; 0 of a number."""
    return a.ndim if isinstance(a, Array) else np.ndim(a)


def shape(a: Any) -> tuple[int, ...]:
    """Sizes of the dimensions; () of a number."""
    return a.shape if isinstance(a, Array) else np.shape(a)


def size(a: Any, axis: int | None = None) -> int:
    """How many elements it has, or how long it is along an axis."""
    sizes = shape(a)
    return prod(sizes) if axis is None else sizes[axis_of(axis, len(sizes))]


def iscomplexobj(x: Any) -> bool:
    """Whether of a complex type, whatever the values."""
    return x.dtype.kind == "c" if isinstance(x, Array) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether of a type that is not complex."""
    return not iscomplexobj(x)


def fliplr(m: Array) -> Array:
    """A view with the columns in reverse order: :func:`cyrt.flip` along axis 1."""
    if check_array(m, "fliplr: m").ndim < 2:
        raise ValueError(f"fliplr: expected at least two dimensions, got shape {m.shape}")
    return flip(m, axis=1)


def flipud(m: Array) -> Array:
    """A view with the rows in reverse order: :func:`cyrt.flip` along axis 0."""
    if check_array(m, "flipud: m").ndim < 1:
        raise ValueError("flipud: expected at least one dimension, got a 0-dimensional array")
    return flip(m, axis=0)


def rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    """A view turned by quarters of a circle, from the first axis towards the second.

    Parameters
    ----------
    m : Array
        At least two dimensions.
    k : int
        How many quarters; negative ones turn the other way.
    axes : tuple of two ints
        The plane.
    """
    check_array(m, "rot90: m")
    plane = axes_of(tuple(axes), m.ndim, "rot90: axes")
    if len(plane) != 2:
        raise ValueError(f"rot90: axes: expected two, got {axes}")
    quarters = index(k) % 4
    if quarters == 0:
        return m[...]
    if quarters == 2:
        return flip(m, axis=plane)
    if quarters == 1:
        return swapaxes(flip(m, axis=plane[1]), *plane)
    return flip(swapaxes(m, *plane), axis=plane[1])
