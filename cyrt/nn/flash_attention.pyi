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
