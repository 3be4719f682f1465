from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from cyrt.runtime.memory import Buffer

_Shape = SupportsIndex | Sequence[int]
_Strides = Sequence[Sequence[int] | None] | None
_Operand = Buffer | tuple[Buffer, int]

@dataclass(frozen=True)
class Explanation:
    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str

class Arguments: ...

def apply(
    op: str,
    inputs: Sequence[_Operand | complex | bool],
    output: _Operand,
    dtype: str,
    shape: _Shape,
    strides: _Strides = None,
) -> None: ...
def explain(op: str, dtype: str, shape: _Shape, strides: _Strides = None) -> Explanation | None: ...
def explain_reduction(
    op: str,
    dtype: str,
    shape: Sequence[int],
    axes: Sequence[int],
    strides: Sequence[int] | None = ...,
) -> list[tuple[str, int, tuple[int, int]]]: ...
