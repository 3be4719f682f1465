from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from cyrt.dtypes import DType

@dataclass(frozen=True)
class Example:
    shape: SupportsIndex | Sequence[int]
    dtype: DType | str = "float32"
    strides: SupportsIndex | Sequence[int] | None = None

@dataclass(frozen=True)
class Explanation:
    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str
    kernels: tuple[tuple[str, int, tuple[int, int]], ...]
    complete: bool

def explain(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Explanation | None: ...
def is_explained() -> bool: ...
