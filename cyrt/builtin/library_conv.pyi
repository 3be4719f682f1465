# The rest is for conv.pyx: see library_conv.pxd.
LEAST: int
MOST_WORKSPACE: int
MOST_SPAN: int

def decide(ordinal: int, served: bool | None = None, from_: float = ...) -> None: ...
