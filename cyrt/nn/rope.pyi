from cyrt.ndarray import Array

def rope(
    x: Array,
    dims: int,
    traditional: bool = ...,
    base: float = ...,
    scale: float = ...,
    offset: int | Array = ...,
    freqs: Array | None = ...,
    *,
    out: Array | None = ...,
) -> Array: ...
def rope_vjp(
    g: Array,
    dims: int,
    traditional: bool = ...,
    base: float = ...,
    scale: float = ...,
    offset: int | Array = ...,
    freqs: Array | None = ...,
) -> Array: ...
