from cyrt.ndarray import Array

def sort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Array: ...
def argsort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Array: ...
