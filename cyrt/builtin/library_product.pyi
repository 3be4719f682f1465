# The rest is for matmul.pyx: see library_product.pxd.
WORKSPACE: dict[bool, int]

def decide(ordinal: int, served: bool | None = None) -> None: ...
