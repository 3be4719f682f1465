from collections.abc import Sequence
from typing import Literal, SupportsIndex

from cyrt.ndarray import Array

_Norm = Literal["backward", "ortho", "forward"]

def fft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def ifft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def rfft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def irfft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def hfft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def ihfft(
    x: Array,
    /,
    n: SupportsIndex | None = None,
    axis: SupportsIndex = -1,
    norm: _Norm | None = "backward",
) -> Array: ...
def fftn(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: _Norm | None = "backward",
) -> Array: ...
def ifftn(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: _Norm | None = "backward",
) -> Array: ...
def rfftn(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: _Norm | None = "backward",
) -> Array: ...
def irfftn(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: _Norm | None = "backward",
) -> Array: ...
def fft2(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: _Norm | None = "backward",
) -> Array: ...
def ifft2(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: _Norm | None = "backward",
) -> Array: ...
def rfft2(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: _Norm | None = "backward",
) -> Array: ...
def irfft2(
    x: Array,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: _Norm | None = "backward",
) -> Array: ...
