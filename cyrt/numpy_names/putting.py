"""Writing in place by masks and by places in the flattened array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.numpy_names.assembly import resize
from cyrt.numpy_names.attributes import Flat
from cyrt.numpy_names.choosing import in_range
from cyrt.numpy_names.coercion import array_beside
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import assign, astype
from cyrt.ops.scan import cumulative_sum
from cyrt.ops.shapes import broadcast_to, ravel, reshape
from cyrt.ops.take import take
from cyrt.ops.ternary import where as chosen

_KINDS = "buifc"        # each may be cast to those that follow


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write an array into another.

    Parameters
    ----------
    dst : Array
    src : Array or number
        Broadcast to dst.
    casting : str
        ``"same_kind"``: from an Array's type to its kind or a wider one; ``"unsafe"``: to any.
    where : Array or bool
        Where to write; broadcast to dst.

    Raises
    ------
    TypeError
        What casting does not allow.
    """
    check_array(dst, "copyto: dst")
    if casting not in ("same_kind", "unsafe"):
        raise ValueError(f"copyto: casting: expected 'same_kind' or 'unsafe', got {casting!r}")
    if isinstance(src, Array) or hasattr(src, "__array__"):
        kind = array_beside(dst, src, "copyto: src").dtype.kind
    else:
        kind = np.asarray(src).dtype.kind.replace("i", "u")         # numbers are weak
    if casting == "same_kind" and _KINDS.index(kind) > _KINDS.index(dst.dtype.kind):
        raise TypeError(f"copyto: {src!r} is not cast to {dst.dtype} unless casting='unsafe'")
    src = _as(dst, src)
    assign(dst, src if where is True else chosen(
        broadcast_to(array_beside(dst, where, "copyto: where", "bool"), dst.shape), src, dst))


def _as(a: Array, value: Any) -> Array:
    """What is given as an Array of a's type."""
    return astype(array_beside(a, value, "values", a.dtype), a.dtype, copy=False)


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write at places of the flattened array, in place.

    Parameters
    ----------
    a : Array
    ind : Array, int or sequence of int
        The places.
    v : Array, number or sequence of them
        Repeated until there are as many; nothing is written where there are none.
    mode : str
        What a place out of range is, see :func:`cyrt.choose`.
    """
    places = ravel(array_beside(check_array(a, "put: a"), ind, "put: ind", "int64"))
    values = _as(a, v)
    if places.size == 0 or values.size == 0:
        return
    size = a.size
    if mode == "raise":
        places = chosen(places < 0, places + size, places)
    Flat(a)[in_range(places, size, mode, "put")] = resize(values, places.shape)


def putmask(a: Array, mask: Any, values: Any) -> None:
    """Write where a mask holds, in place: the values that lie there, repeated where they are
    fewer than a's elements. See :func:`cyrt.copyto`."""
    mask = array_beside(check_array(a, "putmask: a"), mask, "putmask: mask", "bool")
    if mask.size != a.size:
        raise ValueError(f"putmask: mask: expected {a.size} elements, got shape {mask.shape}")
    values = _as(a, values)
    if values.size:
        copyto(a, resize(values, a.shape), where=reshape(mask, a.shape))


def place(arr: Array, mask: Any, vals: Any) -> None:
    """Write where a mask holds, in place: the first value at the first such place, and so on,
    repeated where they are fewer.

    Parameters
    ----------
    arr : Array
    mask : Array, bool or sequence of bool
        Of as many elements.
    vals : Array, number or sequence of them
        At least one.
    """
    mask = array_beside(check_array(arr, "place: arr"), mask, "place: mask", "bool")
    if mask.size != arr.size:
        raise ValueError(f"place: mask: expected {arr.size} elements, got shape {mask.shape}")
    vals = ravel(_as(arr, vals))
    if vals.size == 0:
        raise ValueError("place: vals: expected at least one")
    holds = astype(ravel(mask), "bool")
    count = cumulative_sum(astype(holds, "int64"))
    found = take(vals, (count - 1) % vals.size, axis=0)
    copyto(arr, reshape(found, arr.shape), where=reshape(holds, arr.shape))
