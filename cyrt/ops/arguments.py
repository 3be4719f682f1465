"""Checks of arguments that many functions take: axes, ints, bools and arrays."""

from __future__ import annotations

from operator import index
from typing import Any, NoReturn

import numpy as np

from cyrt.ndarray import Array


def is_int(value: Any) -> bool:
    """Return whether a value counts as an int.

    ``__index__`` alone does not suffice, because NumPy's arrays have it.
    """
    return hasattr(type(value), "__index__") and not getattr(value, "ndim", 0)


def int_of(value: Any, name: str) -> int:
    """Return an int; a bool or another value raises a TypeError that names the argument."""
    if not isinstance(value, (bool, np.bool_)) and is_int(value):
        try:
            return index(value)
        except TypeError:  # an array of floats without dimensions
            pass
    raise TypeError(f"{name}: expected an int, got {type(value).__name__}")


def count_of(value: Any, name: str) -> int:
    """Return an int of 0 or more; other values raise a TypeError or ValueError that names the
    argument."""
    found = int_of(value, name)
    if found < 0:
        raise ValueError(f"{name}: expected 0 or more, got {found}")
    return found


def check_bool(value: Any, name: str) -> bool:
    """Return a bool, Python's or NumPy's; otherwise raise a TypeError that names its type."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name}: expected a bool, got {type(value).__name__}")


def check_real(x: Any, name: str) -> Array:
    """Return x if it is an Array of a real type; otherwise raise a TypeError."""
    if check_array(x, name).dtype.kind == "c":
        raise TypeError(f"{name}: expected a real type, got {x.dtype}")
    found: Array = x
    return found


def check_flags(name: str, **flags: Any) -> None:
    """Check the bools of a function of NumPy's, for which NumPy accepts 0 and 1, too."""
    for flag, value in flags.items():
        if not (isinstance(value, (int, np.integer)) and value in (0, 1)):
            check_bool(value, f"{name}: {flag}")


def refuse_device(name: str, found: int, expected: int) -> NoReturn:
    """Raise the error for an array that is on another device than the arrays before it."""
    raise ValueError(
        f"{name}: expected an array on device {expected}, got one on device {found}; "
        "to_device() moves arrays"
    )


def axis_of(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return an axis counted from 0; raise a numpy.exceptions.AxisError if there is none."""
    found = int_of(axis, name)
    if not -ndim <= found < ndim:
        from numpy.exceptions import AxisError

        raise AxisError(found, ndim)
    return found % ndim


def axes_of(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from 0: all for None, or those of an int or a tuple. Duplicates raise a
    ValueError."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(axis_of(each, ndim, name) for each in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: {axis} names one of {ndim} axes twice")
    return found


def check_vector(x: Any, name: str) -> Array:
    """Return x if it is an Array of one dimension; otherwise raise a TypeError or ValueError."""
    if check_array(x, name).ndim != 1:
        raise ValueError(f"{name}: expected one dimension, got shape {x.shape}")
    found: Array = x
    return found


def check_integers(x: Any, name: str) -> Array:
    """Return x if it is an Array of an integer type; otherwise raise a TypeError."""
    if check_array(x, name).dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got {x.dtype}")
    found: Array = x
    return found


def type_name(value: Any) -> str:
    """Return the name of a value's type, with its module unless that is Python's own."""
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")


def check_array(x: Any, name: str) -> Array:
    """Return x if it is an Array; otherwise raise a TypeError that names its type."""
    if isinstance(x, Array):
        return x
    refuse_array(x, name)


def is_of_others(value: Any) -> bool:
    """Return whether a value offers its elements as another library's array does."""
    offers = ("__dlpack_c_exchange_api__", "__dlpack__", "__array__", "__cuda_array_interface__")
    return any(hasattr(value, each) for each in offers)


def is_on_host(value: Any) -> bool:
    """Return whether the elements of another library's array are in host memory."""
    if hasattr(value, "__dlpack_device__"):
        kind, _ = value.__dlpack_device__()
        return int(kind) == 1  # kDLCPU of dlpack.h
    offers = ("__dlpack_c_exchange_api__", "__cuda_array_interface__")
    return not any(hasattr(value, each) for each in offers)


def refuse_array(value: Any, name: str) -> NoReturn:
    """Raise the error of an argument that is not an Array; it names the call that converts it."""
    advice = ""
    if isinstance(value, (list, tuple)) or (is_of_others(value) and is_on_host(value)):
        advice = "; cyrt.asarray() copies it to the device"
    elif is_of_others(value):
        advice = "; cyrt.asarray() makes one of it"
    raise TypeError(f"{name}: expected an Array, got {type_name(value)}{advice}")


def refuse_output(out: Any, name: str) -> NoReturn:
    """Raise the error of an ``out=`` that is not memory of a device: the caller would not see what
    is written into a copy of it."""
    if is_of_others(out) and not is_on_host(out):
        refuse_array(out, f"{name}: out")
    where = ", which is on the host" if is_of_others(out) else ""
    raise TypeError(
        f"{name}: out: expected an Array, got {type_name(out)}{where}; out= takes an Array or "
        "memory of a GPU"
    )
