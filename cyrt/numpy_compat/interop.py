"""Interoperability with NumPy: kinds of types, conversion to NumPy arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from cyrt.ndarray import Array

__all__ = ["asnumpy", "issubdtype"]


class _Calls(threading.local):
    """Whether the thread is inside one of NumPy's functions that got an Array."""

    inside = False


_calls = _Calls()


def issubdtype(arg1: Any, arg2: Any, /) -> bool:
    """Whether a type is of a kind, as by :func:`numpy.issubdtype`; bfloat16 is ``floating``.

    Parameters
    ----------
    arg1, arg2 : DType, or a type of NumPy's
    """
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else None
    if arg1 == "bfloat16" and kind is not None and issubclass(np.floating, kind):
        return True
    return bool(np.issubdtype(arg1, arg2))


def call_numpy(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call one of NumPy's functions that got an Array.

    Functions that call the Array's method, or return a number, work as for NumPy's arrays.

    Raises
    ------
    TypeError
        The result would be a NumPy array on the host; the message names cyrt's own function.
    """
    if _calls.inside:  # a function calls others of NumPy's
        return function._implementation(*args, **keywords)
    _calls.inside = True
    try:
        result = function._implementation(*args, **keywords)
    finally:
        _calls.inside = False
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if not any(isinstance(part, np.ndarray) for part in parts):
        return result
    import cyrt

    name = function.__name__
    own = f"call cyrt.{name}, or " if hasattr(cyrt, name) else ""
    raise TypeError(
        f"numpy.{name} computes on the host and got an Array, which lies on a device: {own}"
        "convert the Array by x.numpy()"
    )


def asnumpy(a: Any, /) -> np.ndarray:
    """Copy an Array to a NumPy array, or convert another object to one; CuPy's name."""
    return a.numpy() if isinstance(a, Array) else np.asarray(a)
