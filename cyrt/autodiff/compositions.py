"""Gradients through compositions of differentiable functions.

The gradient of a function of ``cyrt.nn`` is often one kernel, which has no gradient of its own.
Where a gradient is differentiated again, the function's composition takes the kernel's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cyrt.autodiff.transforms import vjp
from cyrt.ndarray import Array
from cyrt.ops.copy import astype


def through(
    composition: Callable[..., Array],
    g: Array,
    operands: tuple[Any, ...],
    wanted: tuple[bool, ...] | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of operands, from that of the result of a composition.

    Parameters
    ----------
    composition : callable
        A composition of differentiable functions.
    g : Array
    operands : tuple
        What the composition takes. It takes arrays of 16-bit types as float32.
    wanted : tuple of bool, optional
        The operands whose gradients are computed. Default: all arrays of floating-point types.

    Returns
    -------
    tuple of (Array or None)
        None for operands that are not wanted.
    """
    indices = [
        i
        for i, each in enumerate(operands)
        if isinstance(each, Array) and each.dtype.kind in "fc" and (wanted is None or wanted[i])
    ]

    def widened(*own: Any) -> Array:
        chosen = list(own)
        for i in indices:
            if own[i].dtype.itemsize == 2:
                chosen[i] = astype(own[i], "float32")
        return astype(composition(*chosen), g.dtype, copy=False)

    return tuple(gradients_at(indices, widened, operands, lambda: g))


def gradients_at(
    indices: Sequence[int],
    function: Callable[..., Any],
    operands: Sequence[Any],
    gradient: Callable[[], Any],
) -> list[Any]:
    """Return the gradients of the operands at some indices, and None for the others.

    Parameters
    ----------
    indices : sequence of int
    function : callable
        A composition of differentiable functions.
    operands : sequence
        What it takes.
    gradient : callable
        It returns the gradient of the function's result, and is called after the function.
    """

    def of_chosen(*chosen: Array) -> Any:
        own = list(operands)
        for i, each in zip(indices, chosen, strict=True):
            own[i] = each
        return function(*own)

    _, pull = vjp(of_chosen, *(operands[i] for i in indices))
    found: list[Any] = [None] * len(operands)
    for i, each in zip(indices, pull(gradient()), strict=True):
        found[i] = each
    return found
