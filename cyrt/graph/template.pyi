from collections.abc import Callable, Collection, Sequence
from typing import Any

from cyrt.runtime.memory import Memory

class TemplateKernel:
    name: str

class Template:
    kernels: list[TemplateKernel] | None
    num_tokens: int
    call: Callable[[int, tuple[int, ...]], Any] | None
    reason: str | None
    refused: bool
    workspace: int
    @property
    def names(self) -> list[str]: ...

def count_templates() -> int: ...
def forget() -> None: ...
def record_call(
    key: Sequence[int],
    call: Callable[[int, tuple[int, ...]], Any],
    buffers: Sequence[Memory],
    writes: Collection[int],
    *,
    workspace: int = 0,
) -> Template: ...
