"""The floors: the same chain of kernels launched by loops in C."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from cyrt.bench.floors import Floor
from cyrt.bench.measurement import Bench
from cyrt.bench.program import CHAIN, CHAINS, N, buffer, expect
from cyrt.bench.result import BenchResult

NO_PROGRAMMATIC = (
    "no programmatic edges here: they need compute capability 9.0, CUDA 12.3 and CYRT_PDL=1"
)


def _launch(chain: Floor, rounds: int) -> tuple[BenchResult, int]:
    count = CHAIN * CHAINS
    times = [chain.launch(count) for _ in range(rounds + 1)][1:]
    host, wall = (1e6 * statistics.median(column) / count for column in zip(*times, strict=True))
    return BenchResult("floor", "", "cuLaunchKernel", host, wall), count * (rounds + 1)


def _replay(chain: Floor, rounds: int) -> tuple[BenchResult, int]:
    times = [chain.replay(CHAIN, CHAINS) for _ in range(rounds)]
    host, wall = (
        1e6 * statistics.median(column) / (CHAIN * CHAINS) for column in zip(*times, strict=True)
    )
    return (
        BenchResult("floor", "", "a ready graph of 100 nodes", host, wall),
        CHAIN * (CHAINS + 1) * rounds,
    )


def _cold(chain: Floor, rounds: int) -> tuple[BenchResult, int]:
    times = [chain.cold(CHAIN) for _ in range(rounds + 1)][1:]
    host = 1e6 * statistics.median(map(sum, times)) / CHAIN
    names = ("nodes", "edges", "instantiation", "first launch")
    parts = {
        name: 1e6 * statistics.median(column) / CHAIN
        for name, column in zip(names, zip(*times, strict=True), strict=True)
    }
    return (
        BenchResult("floor", "", "a fresh graph of 100 nodes", host, parts=parts),
        CHAIN * (rounds + 1),
    )


FLOORS: dict[str, Callable[[Floor, int], tuple[BenchResult, int]]] = {
    "C loop": _launch,
    "C replay": _replay,
    "C replay, programmatic": _replay,
    "C replay, two kernels": _replay,
    "C cold": _cold,
}


def measure_floor(bench: Bench, name: str) -> BenchResult:
    """Measure and check one of FLOORS."""
    kernel = bench.kernels.add
    if name == "C replay, programmatic":
        if not bench.programmatic:
            return BenchResult("floor", name, "a ready graph of 100 nodes", note=NO_PROGRAMMATIC)
        kernel = bench.kernels.early_add
    x = buffer()
    other = bench.kernels.plus if name == "C replay, two kernels" else None
    row, count = FLOORS[name](Floor(kernel, 4, 256, x, buffer(1), N, other), bench.rounds)
    expect(x, count, name)
    row.name = name
    if bench.emulated:
        row.wall = None
    return row
