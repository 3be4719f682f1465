"""Built-in kernels: bytes a second beside a plain device copy, and what dispatch costs the host.

Rates are bytes read plus bytes written, each once. Inputs are rotated so that the cache holds
nothing from one operation to the next.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy as np

import cyrt
from cyrt.bench import record_loops
from cyrt.bench.report import Row
from cyrt.dtypes import dtype
from cyrt.kernels.builtin import apply

NBYTES = 256 << 20
SETS = 4            # of operands: more than any cache holds
ROUNDS = 12
READY = """
extern "C" __global__ void ready(const float* a, const float* b, float* out, long n, long, long,
                                 long, long) {}
"""


class _Operands:
    """Buffers of random elements, some for each set."""

    def __init__(self, name: str, count: int, elements: int, rng: np.random.Generator) -> None:
        self.name, self.elements = name, elements
        each = dtype(name)
        host = rng.integers(-4, 5, elements).astype(each.numpy)
        self.host = host
        self.sets = []
        for _ in range(SETS):
            inputs = [cyrt.Buffer(host.nbytes) for _ in range(count)]
            for buffer in inputs:
                buffer.copy_from(host.view(np.uint8))
            self.sets.append(inputs)

    def outputs(self, name: str) -> list[cyrt.Buffer]:
        return [cyrt.Buffer(self.elements * dtype(name).itemsize) for _ in range(SETS)]


def _check(out: cyrt.Buffer, name: str, wanted: np.ndarray, tolerance: float) -> None:
    found = np.empty(out.nbytes, np.uint8)
    out.copy_to(found)
    found = found.view(dtype(name).numpy)
    np.testing.assert_allclose(found.astype(np.float32), wanted.ravel().astype(np.float32),
                               rtol=tolerance)


def _time(work: Callable[[int], None]) -> float:
    """Median µs that one of the operations takes the GPU; `work` records that of a set."""
    times = []
    begin, end = cyrt.Event(), cyrt.Event()
    for _ in range(ROUNDS):
        begin.record()
        for each in range(SETS):
            work(each)
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / SETS)
    return statistics.median(times)


def _copy_rate(nbytes: int) -> float:
    """GB/s of a plain device copy that reads and writes as many bytes together."""
    half = nbytes // 2
    pairs = [(cyrt.Buffer(half), cyrt.Buffer(half)) for _ in range(SETS)]
    for source, _ in pairs:
        source.fill(1)

    def work(each: int) -> None:
        source, target = pairs[each]
        target.copy_from(source)

    return nbytes / _time(work) / 1e3


def _rates(nbytes: int) -> list[Row]:
    rng = np.random.default_rng(11)
    rows = []
    plain: dict[int, float] = {}

    def case(what: str, op: str, operands: _Operands, target: str, wanted: np.ndarray,
             shape: Sequence[int], strides: Sequence[Sequence[int] | None] | None = None,
             tolerance: float = 0) -> None:
        outputs = operands.outputs(target)
        outputs = [out[:wanted.size * dtype(target).itemsize] for out in outputs]

        def work(each: int) -> None:
            apply(op, operands.sets[each], outputs[each], operands.name, shape, strides)

        for each in range(SETS):
            work(each)
        _check(outputs[-1], target, wanted, tolerance)
        took = _time(work)
        moved = wanted.size * (len(operands.sets[0]) * dtype(operands.name).itemsize
                               + dtype(target).itemsize)
        if moved not in plain:
            plain[moved] = _copy_rate(moved)
        rate = moved / took / 1e3
        rows.append(Row("other", what, f"{operands.name}, {moved / 1e6:,.0f} MB moved", None, took,
                        f"{rate:,.0f} GB/s; {100 * rate / plain[moved]:.0f} % of a plain copy's "
                        f"{plain[moved]:,.0f}"))

    for name, other in (("float32", "bfloat16"), ("bfloat16", "float32")):
        size = dtype(name).itemsize
        n = nbytes // size
        tolerance = 2e-6 if name == "float32" else 1e-2
        two = _Operands(name, 2, n, rng)
        x = two.host.astype(np.float32)
        case("add", "add", two, name, x + x, (n,))
        one = _Operands(name, 1, n, rng)
        x = one.host.astype(np.float32)
        case("exp", "exp", one, name, np.exp(x), (n,), tolerance=tolerance)
        case(f"to {other}", f"to_{other}", one, other, x, (n,))
        side = int(n**0.5) // 64 * 64
        square = x[:side * side].reshape(side, side)
        case("transposing copy", "copy", one, name, square.T, (side, side), (None, (1, side)))
        middle = n // 64 // 96
        cube = x[:64 * middle * 96].reshape(64, middle, 96)
        case("strided 3-d copy, rows of 64 of 96", "copy", one, name, cube[:, :, :64],
             (64, middle, 64), (None, (middle * 96, 96, 1)))
        case("strided 3-d copy, every second of all", "copy", one, name,
             cube[::2, :middle // 2 * 2:2, ::2], (32, middle // 2, 48),
             (None, (2 * middle * 96, 192, 2)))
    return rows


def _host() -> list[Row]:
    """Dispatch and packing, by difference, in a loop of C that never commits."""
    ready = cyrt.Kernel(READY, "ready")
    encoder = cyrt.CommandEncoder(max_ops=100_000, max_mb=100_000)
    n, rounds = 1 << 14, 1000
    a, b, out = (cyrt.Buffer(4 * n) for _ in range(3))
    a.fill(0)
    b.fill(0)
    cyrt.synchronize()
    chosen, packed = [], []
    for _ in range(20):
        chosen.append(record_loops.record_binary(encoder, "add", "float32", out, a, b, n, rounds))
        encoder.synchronize()
        packed.append(record_loops.record_ready(encoder, ready, out, a, b, rounds))
        encoder.synchronize()
    whole, ready_made = (1e6 * min(times) / rounds for times in (chosen, packed))
    return [Row("other", "dispatch", "choose and pack a contiguous add", whole - ready_made,
                note=f"{whole:.3f} with recording it")]


def run(_rounds: int) -> list[Row]:
    """Rates on a GPU; on the emulated device only what the host pays."""
    device = cyrt.Device()
    if device.emulated:
        _rates(1 << 18)         # only checked: its times say nothing of a GPU
        return _host()
    return _host() + _rates(NBYTES)
