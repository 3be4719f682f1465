from typing import Any, final

from cyrt.ndarray import Array

@final
class Elementwise:
    __name__: str
    __qualname__: str
    __doc__: str
    operation: int
    def __init__(
        self, name: str, operands: tuple[str, ...], doc: str, module: str = "cyrt"
    ) -> None: ...
    def __call__(
        self,
        *operands: Any,
        out: Array | None = None,
        where: Array | bool | None = None,
        dtype: Any = None,
    ) -> Array: ...
    def __getattr__(self, name: str) -> Any: ...  # Some have outer, reduce, at ...

def chosen(condition: Any, x1: Any, x2: Any, code: int, out: Array | None) -> Array: ...
