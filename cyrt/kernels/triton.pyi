from collections.abc import Callable
from typing import Any, NoReturn, SupportsIndex, final

from cyrt.kernels.kernel import Kernel
from cyrt.kernels.triton_code import Compiled, Function

_Memory = list[Any] | tuple[Any, ...]
_Size = SupportsIndex | tuple[SupportsIndex, ...]

@final
class TritonLaunch:
    def __call__(
        self, *args: Any, reads: _Memory | None = None, writes: _Memory | None = None
    ) -> None: ...

@final
class TritonKernel:
    name: str
    def __init__(self, source: Function | Compiled) -> None: ...
    @property
    def signature(self) -> str: ...
    @property
    def variants(self) -> list[Kernel]: ...
    def __getitem__(self, grid: _Size | Callable[[dict[str, Any]], _Size]) -> TritonLaunch: ...
    def __call__(self, *args: Any, **keywords: Any) -> NoReturn: ...
