import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex, final

from cyrt.kernels.module import Module
from cyrt.kernels.triton import TritonKernel

_Memory = list[Any] | tuple[Any, ...]
_Size = SupportsIndex | tuple[SupportsIndex, ...]

@final
class Launch:
    def __call__(
        self,
        *args: Any,
        reads: _Memory | None = None,
        writes: _Memory | None = None,
        cluster: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    ) -> None: ...

class Kernel:
    module: Module
    name: str
    def __init__(
        self,
        code: str | bytes | os.PathLike[str],
        name: str,
        *,
        signature: str | None = None,
        options: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        define: Mapping[str, object] | None = None,
        pdl: bool = False,
        strided: bool = False,
    ) -> None: ...
    @staticmethod
    def _of(module: Module, name: str, hidden: int = 0, cooperative: bool = False) -> Kernel: ...
    @staticmethod
    def from_triton(
        function: Any,
        *,
        signature: Mapping[str, str] | str | None = None,
        constants: Mapping[str, Any] | None = None,
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
    ) -> TritonKernel: ...
    @property
    def signature(self) -> str: ...
    def __getitem__(
        self, config: tuple[_Size, _Size] | tuple[_Size, _Size, SupportsIndex]
    ) -> Launch: ...
    def __call__(self, *args: Any, **keywords: Any) -> NoReturn: ...
    @property
    def registers(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def local_bytes(self) -> int: ...
    @property
    def max_threads(self) -> int: ...
    def blocks_per_multiprocessor(self, block: int, smem: int = 0) -> int: ...
    def suggest(self, n: SupportsIndex, smem: SupportsIndex = 0) -> tuple[int, int]: ...
    def for_each(
        self,
        n: SupportsIndex,
        *args: Any,
        smem: SupportsIndex = 0,
        reads: _Memory | None = None,
        writes: _Memory | None = None,
    ) -> None: ...
    def tune(
        self,
        n: SupportsIndex,
        args: Sequence[Any],
        blocks: Iterable[SupportsIndex] = (32, 64, 128, 256, 512, 1024),
        *,
        smem: SupportsIndex = 0,
        reads: _Memory | None = None,
        writes: _Memory | None = None,
    ) -> int: ...
