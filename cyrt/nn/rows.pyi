from cyrt.ndarray import Array

# The other functions are C-level: see rows.pxd.
def check_device(name: str, argument: str, other: Array | None, first: str, x: Array) -> int: ...
