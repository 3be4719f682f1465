from typing import Any

from cyrt.dtypes import DType
from cyrt.ndarray import Array
from cyrt.runtime.device import Device

def adapt(
    gradient: Any, shape: tuple[int, ...], dtype: DType, broadcast: bool, name: str
) -> Array: ...
def own(
    gradient: Array | None, shape: tuple[int, ...], dtype: DType, device: Device
) -> Array: ...
def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array: ...
def unread(g: Array, shape: tuple[int, ...], dtype: DType) -> Array: ...
