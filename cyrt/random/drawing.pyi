from collections.abc import Sequence
from typing import SupportsIndex

from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.runtime.device import Device

def draw(
    op: str,
    key: int,
    words: Sequence[int | float],
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DType,
    device: Device | SupportsIndex | str | None,
    *,
    kernel: str | None = None,
    variant: int = 0,
) -> Array: ...
def draw_with(
    op: str,
    key: int,
    parameters: Sequence[float | Array],
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DType,
    device: Device | SupportsIndex | str | None,
) -> Array: ...
