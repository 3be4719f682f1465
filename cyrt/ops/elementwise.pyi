from typing import Any, overload

from cyrt.ndarray import Array

class Elementwise:
    __name__: str
    __qualname__: str
    __doc__: str
    def __init__(self, name: str, operands: tuple[str, ...], doc: str) -> None: ...
    def __call__(self, *operands: Any, out: Array | None = None,
                 where: Array | None = None) -> Array: ...
    def __getattr__(self, name: str) -> Any: ...    # of some: outer, reduce, accumulate, at

@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Array, x1: Any, x2: Any, /) -> Array: ...
def clip(
    x: Array, /, min: Any = None, max: Any = None, out: Array | None = None, *,
    a_min: Any = None, a_max: Any = None,
) -> Array: ...
