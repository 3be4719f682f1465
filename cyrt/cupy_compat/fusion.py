"""``fuse``: a decorator that leaves functions as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def fuse(function: _Function, /, *, kernel_name: str | None = None) -> _Function: ...
@overload
def fuse(
    function: None = None, /, *, kernel_name: str | None = None
) -> Callable[[_Function], _Function]: ...
def fuse(function: Any = None, /, *, kernel_name: str | None = None) -> Any:
    """Return a function as it is: its operations run one by one, in one batch.

    Parameters
    ----------
    function : callable, optional
        The function; without it, `fuse` returns the decorator, as in ``@fuse()``.
    kernel_name : str, optional
        It has no effect, because no kernel is made.

    Returns
    -------
    callable
        The function itself, or the decorator.

    Raises
    ------
    TypeError
        The argument is not callable.
    """
    if function is None:
        return fuse
    if not callable(function):
        raise TypeError(f"fuse: expected a function, got {type(function).__name__}")
    return function
