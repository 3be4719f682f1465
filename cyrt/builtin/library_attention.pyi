# The rest is for flash_attention.pyx: see library_attention.pxd.
LEAST: int
PATIENCE: int
COUNTED: int
MOST_WORKSPACE: int
MOST_SPAN: int

def decide(
    ordinal: int, served: bool | None = None, from_: float = ..., behind: float = ...
) -> None: ...
