"""A C loop of ``cuLaunchKernel``, the replay of a ready graph, and ``k[grid, block](...)``.

Every case is a program of small kernels on 1,024 floats. Host time is what recording and launching
take the CPU, wall time includes waiting for the GPU at the end.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import cyrt
from cyrt.bench import Row, floors

ADD = """
extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
"""
# The trigger first pays for small grids (measured).
EARLY_ADD = """
extern "C" __global__ void early_add(const float* x, const float* b, float* y, int n) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
"""
N = 1024
ROUNDS = 60


class _Bench:
    def __init__(self) -> None:
        self.add = cyrt.Kernel(ADD, "add")
        self.early = cyrt.Kernel(EARLY_ADD, "early_add", pdl=True)
        self.x, self.b = cyrt.Buffer(4 * N), cyrt.Buffer(4 * N)
        self.b.copy_from(np.ones(N, np.float32))
        self.many = [cyrt.Buffer(4 * N) for _ in range(400)]
        self.expected = 0
        self.x.fill(0)

    def check(self, buffer: cyrt.Buffer, expected: float, n: int = N) -> None:
        out = np.empty(N, np.float32)
        buffer.copy_to(out)
        np.testing.assert_array_equal(out[:n], np.float32(expected))

    def measure(self, work: Callable[[], int], rounds: int = ROUNDS) -> tuple[float, float]:
        """Median host and wall µs an operation; `work` returns how many it recorded."""
        host, wall = [], []
        for _ in range(rounds):
            cyrt.synchronize()
            begin = time.perf_counter()
            count = work()
            cyrt.commit()
            middle = time.perf_counter()
            cyrt.synchronize()
            host.append((middle - begin) / count)
            wall.append((time.perf_counter() - begin) / count)
        return 1e6 * statistics.median(host), 1e6 * statistics.median(wall)

    def chain(self, kernel: cyrt.Kernel, count: int = 1280) -> Callable[[], int]:
        x, b = self.x, self.b

        def work() -> int:
            for _ in range(count):
                kernel[4, 256](x, b, x, 1024)
            self.expected += count
            return count

        return work

    def repoint(self) -> int:
        """New addresses in every batch: another one of many buffers each time."""
        add, b, many = self.add, self.b, self.many
        self.turn = getattr(self, "turn", 0) + 7
        for i in range(1280):
            add[4, 256](b, b, many[(i + self.turn) % 400], 1024)
        return 1280

    def reshape(self) -> int:
        add, x, b = self.add, self.many[0], self.b
        self.turn = getattr(self, "turn", 0) + 1
        for i in range(1280):
            add[1 + (i + self.turn + i // 128) % 4, 256](b, b, x, 1024)
        return 1280

    def wide(self) -> int:
        add, b, many = self.add, self.b, self.many
        for i in range(100):
            add[4, 256](b, b, many[i], 1024)
        return 100

    def fork_join(self) -> int:
        """Diamonds of six: one, four, one."""
        add, b, many = self.add, self.b, self.many
        for _ in range(200):
            add[4, 256](b, b, many[0], 1024)
            for i in range(1, 5):
                add[4, 256](many[0], b, many[i], 1024)
            add[4, 256](many[1], many[4], many[5], 1024)
        return 1200

    def loop(self) -> int:
        """1,009 operations a round: no multiple of a batch."""
        add, b, many = self.add, self.b, self.many
        for _ in range(3):
            for i in range(1009):
                add[2 + i % 3, 256](b, b, many[i % 11], 1024)
        return 3027

    def six(self) -> int:
        add, x, b = self.add, self.x, self.b
        for _ in range(6):
            add[4, 256](x, b, x, 1024)
        self.expected += 6
        return 6

    def cold(self) -> float:
        """Host µs an operation of topologies never seen: chains of varied branching."""
        add, b, many = self.add, self.b, self.many
        rng = np.random.default_rng(5)
        times = []
        values = np.zeros(40)
        for buffer in many[:40]:
            buffer.fill(0)
        for _ in range(20):
            picks = rng.integers(0, 40, (100, 2)).tolist()
            cyrt.synchronize()
            begin = time.perf_counter()
            for i, j in picks:
                add[4, 256](many[i], b, many[j], 1024)
            cyrt.commit()
            times.append((time.perf_counter() - begin) / 100)
            for i, j in picks:
                values[j] = values[i] + 1
        for buffer, value in zip(many[:40], values.tolist(), strict=True):
            self.check(buffer, value)
        return 1e6 * statistics.median(times)


def run() -> list[Row]:
    """The floors and the cases, in one process."""
    bench = _Bench()
    emulated = cyrt.Device().emulated
    x, b = bench.x, bench.b
    rows = []
    raw = statistics.median(
        _synchronized(lambda: floors.launch_loop(bench.add, 4, 256, x, b, x, N, 100))
        for _ in range(ROUNDS)) * 1e4
    rows.append(Row("floor", "C loop of cuLaunchKernel, host", raw))
    for kernel, kind in ((bench.add, "plain"), (bench.early, "programmatic")):
        host, wall = floors.replay(kernel, 4, 256, x, b, x, N, 100, 100)
        rows.append(Row("floor", f"replay of a ready 100-node graph, {kind}: host", host * 100))
        if not emulated:
            rows.append(Row("floor", f"replay of a ready 100-node graph, {kind}: wall",
                            wall * 100))
    bench.check(x, 100 * ROUNDS + 2 * 100 * 101)
    bench.expected = 100 * ROUNDS + 2 * 100 * 101

    def case(name: str, work: Callable[[], int], expected: dict[int, float] | None = None,
             note: str = "") -> None:
        work()
        for index, value in (expected or {}).items():
            bench.check(bench.many[index], value)
        before = cyrt.current_encoder().stats()
        host, wall = bench.measure(work)
        after = cyrt.current_encoder().stats()
        commits = after["commits"] - before["commits"]
        hits = 100 * (after["hits"] - before["hits"]) / max(1, commits)
        note = (f"{raw / host:.1f} times less than the C loop; {hits:.0f} % of commits hit"
                + (f"; {note}" if note else ""))
        rows.append(Row(name, "host an operation", host, note))
        if not emulated:        # its wall time says nothing of a GPU
            rows.append(Row(name, "wall an operation", wall))

    case("chain", bench.chain(bench.add), note="full edges")
    case("chain, programmatic", bench.chain(bench.early))
    case("repoint", bench.repoint, {i: 2 for i in range(0, 400, 57)})
    case("reshape", bench.reshape, {0: 2})
    case("wide", bench.wide, {i: 2 for i in range(0, 100, 9)})
    case("fork-join", bench.fork_join, {0: 2, 1: 3, 4: 3, 5: 6})
    case("loop", bench.loop, {i: 2 for i in range(11)})
    case("sync", bench.six, note="commit and wait every 6")
    bench.check(x, bench.expected)
    rows.append(Row("cold", "host an operation", bench.cold(), "topologies never seen"))
    return rows


def _synchronized(work: Callable[[], float]) -> float:
    cyrt.synchronize()
    return work()
