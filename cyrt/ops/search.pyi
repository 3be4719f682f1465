from collections.abc import Sequence
from typing import Any, Literal

from cyrt.ndarray import Array

def searchsorted(
    x1: Array,
    /,
    v: Array | float | Sequence[Any],
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array: ...
def contains(x1: Array, x2: Array, invert: bool) -> Array: ...
def nonzero(x: Array, /) -> tuple[Array, ...]: ...
def flatnonzero(x: Array) -> Array: ...
