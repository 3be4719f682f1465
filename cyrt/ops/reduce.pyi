from collections.abc import Sequence
from typing import Any

from cyrt.ndarray import Array

_Axes = int | Sequence[int] | None

def sum(
    x: Array,
    /,
    axis: _Axes = ...,
    dtype: Any = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    initial: complex | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def prod(
    x: Array,
    /,
    axis: _Axes = ...,
    dtype: Any = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    initial: complex | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def mean(
    x: Array,
    /,
    axis: _Axes = ...,
    dtype: Any = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    *,
    where: Array | bool | None = ...,
) -> Array: ...
def var(
    x: Array,
    /,
    axis: _Axes = ...,
    dtype: Any = ...,
    out: Array | None = ...,
    ddof: float | None = ...,
    keepdims: bool = ...,
    *,
    correction: float | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def std(
    x: Array,
    /,
    axis: _Axes = ...,
    dtype: Any = ...,
    out: Array | None = ...,
    ddof: float | None = ...,
    keepdims: bool = ...,
    *,
    correction: float | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def max(
    x: Array,
    /,
    axis: _Axes = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    initial: float | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def min(
    x: Array,
    /,
    axis: _Axes = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    initial: float | None = ...,
    where: Array | bool | None = ...,
) -> Array: ...
def any(
    x: Array,
    /,
    axis: _Axes = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    *,
    where: Array | bool | None = ...,
) -> Array: ...
def all(
    x: Array,
    /,
    axis: _Axes = ...,
    out: Array | None = ...,
    keepdims: bool = ...,
    *,
    where: Array | bool | None = ...,
) -> Array: ...
def argmax(
    x: Array, /, axis: int | None = ..., out: Array | None = ..., *, keepdims: bool = ...
) -> Array: ...
def argmin(
    x: Array, /, axis: int | None = ..., out: Array | None = ..., *, keepdims: bool = ...
) -> Array: ...
def count_nonzero(x: Array, /, axis: _Axes = ..., *, keepdims: bool = ...) -> Array: ...
def logsumexp(
    x: Array, /, axis: _Axes = ..., *, keepdims: bool = ..., out: Array | None = ...
) -> Array: ...
def correction_of(ddof: float | None, correction: float | None) -> float: ...
