from cyrt.ndarray import Array

def linear(
    x: Array,
    weight: Array,
    bias: Array | None = ...,
    activation: str | None = ...,
    residual: Array | None = ...,
    *,
    rms_norm: tuple[Array | None, float] | None = ...,
    layer_norm: tuple[Array | None, Array | None, float] | None = ...,
) -> Array: ...
def linear_vjp(
    g: Array, x: Array, weight: Array, bias: Array | None = ..., activation: str | None = ...
) -> tuple[Array, Array, Array | None]: ...
def gradients(
    g: Array, x: Array, weight: Array, bias: Array | None, wanted: tuple[bool, ...]
) -> tuple[Array | None, Array | None, Array | None]: ...
