"""Operands made alike: numbers and sequences beside an array, integers where floats are meant."""

from __future__ import annotations

from typing import Any

from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import asarray, sequence_beside
from cyrt.ops.promotion import result_type


def array_beside(other: Array, value: Any, name: str, dtype: Any = None) -> Array:
    """An Array; a number, or a sequence of them, becomes one on the other's device."""
    if isinstance(value, Array) or (hasattr(value, "__array__") and hasattr(value, "__len__")):
        return check_array(value, name)
    return asarray(value, dtype=dtype, device=other.device)


def inexact(x: Array) -> Array:
    """Integers and bool as the default type of real numbers."""
    return x if x.dtype.kind in "fc" else astype(x, "float32")


def pair(x1: Any, x2: Any, name: str) -> tuple[Array, Array]:
    """Two operands, one of which may be a number or a sequence of weak ones, as Arrays of the type
    that both promote to."""
    first = x1 if isinstance(x1, Array) else check_array(x2, f"{name}: x1 or x2")
    for each in (x1, x2):
        if hasattr(each, "__array__") and hasattr(each, "__len__"):
            check_array(each, name)
    x1, x2 = (sequence_beside(first, each) if isinstance(each, (list, tuple)) else each
              for each in (x1, x2))
    dtype = result_type(x1, x2)
    x1, x2 = (astype(each, dtype, copy=False) if isinstance(each, Array)
              else asarray(each, dtype=dtype, device=first.device) for each in (x1, x2))
    return x1, x2
