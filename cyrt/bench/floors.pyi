from cyrt.kernels import Kernel
from cyrt.runtime.memory import Buffer

class Floor:
    def __init__(
        self,
        kernel: Kernel,
        grid: int,
        block: int,
        x: Buffer,
        b: Buffer,
        n: int,
        other: Kernel | None = None,
    ) -> None: ...
    @property
    def programmatic(self) -> bool: ...
    def launch(self, count: int) -> tuple[float, float]: ...
    def replay(self, nodes: int, rounds: int) -> tuple[float, float]: ...
    def cold(self, nodes: int) -> tuple[float, float, float, float]: ...
    def update(self, nodes: int) -> tuple[float, float]: ...
