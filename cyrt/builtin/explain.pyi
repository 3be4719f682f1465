from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

_Shape = SupportsIndex | Sequence[int]

@dataclass(frozen=True)
class Explanation:
    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str
    kernels: tuple[tuple[str, int, tuple[int, int]], ...]

def explain(
    op: str,
    dtype: str,
    *shapes: _Shape,
    strides: Sequence[Sequence[int] | None] | Sequence[int] | None = None,
    axis: int | Sequence[int] | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | Sequence[Sequence[int]] = 0,
    dilation: int | Sequence[int] = 1,
    input_dilation: int | Sequence[int] = 1,
    groups: int = 1,
    flip: bool = False,
    activation: str | None = None,
    rms_norm: bool = False,
    layer_norm: bool = False,
) -> Explanation | None: ...
def expect_shapes(
    op: str, shapes: Sequence[tuple[int, ...]], *names: str
) -> Sequence[tuple[int, ...]]: ...
def expect_axis(op: str, axis: int, shape: tuple[int, ...]) -> int: ...
def expect_strides(op: str, strides: Sequence[int] | None) -> Sequence[int] | None: ...
