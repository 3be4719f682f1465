"""Conversion of operands: numbers and sequences to arrays, integers to floats."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype, check_device
from cyrt.ops.creation import asarray, weak_array
from cyrt.ops.promotion import result_type

_KINDS = "buifc"  # each kind may be cast to those that follow
_Function = TypeVar("_Function", bound=Callable[..., Any])


def as_array_like(other: Array, value: Any, name: str, dtype: Any = None) -> Array:
    """Convert a number or a sequence of numbers to an Array on another Array's device.

    Without a dtype, numbers get their default type. But if the other Array has double precision,
    floats get its type, so that they are not rounded to float32.
    """
    if isinstance(value, Array) or (hasattr(value, "__array__") and hasattr(value, "__len__")):
        found = check_array(value, name)
        check_device(found, other, name)
        return found
    found = asarray(value, dtype=dtype, device=other.device)
    if (
        dtype is None
        and found.dtype in ("float32", "complex64")
        and other.dtype in ("float64", "complex128")
    ):
        return weak_array(other, value)
    return found


def check_cast(value: Any, target: Array, name: str, unless: str = "") -> None:
    """Raise a TypeError if a value is of a wider kind than an Array; numbers are weak."""
    if isinstance(value, Array) or hasattr(value, "__array__"):
        kind = as_array_like(target, value, name).dtype.kind
    else:
        found = np.asarray(value)
        kind = found.dtype.kind.replace("i", "u")
        if kind == "O" and all(isinstance(each, int) for each in found.flat):
            kind = "u"  # NumPy stores ints of more than 64 bits as objects.
        if kind not in _KINDS:
            raise TypeError(f"{name}: expected numbers, got {type(value).__name__}")
    if _KINDS.index(kind) > _KINDS.index(target.dtype.kind):
        raise TypeError(f"{name}: {value!r} cannot be cast to {target.dtype}{unless}")


def to_inexact(x: Array) -> Array:
    """Convert integers and bool to float32, the default type of real numbers."""
    return x if x.dtype.kind in "fc" else astype(x, "float32")


def float_types(*arrays: Array) -> tuple[DType, DType]:
    """The floating-point type of a result, and the type in which it is computed.

    For integers and bool the result is float32, computed in float64. 16-bit floats keep their type,
    but are computed in float32. So differences and sums are rounded once, at the end, and
    differences of unsigned integers do not wrap around.
    """
    exact = [each.dtype.kind in "biu" for each in arrays]
    result = result_type(
        *("float32" if whole else each.dtype for whole, each in zip(exact, arrays, strict=True))
    )
    computed = result_type(
        "float32",
        *("float64" if whole else each.dtype for whole, each in zip(exact, arrays, strict=True)),
    )
    return result, computed


def is_number(x: Any) -> bool:
    """Whether x is a number of Python or NumPy."""
    return isinstance(x, (bool, int, float, complex, np.generic))


def accept_numbers(count: int) -> Callable[[_Function], _Function]:
    """Decorate a function so that it returns NumPy's result if its first `count` operands are
    numbers."""

    def decorate(function: _Function) -> _Function:
        names = list(inspect.signature(function).parameters)[:count]

        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            operands = [*args[:count], *(options[name] for name in names if name in options)]
            if (
                len(operands) == count
                and all(map(is_number, operands))
                and not any(isinstance(each, Array) for each in options.values())
            ):  # NumPy's function would call this one for an Array
                with np.errstate(all="ignore"):
                    return getattr(np, function.__name__)(*args, **options)
            return function(*args, **options)

        return cast(_Function, called)

    return decorate


def promote_pair(x1: Any, x2: Any, name: str) -> tuple[Array, Array]:
    """Convert two operands to Arrays of their promoted type; at least one must be an Array.

    The other operand may be a number or a sequence of numbers, which are weak in promotion.
    """
    first = x1 if isinstance(x1, Array) else check_array(x2, f"{name}: x1 or x2")
    for each in (x1, x2):
        if hasattr(each, "__array__") and hasattr(each, "__len__"):
            check_device(check_array(each, name), first, f"{name}: x2")
    x1, x2 = (
        weak_array(first, each) if isinstance(each, (list, tuple)) else each for each in (x1, x2)
    )
    dtype = result_type(x1, x2)
    x1, x2 = (
        astype(each, dtype, copy=False)
        if isinstance(each, Array)
        else asarray(each, dtype=dtype, device=first.device)
        for each in (x1, x2)
    )
    return x1, x2
