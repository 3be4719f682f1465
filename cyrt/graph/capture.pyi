# Functions of template.pyx only: see capture.pxd.
from collections.abc import Sequence

class Opaque(Exception):
    undeclared: bool

    def __init__(self, message: str, undeclared: bool = False) -> None: ...

class CapturedKernel:
    name: str
    params: bytes
    sources: tuple[int, ...]

def compare(one: Sequence[CapturedKernel], other: Sequence[CapturedKernel]) -> None: ...
def explain(
    found: Sequence[Sequence[CapturedKernel]],
    masks: Sequence[bytes],
    addresses: Sequence[tuple[int, ...]],
) -> list[list[tuple[int, int, int]]]: ...
def check_memory(
    kernel: CapturedKernel, mask: bytes, words: Sequence[tuple[int, int, int]], harmless: set[int]
) -> None: ...
