from typing import Any

from cyrt.ndarray import Array

MAX_ROWS: int
MAX_WIDTH: int
MAX_KEYS: int

def attend(
    q: Array,
    keys: Array,
    values: Array,
    k: Array | None,
    v: Array | None,
    append: bool,
    position: Array | int,
    rope: dict[str, Any] | None,
    scale: float,
    sinks: Array | None,
) -> Array: ...
