"""Elements chosen by masks and by indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyrt import settings
from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import array_beside
from cyrt.ops import reduce
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import arange, asarray, empty, full, full_like
from cyrt.ops.manipulation import stack
from cyrt.ops.promotion import result_type
from cyrt.ops.search import flatnonzero, nonzero
from cyrt.ops.shapes import broadcast_arrays, ravel, reshape
from cyrt.ops.take import take, take_along_axis
from cyrt.ops.ternary import clip, where


def argwhere(a: Array) -> Array:
    """The indices of the elements that are not zero, a row each: int64. It waits for how many."""
    if check_array(a, "argwhere: a").ndim == 0:
        return empty((flatnonzero(a).size, 0), dtype="int64", device=a.device)
    return stack(nonzero(a), axis=1)


def extract(condition: Any, arr: Array) -> Array:
    """The elements at which a condition is not zero, in C order; it waits for how many.

    Parameters
    ----------
    condition : Array, bool or sequence of bool
        Of as many elements.
    arr : Array
    """
    condition = array_beside(check_array(arr, "extract: arr"), condition, "extract: condition",
                             "bool")
    return take(ravel(arr), flatnonzero(condition), axis=0)


def compress(condition: Any, a: Array, axis: int | None = None) -> Array:
    """The parts along an axis at which a condition is not zero; it waits for how many.

    Parameters
    ----------
    condition : Array or sequence of bool
        Of one dimension; nothing is chosen beyond its end.
    a : Array
    axis : int, optional
        Left out: a is flattened.
    """
    condition = array_beside(check_array(a, "compress: a"), condition, "compress: condition")
    if condition.ndim != 1:
        raise ValueError(f"compress: condition: expected one dimension, got {condition.shape}")
    if axis is None:
        a, axis = ravel(a), 0
    size = a.shape[axis_of(axis, a.ndim)]
    places = flatnonzero(condition)
    if condition.size > size and places.size and places[-1].item() >= size:
        raise IndexError(f"compress: condition: it chooses {places[-1].item()}, out of bounds for "
                         f"axis {axis} with size {size}")
    return take(a, places, axis=axis)


def choose(a: Array, choices: Sequence[Any] | Array, mode: str = "raise") -> Array:
    """Of several arrays the element of the one that an index names, each at its place.

    Parameters
    ----------
    a : Array
        Integers.
    choices : Array or sequence of Array or number
        All broadcast together with a.
    mode : str
        What an index out of range is: ``"wrap"`` counts on from the other end, ``"clip"`` is the
        nearest, ``"raise"`` an IndexError in checking mode (``CYRT_CHECK=1``) and the nearest
        otherwise.

    Returns
    -------
    Array
        Of the type that the choices promote to.
    """
    if check_array(a, "choose: a").dtype.kind not in "biu":
        raise TypeError(f"choose: a: expected integers, got {a.dtype}")
    parts = [array_beside(a, each, "choose: choices") for each in choices]
    if not parts:
        raise ValueError("choose: expected at least one choice")
    dtype = result_type(*parts)
    places, *parts = broadcast_arrays(a, *(astype(each, dtype, copy=False) for each in parts))
    places = in_range(astype(places, "int64", copy=False), len(parts), mode, "choose")
    return take_along_axis(stack(parts), places[None], axis=0)[0]


def in_range(places: Array, size: int, mode: str, name: str) -> Array:
    """Indices from 0 to size: those out of range as :func:`cyrt.choose` has it."""
    if mode == "wrap":
        return places % size
    if mode not in ("raise", "clip"):
        raise ValueError(f"{name}: mode: expected 'raise', 'wrap' or 'clip', got {mode!r}")
    if mode == "raise" and settings.get("CYRT_CHECK") and reduce.any(
            (places < 0) | (places >= size)):
        raise IndexError(f"{name}: an index is out of bounds for size {size}")
    return clip(places, 0, size - 1)


def select(condlist: Sequence[Array], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """At each place the element of the first choice whose condition holds.

    Parameters
    ----------
    condlist : sequence of Array
        Of bool.
    choicelist : sequence of Array or number
        As many.
    default : Array or number
        Where no condition holds.

    Returns
    -------
    Array
        Of the shape that all broadcast to, and of the type that the choices and the default
        promote to.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select: expected conditions and as many choices, got {len(condlist)} "
                         f"and {len(choicelist)}")
    like = check_array(condlist[0], "select: condlist")
    given = [*choicelist, default]
    dtype = result_type(*given) if any(isinstance(each, Array) for each in given) else \
        asarray(given).dtype
    result = default if isinstance(default, Array) else \
        full((), default, dtype=dtype, device=like.device)
    result = astype(result, dtype, copy=False)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


def piecewise(x: Array, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """At each place what the last of the functions whose condition holds gives of the element.

    Parameters
    ----------
    x : Array
    condlist : Array, bool, or sequence of these
        The conditions, an array's parts where it has one dimension more than x; a sequence of
        bools is one condition, but for each its own beside an x of no dimensions.
    funclist : sequence of callable or number
        As many; one more is for where no condition holds, which is 0 else. Each is called once,
        with all of x.
    *args, **kw
        What the functions get besides.

    Returns
    -------
    Array
        Of x's shape and type.
    """
    check_array(x, "piecewise: x")
    conditions = [array_beside(x, each, "piecewise: condlist", "bool")
                  for each in _conditions(x, condlist)]
    if len(funclist) - len(conditions) not in (0, 1):
        raise ValueError(f"piecewise: expected {len(conditions)} functions, or one more, got "
                         f"{len(funclist)}")
    *chosen, default = funclist if len(funclist) > len(conditions) else (*funclist, 0)
    result = None
    for condition, function in ((None, default), *zip(conditions, chosen, strict=True)):
        value = function(x, *args, **kw) if callable(function) else function
        value = astype(value, x.dtype, copy=False) if isinstance(value, Array) else \
            full_like(x, value)
        result = value if condition is None else where(condition, value, result)
    return result


def _conditions(x: Array, condlist: Any) -> list[Any]:
    if isinstance(condlist, Array):
        return list(condlist) if condlist.ndim > x.ndim else [condlist]
    if not isinstance(condlist, (list, tuple)):
        return [condlist]
    one = len(condlist) and x.ndim and isinstance(condlist[0], (bool, np.bool_))
    return [condlist] if one else list(condlist)


def put_along_axis(arr: Array, indices: Array, values: Any, axis: int | None = -1) -> None:
    """Write into places of each row along an axis, in place; see :func:`cyrt.take_along_axis`.

    Parameters
    ----------
    arr : Array
    indices : Array
        Integers, of as many dimensions as arr; the others than the axis broadcast with arr's.
    values : Array or number
        Broadcast to the indices' shape.
    axis : int, optional
        None: into arr flattened, which then has to be dense.
    """
    check_array(arr, "put_along_axis: arr")
    if check_array(indices, "put_along_axis: indices").dtype.kind not in "iu":
        raise TypeError(f"put_along_axis: indices: expected integers, got {indices.dtype}")
    if axis is None:
        arr, axis = reshape(arr, (-1,), copy=False), 0
    along = axis_of(axis, arr.ndim)
    if indices.ndim != arr.ndim:
        raise ValueError(f"put_along_axis: indices: expected {arr.ndim} dimensions, got shape "
                         f"{indices.shape}")
    key = tuple(
        indices if d == along else
        reshape(arange(size, device=arr.device),
                [-1 if each == d else 1 for each in range(arr.ndim)])
        for d, size in enumerate(arr.shape))
    arr[key] = values


def unravel_index(indices: Array | int, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """The indices along each dimension of places in an array's elements; see
    :func:`cyrt.ravel_multi_index`.

    Parameters
    ----------
    indices : Array or int
        Integers; out of range those of an Array are an IndexError in checking mode and the nearest
        otherwise.
    shape : int or tuple of int
    order : str
        ``"C"`` or ``"F"``: the last or the first dimension changes fastest.

    Returns
    -------
    tuple of Array, or of int
        int64.

    Raises
    ------
    ValueError
        An int out of range.
    """
    sizes = _sizes(shape, order, "unravel_index")
    if not isinstance(indices, Array) and hasattr(indices, "__index__") \
            and not hasattr(indices, "__array__"):
        return tuple(int(each) for each in np.unravel_index(index(indices), sizes, order))
    left = in_range(_integers(indices, "unravel_index"), prod(sizes), "raise", "unravel_index")
    found = []
    for size in sizes if order == "F" else reversed(sizes):
        found.append(left % size)
        left = left // size
    return tuple(found if order == "F" else reversed(found))


def ravel_multi_index(multi_index: Sequence[Array], dims: Any, mode: Any = "raise",
                      order: str = "C") -> Array:
    """The places in an array's elements of indices along each dimension.

    Parameters
    ----------
    multi_index : sequence of Array
        Integers, one array a dimension; they broadcast.
    dims : int or tuple of int
        The shape.
    mode : str or tuple of str
        What an index out of range is, see :func:`cyrt.choose`; one for all dimensions or each.
    order : str
        ``"C"`` or ``"F"``: the last or the first dimension changes fastest.

    Returns
    -------
    Array
        int64.
    """
    sizes = _sizes(dims, order, "ravel_multi_index")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    if len(multi_index) != len(sizes) or len(modes) != len(sizes):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} indices and {len(modes)} modes "
                         f"for {len(sizes)} dimensions")
    places = [in_range(_integers(each, "ravel_multi_index"), size, how, "ravel_multi_index")
              for each, size, how in zip(multi_index, sizes, modes, strict=True)]
    result, step = None, 1
    for each, size in (zip(places, sizes, strict=True) if order == "F" else
                       zip(reversed(places), reversed(sizes), strict=True)):
        result = each * step if result is None else result + each * step
        step *= size
    return result


def _sizes(shape: Any, order: str, name: str) -> tuple[int, ...]:
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order: expected 'C' or 'F', got {order!r}")
    sizes = tuple(index(each) for each in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    if not sizes or min(sizes) < 1:
        raise ValueError(f"{name}: expected dimensions of 1 or more, got {shape}")
    return sizes


def _integers(x: Any, name: str) -> Array:
    if check_array(x, name).dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got {x.dtype}")
    return astype(x, "int64", copy=False)
