"""The state of optimizers."""

from __future__ import annotations

from typing import NamedTuple

from cyrt.ndarray import Array

__all__ = ["State"]


class State(NamedTuple):
    """The state of an optimizer for the parameters of one element type.

    A moment has the elements of all parameters, one parameter after the other; those of a dict are
    in the order of the texts of their keys, not in that of its entries. Each begins at a tile,
    which is 4,096 bytes of the moment: 1,024 elements of float32 or 512 of float64. So the arrays
    for equal nests of parameters have equal lengths, and can be saved and restored.

    Attributes
    ----------
    step : Array
        The number of steps that were done, int32: one number for each tile, all of them equal.
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
