from cyrt.ndarray import Array

def linear(
    x: Array,
    w: Array,
    b: Array | None = ...,
    activation: str | None = ...,
    residual: Array | None = ...,
    norm: tuple[Array | None, float] | tuple[Array | None, Array | None, float] | None = ...,
) -> Array: ...
