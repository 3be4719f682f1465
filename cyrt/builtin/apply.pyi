from collections.abc import Sequence
from typing import SupportsIndex

from cyrt.runtime.memory import Buffer

_Operand = Buffer | tuple[Buffer, int]

def apply(
    op: str,
    inputs: Sequence[_Operand | complex | bool],
    output: _Operand,
    dtype: str,
    shape: SupportsIndex | Sequence[int],
    strides: Sequence[Sequence[int] | None] | None = None,
) -> None: ...
