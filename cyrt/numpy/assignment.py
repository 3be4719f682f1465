"""Assignment in place by masks and by positions in the flattened array."""

from __future__ import annotations

from typing import Any

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.attributes import Flat
from cyrt.numpy.coercion import as_array_like, check_cast
from cyrt.numpy.indexing import apply_index_mode
from cyrt.numpy.manipulation import resize
from cyrt.ops.arguments import check_array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import assign, astype
from cyrt.ops.gather import take
from cyrt.ops.scan import cumulative_sum
from cyrt.ops.shapes import ravel, reshape
from cyrt.ops.ternary import where as chosen

__all__ = ["copyto", "place", "put", "putmask"]


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write an array into another.

    Parameters
    ----------
    dst : Array
    src : Array or number
        It is broadcast to dst.
    casting : str
        ``"same_kind"`` allows casts within an Array's kind and to wider kinds; ``"unsafe"`` allows
        all casts.
    where : Array or bool
        The elements to write; it is broadcast to dst.

    Raises
    ------
    TypeError
        `casting` does not allow the cast.
    """
    check_array(dst, "copyto: dst")
    if casting not in ("same_kind", "unsafe"):
        raise ValueError(f"copyto: casting: expected 'same_kind' or 'unsafe', got {show(casting)}")
    if casting == "same_kind":
        check_cast(src, dst, "copyto: src", " unless casting='unsafe'")
    src = _cast_to(dst, src, "copyto: src")
    assign(
        dst,
        src
        if where is True
        else chosen(
            broadcast_to(as_array_like(dst, where, "copyto: where", "bool"), dst.shape), src, dst
        ),
    )


def _cast_to(a: Array, value: Any, name: str) -> Array:
    """Convert a value to an Array of a's type."""
    return astype(as_array_like(a, value, name, a.dtype), a.dtype, copy=False)


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at positions of the flattened array, in place.

    Parameters
    ----------
    a : Array
    ind : Array, int or sequence of int
        The positions.
    v : Array, number or sequence of them
        They are repeated as needed; nothing is written if there are none.
    mode : str
        The treatment of positions out of range; see :func:`cyrt.choose`.
    """
    positions = ravel(as_array_like(check_array(a, "put: a"), ind, "put: ind", "int64"))
    values = _cast_to(a, v, "put: v")
    if positions.size == 0 or values.size == 0:
        return
    size = a.size
    if mode == "raise":
        positions = chosen(positions < 0, positions + size, positions)
    Flat(a)[apply_index_mode(positions, size, mode, "put")] = resize(values, positions.shape)


def putmask(a: Array, mask: Any, values: Any) -> None:
    """Write values where a mask is true, each at its own position, in place.

    If there are fewer values than elements of `a`, they are repeated. See :func:`cyrt.copyto`.
    """
    mask = as_array_like(check_array(a, "putmask: a"), mask, "putmask: mask", "bool")
    if mask.size != a.size:
        raise ValueError(f"putmask: mask: expected {a.size} elements, got shape {mask.shape}")
    values = _cast_to(a, values, "putmask: values")
    if values.size:
        copyto(a, resize(values, a.shape), where=reshape(mask, a.shape))


def place(arr: Array, mask: Any, vals: Any) -> None:
    """Write the first values, one after the other, where a mask is true, in place.

    If there are too few values, they are repeated.

    Parameters
    ----------
    arr : Array
    mask : Array, bool or sequence of bool
        As many elements as arr has.
    vals : Array, number or sequence of them
        At least one.
    """
    mask = as_array_like(check_array(arr, "place: arr"), mask, "place: mask", "bool")
    if mask.size != arr.size:
        raise ValueError(f"place: mask: expected {arr.size} elements, got shape {mask.shape}")
    vals = ravel(_cast_to(arr, vals, "place: vals"))
    if vals.size == 0:
        raise ValueError("place: vals: expected at least one")
    holds = astype(ravel(mask), "bool")
    count = cumulative_sum(astype(holds, "int64"))
    found = take(vals, (count - 1) % vals.size, axis=0)
    copyto(arr, reshape(found, arr.shape), where=reshape(holds, arr.shape))
