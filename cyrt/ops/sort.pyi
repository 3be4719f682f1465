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
