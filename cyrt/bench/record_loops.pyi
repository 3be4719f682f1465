from cyrt.graph.template import Template
from cyrt.kernels.encoder import CommandEncoder
from cyrt.kernels.kernel import Kernel
from cyrt.runtime.memory import Buffer

def record_binary(
    encoder: CommandEncoder,
    op: str,
    dtype: str,
    out: Buffer,
    a: Buffer,
    b: Buffer,
    n: int,
    rounds: int,
) -> float: ...
def record_ready(
    encoder: CommandEncoder, kernel: Kernel, out: Buffer, a: Buffer, b: Buffer, rounds: int
) -> float: ...
def record_matmul(
    encoder: CommandEncoder,
    dtype: str,
    out: Buffer,
    a: Buffer,
    b: Buffer,
    m: int,
    k: int,
    n: int,
    rounds: int,
) -> float: ...
def record_repointed(
    encoder: CommandEncoder, template: Template, out: Buffer, a: Buffer, b: Buffer, rounds: int
) -> float: ...
