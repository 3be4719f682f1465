from cyrt.ndarray import Array

def sort(
    x: Array,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Array: ...
def argsort(
    x: Array,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Array: ...
def top_k(x: Array, k: int, /, axis: int | None = -1) -> tuple[Array, Array]: ...
