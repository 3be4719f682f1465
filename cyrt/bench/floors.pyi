from cyrt.kernels import Kernel
from cyrt.runtime.memory import Buffer

def launch_loop(
    kernel: Kernel, grid: int, block: int, x: Buffer, b: Buffer, y: Buffer, n: int, rounds: int
) -> float: ...
