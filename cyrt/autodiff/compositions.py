"""Gradients through compositions of differentiable functions.

The gradient of a function of ``cyrt.nn`` is often one kernel, which has no gradient of its own.
Where a gradient is differentiated again, the function's composition takes the kernel's place.
"""

from __future__ import annotations

from collections.abc import Callable
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
    places = [
        i
        for i, each in enumerate(operands)
        if isinstance(each, Array) and each.dtype.kind in "fc" and (wanted is None or wanted[i])
    ]

    def of_wanted(*chosen: Array) -> Array:
        own = list(operands)
        for place, each in zip(places, chosen, strict=True):
            narrow = each.dtype.itemsize == 2
            own[place] = astype(each, "float32") if narrow else each
        return astype(composition(*own), g.dtype, copy=False)

    _, pull = vjp(of_wanted, *(operands[place] for place in places))
    found: list[Any] = [None] * len(operands)
    for place, each in zip(places, pull(g), strict=True):
        found[place] = each
    return tuple(found)
