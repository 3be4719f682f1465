from collections.abc import Sequence

from cyrt.ndarray import Array

_Numbers = int | Sequence[int]
_Padding = int | Sequence[int] | Sequence[Sequence[int]]

def max_pool(
    x: Array, kernel_size: _Numbers, stride: _Numbers | None = ..., padding: _Padding = ...
) -> Array: ...
def avg_pool(
    x: Array, kernel_size: _Numbers, stride: _Numbers | None = ..., padding: _Padding = ...
) -> Array: ...
def max_pool_vjp(
    g: Array,
    x: Array,
    kernel_size: _Numbers,
    stride: _Numbers | None = ...,
    padding: _Padding = ...,
) -> Array: ...
def avg_pool_vjp(
    g: Array,
    x: Array,
    kernel_size: _Numbers,
    stride: _Numbers | None = ...,
    padding: _Padding = ...,
) -> Array: ...
