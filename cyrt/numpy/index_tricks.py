"""Objects whose subscripts make arrays: grids and concatenations."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.broadcasting import broadcast_arrays
from cyrt.ops.creation import asarray
from cyrt.ops.manipulation import concat, stack
from cyrt.ops.shapes import reshape

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def _line(host: np.ndarray) -> Array:
    """Copy to the device; floats get the default type."""
    return asarray(host, dtype="float32" if host.dtype.kind == "f" else None)


class _Sparse:
    """``ogrid[0:3, 0:1:5j]``: the coordinates along each axis, as arrays that broadcast.

    A step of ``5j`` makes 5 coordinates, the end included.
    """

    def __getitem__(self, key: Any) -> Any:
        found = np.ogrid[key]
        return tuple(map(_line, found)) if isinstance(found, (tuple, list)) else _line(found)


class _Dense:
    """``mgrid[0:3, 0:1:5j]``: the coordinates of all points of a grid, one array.

    See :obj:`cyrt.numpy.ogrid`.
    """

    def __getitem__(self, key: Any) -> Array:
        found = np.ogrid[key]
        if isinstance(found, np.ndarray):
            return _line(found)
        dtype = np.result_type(*found)
        return stack(broadcast_arrays(*(_line(each.astype(dtype)) for each in found)))


class _Concatenated:
    """``r_[x, 0, 1:4]``: arrays, numbers and ranges, concatenated along the first axis."""

    def __getitem__(self, key: Any) -> Array:
        return concat(_pieces(key, "r_"), axis=0)


class _Columns:
    """``c_[x, y]``: arrays, and vectors as columns, concatenated along the last axis."""

    def __getitem__(self, key: Any) -> Array:
        pieces = [each if isinstance(each, Array) else asarray(each) for each in _pieces(key, "c_")]
        return concat(
            [reshape(each, (-1, 1)) if each.ndim == 1 else each for each in pieces], axis=-1
        )


def _pieces(key: Any, name: str) -> list[Any]:
    found: list[Any] = []
    for each in key if isinstance(key, tuple) else (key,):
        if isinstance(each, str):
            raise ValueError(f"{name}: expected arrays, numbers and ranges, got {show(each)}")
        if isinstance(each, slice):
            found.append(_line(np.r_[each]))
        elif isinstance(each, Array):
            found.append(each if each.ndim else reshape(each, (1,)))
        elif isinstance(each, (list, tuple)):
            found.append(each)
        else:
            if hasattr(each, "__len__"):
                check_array(each, name)
            found.append([each])  # weak in promotion
    return (
        found
        if any(isinstance(each, Array) for each in found)
        else [asarray(each) for each in found]
    )


ogrid, mgrid, r_, c_ = _Sparse(), _Dense(), _Concatenated(), _Columns()
