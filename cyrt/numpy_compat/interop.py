"""Interoperability with NumPy: kinds of types, conversion to NumPy arrays."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.inspection import namespace

__all__ = ["asnumpy", "issubdtype"]


class _Calls(threading.local):
    """The outermost of NumPy's functions that got an Array and that the thread is inside."""

    function: Any = None


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
    if _calls.function is not None:  # a function calls others of NumPy's
        return implementation(*args, **keywords)
    _calls.function = function
    try:
        result = implementation(*args, **keywords)
    finally:
        _calls.function = None
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if any(isinstance(part, np.ndarray) for part in parts):
        raise _refusal(function)
    return result


def refuse_ufunc(ufunc: np.ufunc, method: str, keywords: dict[str, Any]) -> NoReturn:
    """Refuse one of NumPy's elementwise functions, or a method of it, that got an Array.

    Raises
    ------
    TypeError
        Always; the message names cyrt's own function, if there is one.
    """
    if _calls.function is not None:
        raise _refusal(_calls.function)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if getattr(np, ufunc.__name__, None) is not ufunc:  # another library's
        raise _host_error(name, None)
    if any(isinstance(each, np.ndarray) for each in keywords.get("out", ())):
        raise TypeError(
            f"numpy.{name} writes into a NumPy array and got an Array, which lies on a device: "
            "convert the Array by x.numpy(), or the NumPy array by cyrt.asarray()"
        )
    raise _host_error(f"numpy.{name}", name)


def _refusal(function: Any) -> TypeError:
    name = function.__name__
    return _host_error(
        f"{function.__module__}.{name}", name if function.__module__ == "numpy" else None
    )


def _host_error(called: str, name: str | None) -> TypeError:
    """The error that tells what to call instead: cyrt's function of a name, where it has one."""
    own: Any = namespace()
    for part in name.split(".") if name else ():
        own = getattr(own, part, None)
    found = name is not None and own is not None
    lacks = "" if found or name is None else f"; cyrt has no {name}"
    return TypeError(
        f"{called} computes on the host and got an Array, which lies on a device{lacks}: "
        f"{f'call cyrt.{name}, or ' if found else ''}convert the Array by x.numpy()"
    )


def asnumpy(a: Any, /) -> np.ndarray:
    """Copy an Array to a NumPy array, or convert another object to one; CuPy's name."""
    return a.numpy() if isinstance(a, Array) else np.asarray(a)
