"""Selection by masks and indices, and conversion between indices and positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyrt import settings
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.coercion import as_array_like
from cyrt.ops import reduce
from cyrt.ops.arange import arange
from cyrt.ops.arguments import axis_of, check_array, check_integers, check_vector, int_of, is_int
from cyrt.ops.broadcasting import broadcast_arrays, broadcast_to
from cyrt.ops.copy import astype, check_devices, copy
from cyrt.ops.creation import asarray, empty, full, full_like
from cyrt.ops.gather import take, take_along_axis
from cyrt.ops.manipulation import stack
from cyrt.ops.promotion import result_type
from cyrt.ops.search import flatnonzero, nonzero
from cyrt.ops.shapes import ravel, reshape
from cyrt.ops.ternary import clip, where

__all__ = [
    "argwhere",
    "choose",
    "compress",
    "extract",
    "ix_",
    "piecewise",
    "put_along_axis",
    "ravel_multi_index",
    "select",
    "unravel_index",
]


def argwhere(a: Array) -> Array:
    """The indices of nonzero elements, one row for each, int64; the call waits for their number.

    Parameters
    ----------
    a : Array
        An array of any type.

    Returns
    -------
    Array
        Shape (number of elements, a.ndim).
    """
    if check_array(a, "argwhere: a").ndim == 0:
        return empty((flatnonzero(a).size, 0), dtype="int64", device=a.device)
    return stack(nonzero(a), axis=1)


def extract(condition: Any, arr: Array) -> Array:
    """The elements where a condition is true, in C order; the call waits for their number.

    Parameters
    ----------
    condition : Array, bool or sequence of bool
        As many elements as arr has.
    arr : Array
    """
    condition = as_array_like(
        check_array(arr, "extract: arr"), condition, "extract: condition", "bool"
    )
    return take(ravel(arr), flatnonzero(condition), axis=0)


def compress(condition: Any, a: Array, axis: int | None = None) -> Array:
    """The slices along an axis where a condition is true; the call waits for their number.

    Parameters
    ----------
    condition : Array or sequence of bool
        One-dimensional; slices beyond its end are not chosen.
    a : Array
    axis : int, optional
        By default a is flattened.
    """
    condition = as_array_like(check_array(a, "compress: a"), condition, "compress: condition")
    check_vector(condition, "compress: condition")
    if axis is None:
        a, axis = ravel(a), 0
    size = a.shape[axis_of(axis, a.ndim)]
    positions = flatnonzero(condition)
    if condition.size > size and positions.size and positions[-1].item() >= size:
        raise IndexError(
            f"compress: condition: {positions[-1].item()} is out of bounds for axis "
            f"{axis} with size {size}"
        )
    return take(a, positions, axis=axis)


def choose(a: Array, choices: Sequence[Any] | Array, mode: str = "raise") -> Array:
    """Choose each element from one of several arrays by an index.

    Parameters
    ----------
    a : Array
        Integers.
    choices : Array or sequence of Array or number
        They broadcast with a.
    mode : str
        The treatment of indices out of range: ``"wrap"`` takes them modulo the size, ``"clip"``
        replaces them by the nearest index, and ``"raise"`` raises IndexError in checking mode
        (``CYRT_CHECK=1``). Otherwise they are a fault on the emulated device, and the last index
        on a GPU.

    Returns
    -------
    Array
        The choices' promoted type.
    """
    if check_array(a, "choose: a").dtype.kind not in "biu":
        raise TypeError(f"choose: a: expected integers, got {a.dtype}")
    parts = [as_array_like(a, each, "choose: choices") for each in choices]
    if not parts:
        raise ValueError("choose: expected at least one choice")
    dtype = result_type(*parts)
    positions, *parts = broadcast_arrays(a, *(astype(each, dtype, copy=False) for each in parts))
    positions = astype(positions, "int64", copy=False)
    if mode == "raise":
        _check_bounds(positions, len(parts), "choose")
        # The gather traps on the emulated device. There, a negative index would count from the end.
        positions = where(positions < 0, len(parts), positions)
    else:
        positions = apply_index_mode(positions, len(parts), mode, "choose")
    return take_along_axis(stack(parts), positions[None], axis=0)[0]


def apply_index_mode(positions: Array, size: int, mode: str, name: str) -> Array:
    """Map indices that are out of range into the range, or refuse them; see :func:`cyrt.choose`."""
    if mode == "wrap":
        return positions % size
    if mode not in ("raise", "clip"):
        raise ValueError(f"{name}: mode: expected 'raise', 'wrap' or 'clip', got {show(mode)}")
    if mode == "raise":
        _check_bounds(positions, size, name)
    return clip(positions, 0, size - 1)


def _check_bounds(positions: Array, size: int, name: str) -> None:
    """Raise IndexError in checking mode if a position is out of range."""
    if settings.get("CYRT_CHECK") and reduce.any((positions < 0) | (positions >= size)):
        raise IndexError(f"{name}: an index is out of bounds for size {size}")


def select(condlist: Sequence[Array], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Choose each element from the first choice whose condition is true.

    Parameters
    ----------
    condlist : sequence of Array
        Type bool.
    choicelist : sequence of Array or number
        One for each condition.
    default : Array or number
        The value where no condition is true.

    Returns
    -------
    Array
        The broadcast shape of all, and the promoted type of the choices and the default.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select: expected conditions and as many choices, got {len(condlist)} "
            f"and {len(choicelist)}"
        )
    like = check_array(condlist[0], "select: condlist")
    values = [*choicelist, default]
    dtype = (
        result_type(*values)
        if any(isinstance(each, Array) for each in values)
        else asarray(values).dtype
    )
    result = (
        default
        if isinstance(default, Array)
        else full((), default, dtype=dtype, device=like.device)
    )
    result = astype(result, dtype, copy=False)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


def piecewise(x: Array, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Evaluate functions piecewise: each element is passed to the last one whose condition holds.

    Parameters
    ----------
    x : Array
    condlist : Array, bool, or sequence of these
        The conditions. An array with one dimension more than x has a condition at each index of its
        first dimension. A sequence of bools is one condition; if x has no dimensions, each bool is
        a condition.
    funclist : Array, or sequence of callable, Array or number
        One for each condition, and optionally one more for elements for which no condition holds,
        which otherwise become 0. Each function is called once, with all of x; its result is
        broadcast to x's shape.
    *args, **kw
        Further arguments of the functions.

    Returns
    -------
    Array
        x's shape and type.
    """
    check_array(x, "piecewise: x")
    conditions = [
        as_array_like(x, each, "piecewise: condlist", "bool") for each in _conditions(x, condlist)
    ]
    if len(funclist) - len(conditions) not in (0, 1):
        raise ValueError(
            f"piecewise: expected {len(conditions)} functions, or one more, got {len(funclist)}"
        )
    *chosen, default = funclist if len(funclist) > len(conditions) else (*funclist, 0)
    result = x
    for condition, function in ((None, default), *zip(conditions, chosen, strict=True)):
        value = function(x, *args, **kw) if callable(function) else function
        if isinstance(value, Array):
            value = as_array_like(x, value, "piecewise: funclist")
            value = broadcast_to(astype(value, x.dtype, copy=False), x.shape)
        else:
            value = full_like(x, value)
        if condition is None:
            result = value if conditions else copy(value)
        else:
            result = where(broadcast_to(condition, x.shape), value, result)
    return result


def _conditions(x: Array, condlist: Any) -> list[Any]:
    if isinstance(condlist, Array):
        return list(condlist) if condlist.ndim > x.ndim else [condlist]
    if not isinstance(condlist, (list, tuple)):
        return [condlist]
    one = len(condlist) and x.ndim and isinstance(condlist[0], (bool, np.bool_))
    return [condlist] if one else list(condlist)


def put_along_axis(arr: Array, indices: Array, values: Any, axis: int | None = -1) -> None:
    """Write at indices of each slice along an axis, in place; see :func:`cyrt.take_along_axis`.

    Parameters
    ----------
    arr : Array
    indices : Array
        Integers, with as many dimensions as arr; dimensions other than the axis broadcast.
    values : Array or number
        They are broadcast to the indices' shape.
    axis : int, optional
        None writes into the flattened arr, which must be contiguous.
    """
    check_array(arr, "put_along_axis: arr")
    check_integers(indices, "put_along_axis: indices")
    check_devices("put_along_axis", arr=arr, indices=indices, values=values)
    if axis is None:
        arr, axis = reshape(arr, (-1,), copy=False), 0
    along = axis_of(axis, arr.ndim)
    if indices.ndim != arr.ndim:
        raise ValueError(
            f"put_along_axis: indices: expected {arr.ndim} dimensions, got shape {indices.shape}"
        )
    key = tuple(
        indices
        if d == along
        else reshape(
            arange(size, device=arr.device), [-1 if each == d else 1 for each in range(arr.ndim)]
        )
        for d, size in enumerate(arr.shape)
    )
    arr[key] = values


def unravel_index(indices: Array | int, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Convert positions in a flattened array to indices along each dimension.

    See :func:`cyrt.ravel_multi_index`.

    Parameters
    ----------
    indices : Array or int
        The positions. Positions in an Array that are out of range raise IndexError in checking
        mode, and are clipped otherwise.
    shape : int or tuple of int
    order : str
        ``"C"`` or ``"F"``: the last or the first dimension changes fastest.

    Returns
    -------
    tuple of Array, or of int
        Type int64.

    Raises
    ------
    ValueError
        An int is out of range.
    """
    sizes = _sizes(shape, order, "unravel_index")
    if not isinstance(indices, Array) and is_int(indices) and not hasattr(indices, "__array__"):
        return tuple(
            int(each)
            for each in np.unravel_index(index(indices), sizes, order="F" if order == "F" else "C")
        )
    left = apply_index_mode(
        _integers(indices, "unravel_index"), prod(sizes), "raise", "unravel_index"
    )
    digits = []
    for size in sizes if order == "F" else reversed(sizes):
        digits.append(left % size)
        left = left // size
    return tuple(digits if order == "F" else reversed(digits))


def ravel_multi_index(
    multi_index: Sequence[Array], dims: Any, mode: Any = "raise", order: str = "C"
) -> Array:
    """Convert indices along each dimension to positions in the flattened array.

    Parameters
    ----------
    multi_index : sequence of Array
        Integers, one array for each dimension; they broadcast.
    dims : int or tuple of int
        The shape.
    mode : str or tuple of str
        The treatment of indices out of range, see :func:`cyrt.choose`; one for all dimensions, or
        one for each.
    order : str
        ``"C"`` or ``"F"``: the last or the first dimension changes fastest.

    Returns
    -------
    Array
        Type int64.
    """
    sizes = _sizes(dims, order, "ravel_multi_index")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    if len(multi_index) != len(sizes) or len(modes) != len(sizes):
        raise ValueError(
            f"ravel_multi_index: {len(multi_index)} indices and {len(modes)} modes "
            f"for {len(sizes)} dimensions"
        )
    positions = [
        apply_index_mode(_integers(each, "ravel_multi_index"), size, how, "ravel_multi_index")
        for each, size, how in zip(multi_index, sizes, modes, strict=True)
    ]
    terms: list[Array] = []
    step = 1
    for each, size in (
        zip(positions, sizes, strict=True)
        if order == "F"
        else zip(reversed(positions), reversed(sizes), strict=True)
    ):
        terms.append(each * step)
        step *= size
    return sum(terms[1:], terms[0])


def _sizes(shape: Any, order: str, name: str) -> tuple[int, ...]:
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order: expected 'C' or 'F', got {show(order)}")
    sizes = tuple(
        int_of(each, f"{name}: shape")
        for each in (shape if isinstance(shape, (tuple, list)) else (shape,))
    )
    if not sizes or min(sizes) < 1:
        raise ValueError(f"{name}: expected dimensions of 1 or more, got {shape}")
    return sizes


def _integers(x: Any, name: str) -> Array:
    return astype(check_integers(x, name), "int64", copy=False)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Indices of a sub-grid of chosen rows, columns and so on: ``x[ix_([0, 2], [1])]``.

    Parameters
    ----------
    *args : Array or sequence of int or bool
        One for each axis, one-dimensional. Bools choose the indices where they are True; the call
        waits for the number of these.

    Returns
    -------
    tuple of Array
        They broadcast together.
    """
    found = []
    for axis, each in enumerate(args):
        line = (
            each
            if isinstance(each, Array)
            else asarray(each)
            if len(each)
            else asarray(each, dtype="int64")
        )
        if check_vector(line, "ix_").dtype.kind == "b":
            line = flatnonzero(line)
        found.append(reshape(line, [-1 if d == axis else 1 for d in range(len(args))]))
    return tuple(found)
