from cyrt.kernels import Kernel
from cyrt.runtime.memory import Buffer

def launch_loop(
    kernel: Kernel, grid: int, block: int, x: Buffer, b: Buffer, y: Buffer, n: int, rounds: int
) -> float: ...
def replay(
    kernel: Kernel, grid: int, block: int, x: Buffer, b: Buffer, y: Buffer, n: int, nodes: int,
    rounds: int,
) -> tuple[float, float]: ...
