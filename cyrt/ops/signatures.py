"""The signatures of elementwise functions for type checkers.

All of these functions are objects of the class ``Elementwise``, which does not have the names of
their operands.
"""

from __future__ import annotations

from typing import Any, Protocol

from cyrt.ndarray import Array


class Unary(Protocol):
    """An elementwise function of one operand."""

    def __call__(
        self,
        x: Any,
        /,
        out: Array | None = None,
        *,
        where: Array | bool | None = None,
        dtype: Any = None,
    ) -> Array: ...

    def __getattr__(self, name: str) -> Any: ...


class Binary(Protocol):
    """An elementwise function of two operands; some have outer, reduce, reduceat, accumulate
    and at."""

    def __call__(
        self,
        x1: Any,
        x2: Any,
        /,
        out: Array | None = None,
        *,
        where: Array | bool | None = None,
        dtype: Any = None,
    ) -> Array: ...

    def __getattr__(self, name: str) -> Any: ...
