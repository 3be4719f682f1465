from cyrt.ndarray import Array

def layer_norm(
    x: Array,
    weight: Array | None = ...,
    bias: Array | None = ...,
    eps: float = ...,
    *,
    out: Array | None = ...,
) -> Array: ...
def layer_norm_vjp(
    g: Array,
    x: Array,
    weight: Array | None = ...,
    bias: Array | None = ...,
    eps: float = ...,
    *,
    donate: bool = ...,
) -> tuple[Array, Array | None, Array | None]: ...
def rms_norm(
    x: Array, weight: Array | None = ..., eps: float = ..., *, out: Array | None = ...
) -> Array: ...
def rms_norm_vjp(
    g: Array, x: Array, weight: Array | None = ..., eps: float = ..., *, donate: bool = ...
) -> tuple[Array, Array | None]: ...
