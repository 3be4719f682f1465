"""Bits packed into bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import axis_of, check_array, int_of
from cyrt.ops.copy import astype
from cyrt.ops.creation import asarray, zeros
from cyrt.ops.manipulation import concat
from cyrt.ops.shapes import expand_dims, moveaxis, ravel, reshape

__all__ = ["packbits", "unpackbits"]


def packbits(a: Array, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack bits along an axis into bytes of eight; missing bits are 0.

    Parameters
    ----------
    a : Array
        Type bool or an integer type; an element that is not 0 is a bit 1.
    axis : int, optional
        By default `a` is flattened.
    bitorder : {"big", "little"}
        Whether the first of eight elements is the highest or the lowest bit.

    Returns
    -------
    Array
        uint8.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.packbits(cyrt.asarray([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    if check_array(a, "packbits: a").dtype.kind not in "biu":
        raise TypeError(f"packbits: a: expected bool or integers, got {a.dtype}")
    shifts = _shifts(a, bitorder, "packbits")
    bits, along = _rows(a, axis)
    bits = astype(bits != 0, "uint8")
    if rest := -bits.shape[-1] % 8:
        more = zeros((*bits.shape[:-1], rest), dtype="uint8", device=a.device)
        bits = concat([bits, more], axis=-1)
    groups = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    packed = reduce.sum(groups << shifts, axis=-1, dtype="uint8")
    return ascontiguousarray(moveaxis(packed, -1, along))


def unpackbits(
    a: Array, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack each byte into eight bits along an axis.

    Parameters
    ----------
    a : Array
        uint8.
    axis : int, optional
        By default `a` is flattened.
    count : int, optional
        The number of bits along the axis of the result. If there are fewer, zeros are appended. A
        negative number is the number of bits that are left out at the end. Default: all.
    bitorder : {"big", "little"}
        Whether the first of eight elements is the highest or the lowest bit.

    Returns
    -------
    Array
        uint8, of 0 and 1.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.unpackbits(cyrt.asarray([160], dtype="uint8"), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    if check_array(a, "unpackbits: a").dtype.name != "uint8":
        raise TypeError(f"unpackbits: a: expected uint8, got {a.dtype}")
    shifts = _shifts(a, bitorder, "unpackbits")
    rows, along = _rows(a, axis)
    bits = elementary.bitwise_and(expand_dims(rows, axis=-1) >> shifts, 1)
    bits = reshape(bits, (*rows.shape[:-1], 8 * rows.shape[-1]))
    length = bits.shape[-1]
    if count is not None:
        wanted = int_of(count, "unpackbits: count")
        if wanted < -length:
            raise ValueError(f"unpackbits: count: {wanted} leaves out more than the {length} bits")
        wanted += length if wanted < 0 else 0
        if wanted > length:
            more = zeros((*bits.shape[:-1], wanted - length), dtype="uint8", device=a.device)
            bits = concat([bits, more], axis=-1)
        bits = bits[..., :wanted]
    return ascontiguousarray(moveaxis(bits, -1, along))


def _rows(a: Array, axis: int | None) -> tuple[Array, int]:
    """Move the axis to the end, and return its number; without an axis, flatten the array first."""
    if axis is None or a.ndim == 0:
        return ravel(a), 0
    along = axis_of(axis, a.ndim)
    return moveaxis(a, along, -1), along


def _shifts(a: Array, bitorder: Any, name: str) -> Array:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder: expected 'big' or 'little', got {show(bitorder)}")
    shifts = np.arange(8, dtype=np.uint8)
    return asarray(shifts[::-1] if bitorder == "big" else shifts, device=a.device)
