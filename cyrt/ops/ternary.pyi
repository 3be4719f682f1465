from typing import Any, overload

from cyrt.ndarray import Array

@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x1: Any, x2: Any, /) -> Array: ...
def clip(
    x: Any,
    /,
    min: Any = None,
    max: Any = None,
    out: Array | None = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
) -> Array: ...
def ternary(name: str, x1: Any, x2: Any, x3: Any, out: Array | None = None) -> Array: ...
