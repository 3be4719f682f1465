"""Interoperability with NumPy: kinds of types, conversion to NumPy arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.inspection import namespace

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

    Functions that call the Array's method stay on the device; those that return a number, a bool
    or a text compute with a copy of the elements on the host.

    Raises
    ------
    TypeError
        The result would be a NumPy array on the host; the message names cyrt's own function.
    """
    implementation = getattr(function, "_implementation", None)
    if implementation is None:  # a function with ``like=``
        raise _refusal(function)
    if _calls.inside:  # a function calls others of NumPy's
        return implementation(*args, **keywords)
    _calls.inside = True
    try:
        result = implementation(*args, **keywords)
    finally:
        _calls.inside = False
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if any(isinstance(part, np.ndarray) for part in parts):
        raise _refusal(function)
    return result


def _refusal(function: Any) -> TypeError:
    name = function.__name__
    own = function.__module__ == "numpy" and hasattr(namespace(), name)
    return TypeError(
        f"{function.__module__}.{name} computes on the host and got an Array, which lies on a "
        f"device: {f'call cyrt.{name}, or ' if own else ''}convert the Array by x.numpy()"
    )


def asnumpy(a: Any, /) -> np.ndarray:
    """Copy an Array to a NumPy array, or convert another object to one; CuPy's name."""
    return a.numpy() if isinstance(a, Array) else np.asarray(a)
