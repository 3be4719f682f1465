from collections.abc import Sequence
from typing import Literal

from cyrt.ndarray import Array

_Numbers = int | Sequence[int]
_Padding = int | Sequence[int] | Sequence[Sequence[int]]
_Activation = Literal["relu", "gelu", "gelu_tanh", "silu"] | None

def conv_general(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    input_dilation: _Numbers = ...,
    groups: int = ...,
    flip: bool = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv1d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv2d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv3d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv_transpose1d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    output_padding: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv_transpose2d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    output_padding: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv_transpose3d(
    x: Array,
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    output_padding: _Numbers = ...,
    groups: int = ...,
    bias: Array | None = ...,
    activation: _Activation = ...,
) -> Array: ...
def conv_input_vjp(
    g: Array,
    input_shape: Sequence[int],
    weight: Array,
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    input_dilation: _Numbers = ...,
    groups: int = ...,
    flip: bool = ...,
) -> Array: ...
def conv_weight_vjp(
    g: Array,
    x: Array,
    weight_shape: Sequence[int],
    stride: _Numbers = ...,
    padding: _Padding = ...,
    dilation: _Numbers = ...,
    input_dilation: _Numbers = ...,
    groups: int = ...,
    flip: bool = ...,
) -> Array: ...
