from cyrt.ndarray import Array

MAX_WIDTH: int
MAX_KEYS: int

def attend(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    causal: bool,
    scale: float,
    sinks: Array | None,
) -> Array: ...
def gradients(
    g: Array, q: Array, k: Array, v: Array, causal: bool, scale: float
) -> tuple[Array, Array, Array]: ...
