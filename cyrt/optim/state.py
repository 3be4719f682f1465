"""The state of optimizers."""

from __future__ import annotations

from typing import NamedTuple

from cyrt.ndarray import Array

__all__ = ["State"]


class State(NamedTuple):
    """What an optimizer remembers of the parameters of one element type.

    The parameters lie one behind the other, each from the start of a tile: 4,096 bytes of a moment,
    that is 1,024 elements of float32 or 512 of float64. So the arrays of equal nests of parameters
    have equal lengths, and can be saved and restored.

    Attributes
    ----------
    step : Array
        The steps done, int32, one number for each tile; all of them are equal.
    m, v : Array or None
        The moments of all elements, float32, or float64 for parameters of float64; None if the
        optimizer has no such moment.

    Examples
    --------
    >>> import cyrt
    >>> w = cyrt.ones(3)
    >>> optimizer = cyrt.optim.sgd(0.1, momentum=0.9)
    >>> _, state = optimizer.update(cyrt.full(3, 2.0), optimizer.init(w), w)
    >>> state["float32"].step, state["float32"].m[:3], state["float32"].v
    (Array([1], dtype=int32), Array([2., 2., 2.], dtype=float32), None)
    """

    step: Array
    m: Array | None
    v: Array | None
