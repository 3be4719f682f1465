"""Operands made alike: numbers and sequences beside an array, integers where floats are meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import asarray, sequence_beside
from cyrt.ops.promotion import result_type


def array_beside(other: Array, value: Any, name: str, dtype: Any = None) -> Array:
    """An Array; a number, or a sequence of them, becomes one on the other's device.

    Without a dtype numbers take their default type, floats the other's where that is in double
    precision: they are not rounded to float32 beside it.
    """
    if isinstance(value, Array) or (hasattr(value, "__array__") and hasattr(value, "__len__")):
        return check_array(value, name)
    found = asarray(value, dtype=dtype, device=other.device)
    if dtype is None and found.dtype in ("float32", "complex64") and other.dtype in (
            "float64", "complex128"):
        return sequence_beside(other, value)
    return found


def inexact(x: Array) -> Array:
    """Integers and bool as the default type of real numbers."""
    return x if x.dtype.kind in "fc" else astype(x, "float32")


def float_types(*arrays: Array) -> tuple[DType, DType]:
    """The type of a floating-point result of arrays, and the type that it is computed in.

    Integers and bool give float32, as 16-bit floats give their own, but they are computed in
    float64, and 16-bit floats in float32: differences and sums are rounded once, at the end, and
    those of unsigned integers do not wrap around.
    """
    exact = [each.dtype.kind in "biu" for each in arrays]
    result = result_type(*("float32" if whole else each.dtype
                           for whole, each in zip(exact, arrays, strict=True)))
    computed = result_type("float32", *("float64" if whole else each.dtype
                                        for whole, each in zip(exact, arrays, strict=True)))
    return result, computed


def is_number(x: Any) -> bool:
    """Whether a number of Python's or of NumPy's."""
    return isinstance(x, (bool, int, float, complex, np.generic))


def of_numbers(count: int) -> Callable[..., Any]:
    """Makes a function whose first `count` operands are numbers alone give NumPy's number."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)[:count]

        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            operands = [*args[:count], *(options[name] for name in names if name in options)]
            if len(operands) == count and all(map(is_number, operands)):
                with np.errstate(all="ignore"):
                    return getattr(np, function.__name__)(*args, **options)
            return function(*args, **options)

        return called

    return decorate


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
