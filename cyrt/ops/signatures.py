"""The signatures of elementwise functions for type checkers, and their docstrings.

All of these functions are objects of the class ``Elementwise``, which does not have the names of
their operands.
"""

from __future__ import annotations

from typing import Any, Protocol

from cyrt.ndarray import Array

_TEXT = """{summary}

Parameters
----------
{operands}
    {kinds}. If no operand is an array, the result is a NumPy number.
out : Array, optional
    The array that receives the result, cast to the array's type within its kind; it may be an
    operand.
where : Array or bool, optional
    Type bool: the elements of `out` that receive the result; others keep their values. Default:
    all.
dtype : DType, optional
    Type of the result, to which operands are cast first, within their kind.

Returns
-------
Array
    {result}; or `out`.

Raises
------
TypeError
    An operand has an unsupported type or is a NumPy array, or the types do not promote.
ValueError
    The shapes do not broadcast, the arrays are on two devices, or `out` has another shape.

Notes
-----
{notes}
"""
_EXAMPLE = """
Examples
--------
>>> import cyrt
>>> {}
{}
"""


def documented(
    summary: str,
    operands: str,
    kinds: str,
    result: str,
    notes: str,
    example: tuple[str, str] | None = None,
) -> str:
    """Return a docstring; the example is an expression and what it gives."""
    text = _TEXT.format(summary=summary, operands=operands, kinds=kinds, result=result, notes=notes)
    return text + _EXAMPLE.format(*example) if example else text


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
