"""Interoperability with NumPy: its functions called with Arrays, and conversion to its arrays."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.inspection import namespace

__all__ = ["asnumpy", "get_array_module"]

# Values of NumPy's keywords that ask for what cyrt's functions, which lack the keywords, always do.
_ALWAYS_SO = {"order": ("C", "K", "A"), "casting": ("same_kind",), "subok": (True,)}


def call_function(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call cyrt's function that has the name of a NumPy function, which got an Array (NEP 18).

    Raises
    ------
    TypeError
        cyrt has no such function; the errors of that function.
    """
    called = f"{function.__module__}.{function.__name__}"
    own = _own_function(called.removeprefix("numpy."), called)
    return _call(own, called, args, keywords, _parameters(function))


def call_ufunc(
    ufunc: np.ufunc, method: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call cyrt's function that has the name of a NumPy ufunc, which got an Array, or call a method
    of it (NEP 13).

    Raises
    ------
    TypeError
        cyrt has no such function, or the result would be written into a NumPy array; the errors of
        that function.
    """
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if getattr(np, ufunc.__name__, None) is not ufunc:  # another library's
        raise _no_function(name)
    out = keywords.pop("out", ())
    if any(isinstance(each, np.ndarray) for each in out):
        raise TypeError(
            f"numpy.{name} writes into a NumPy array and got an Array, which lies on a device: "
            "convert the Array by x.numpy(), or the NumPy array by cyrt.asarray()"
        )
    if len(out) == 1:
        keywords["out"] = out[0]
    elif out:
        raise TypeError(f"numpy.{name}: out: cyrt.{name} has no such argument")
    return _call(_own_function(name, f"numpy.{name}"), f"numpy.{name}", operands, keywords, {})


def _call(
    own: Any,
    called: str,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    numpys: Mapping[str, inspect.Parameter],
) -> Any:
    """Call cyrt's function of a name with the arguments of NumPy's, which has the parameters
    `numpys`."""
    keywords = _without_what_is_always_so(keywords)
    parameters = _parameters(own)
    own_keywords = [
        name
        for name, each in parameters.items()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if parameters and not any(each.kind == each.VAR_KEYWORD for each in parameters.values()):
        for name in list(numpys)[len(args) :]:
            if name not in keywords or name in own_keywords:
                break
            args = (*args, keywords.pop(name))  # NumPy's name of an argument that has none here
        for name in keywords:
            if name not in own_keywords:
                raise TypeError(
                    f"{called}: {name}: {called.replace('numpy', 'cyrt', 1)} has no such argument: "
                    "convert the Array by x.numpy()"
                )
    return own(*args, **keywords)


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return a function's parameters; none for a function of C that does not tell them."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def _without_what_is_always_so(keywords: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in keywords.items()
        if name not in _ALWAYS_SO or value not in _ALWAYS_SO[name]
    }


def _own_function(name: str, called: str) -> Any:
    """Return cyrt's function of a name, which may have dots."""
    for module in (namespace(), namespace().numpy, namespace().linalg):
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    raise _no_function(called)


def _no_function(called: str) -> TypeError:
    return TypeError(
        f"{called} got an Array, which lies on a device, and cyrt has no such function: convert "
        "the Array by x.numpy()"
    )


def asnumpy(a: Any, /) -> np.ndarray:
    """Copy an Array to a NumPy array, or convert another object to one; the name is CuPy's.

    Parameters
    ----------
    a : Array or another input of :func:`numpy.asarray`

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import cyrt
    >>> cyrt.asnumpy(cyrt.arange(3))
    array([0, 1, 2])
    """
    return a.numpy() if isinstance(a, Array) else np.asarray(a)


def get_array_module(*args: Any) -> ModuleType:
    """Return :mod:`cyrt` if one of the arguments is an Array, otherwise :mod:`numpy`.

    A function that computes with the returned module accepts NumPy's arrays and cyrt's. CuPy has a
    function of this name.

    Parameters
    ----------
    *args : object
        Arrays, numbers or other arguments of the function.

    Returns
    -------
    module

    Examples
    --------
    >>> import cyrt
    >>> xp = cyrt.get_array_module(cyrt.zeros(3), 1.0)
    >>> xp.__name__
    'cyrt'
    """
    return namespace() if any(isinstance(each, Array) for each in args) else np
