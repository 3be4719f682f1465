"""Replayed operations: host µs an operation, rounds until most operations are replayed, and the
host time of an operation that ends a replay.

``python tools/benchmarks/replay.py`` measures this installation. With the Python of other
installations behind it, each of them and this one are measured by turns, three times, and the least
times are rows, with their ratio to the first: ``replay.py BASE/.venv/bin/python``. The results of
every program are checked before its time is printed.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common import Row, Session, main, settle_fusion
from rounds.adam import Adam
from rounds.k_means import KMeans
from rounds.mlp import Training
from rounds.program import Rounds
from rounds.stencil import Stencil
from rounds.transformer import Decoding

import cyrt

TURNS = 3
OPERATIONS, REPEATS, WARM = 4096, 15, 6  # operations of a measurement, and measurements
SETTLED, ROUNDS = 0.8, 40  # the share that is replayed then, and rounds that show it
LENGTH, MIDDLE = 128, 64  # operations of a round, and the number of the one that is a surprise
SURPRISES = 41  # the first of which is not counted
SOURCE = (
    "__global__ void add_one(const float* x, float* y, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] + 1; }"
)
GOALS = {
    "x + b": 0.09,
    "kernel": 0.085,
    "100 independent": 0.16,
    "Adam 50": 0.15,
    "Adam 200": 0.18,
    "stencil": 0.22,
    "perceptron": 0.22,
    "k-means": 0.22,
    "transformer": 0.32,
    "surprise": 8.0,
}
PROGRAMS: dict[str, Callable[[bool], Rounds]] = {
    "Adam 50": lambda small: Adam(3 if small else 50, kept=True),
    "Adam 200": lambda small: Adam(4 if small else 200, kept=True),
    "stencil": lambda small: Stencil(16 if small else 256),
    "perceptron": lambda small: Training(),
    "k-means": lambda small: KMeans(),
    "transformer": lambda small: Decoding(),
}


def least(
    session: Session,
    name: str,
    loop: Callable[[int], cyrt.ndarray],
    wanted: Callable[[int], float],
    count: int = OPERATIONS,
) -> float | None:
    """Return the least host time of an operation in µs. All elements of the result of a loop must
    be `wanted`, a function of the number of operations."""
    times = []
    count = 100 if session.small else count
    if not session.small:
        settle_fusion(lambda: loop(count))
    for _ in range(1 if session.small else WARM + REPEATS):
        cyrt.synchronize()
        start = time.perf_counter()
        result = loop(count)
        times.append(time.perf_counter() - start)
        np.testing.assert_allclose(result.numpy(), wanted(count), 1e-4, err_msg=name)
    return None if session.small else 1e6 * min(times[WARM:]) / count


def measure_loops(session: Session) -> Iterator[tuple[str, float | None]]:
    """Yield the times of single operations."""
    x, b, y = cyrt.zeros(1024), cyrt.ones(1024), cyrt.zeros(1024)
    matrix, square = cyrt.ones((64, 64)), cyrt.full((64, 64), 1 / 64)
    add_one = cyrt.Kernel(SOURCE, "add_one")
    outs = [cyrt.zeros(1024) for _ in range(100)]

    def add(count: int) -> cyrt.ndarray:
        z = x
        for _ in range(count):
            z = z + b
        return z

    def add_in_place(count: int) -> cyrt.ndarray:
        z = x.copy()
        for _ in range(count):
            z += b
        return z

    def scale(count: int) -> cyrt.ndarray:
        z = b
        for _ in range(count):
            z = z * 0.5
        return z

    def launch(count: int) -> cyrt.ndarray:
        start = add_one[4, 256]
        for _ in range(count):
            start(b, y, 1024)
        return y

    def spread(count: int) -> cyrt.ndarray:
        start = add_one[4, 256]
        for _ in range(count // 100):
            for out in outs:
                start(b, out, 1024)
            cyrt.commit()
        return outs[-1]

    def total(count: int) -> cyrt.ndarray:
        for _ in range(count):
            z = matrix.sum(axis=1)
        return z

    def multiply(count: int) -> cyrt.ndarray:
        z = matrix
        for _ in range(count):
            z = z @ square
        return z

    def take_slice(count: int) -> cyrt.ndarray:
        for _ in range(count):
            z = matrix[1:-1, 1:-1]
        return z

    for name, loop, wanted, count in (
        ("x + b", add, float, OPERATIONS),
        ("x += b", add_in_place, float, OPERATIONS),
        ("x * 0.5", scale, lambda n: 0.5**n, OPERATIONS),
        ("kernel", launch, lambda n: 2.0, OPERATIONS),
        ("100 independent", spread, lambda n: 2.0, 4000),
        ("sum(axis=1)", total, lambda n: 64.0, OPERATIONS),
        ("matmul 64", multiply, lambda n: 1.0, OPERATIONS),
        ("x[1:-1, 1:-1]", take_slice, lambda n: 1.0, OPERATIONS),
    ):
        yield name, least(session, name, loop, wanted, count)


def count_operations() -> tuple[int, int]:
    """Return the numbers of operations so far, and of those that were replayed."""
    stats = cyrt.current_encoder().stats()
    return stats["operations"], stats["replayed"]


def is_settled(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return whether most operations between two counts were replayed."""
    return after[1] - before[1] >= SETTLED * (after[0] - before[0])


def measure_program(session: Session, make: Callable[[bool], Rounds]) -> tuple[float | None, int]:
    """Return the host time of an operation in µs, and the rounds until most are replayed."""
    gc.collect()
    cyrt.trim_memory()
    with cyrt.Stream():
        program = make(session.small)
        if session.small:
            program.run()
            program.run()
            program.check()
            return None, 0
        counts = [count_operations()]
        for _ in range(ROUNDS):
            program.run()
            counts.append(count_operations())
        count = (counts[-1][0] - counts[0][0]) / ROUNDS
        settled = next(number for number, each in enumerate(counts) if is_settled(each, counts[-1]))
        rounds = math.ceil(OPERATIONS / count)
        times = []
        settle_fusion(program.run)
        for _ in range(REPEATS):
            start = time.perf_counter()
            for _ in range(rounds):
                program.run()
            times.append(time.perf_counter() - start)
            cyrt.synchronize()
        program.check()
    return 1e6 * min(times) / (rounds * count), settled


def measure_surprise(session: Session) -> float | None:
    """Return the median host time in µs of an operation that is another one than that of the
    replayed round, less its median time where the operations before it were recorded."""
    x, b = cyrt.zeros(1024), cyrt.full(1024, 2.0)
    times: dict[bool, list[float]] = {True: [], False: []}

    def repeat() -> None:
        for _ in range(2):
            z = x
            for _ in range(LENGTH):
                z = z + b
            cyrt.commit()
        assert float(z[0]) == 2 * LENGTH

    def interrupt(replayed: bool, rest: int) -> float:
        """Return the time of the operation. No script begins with a subtraction, and no batch has
        as many operations as an earlier one, so that none of them becomes a script."""
        z = x + b if replayed else x - b
        for _ in range(MIDDLE - 2):
            z = z + b
        start = time.perf_counter()
        z = z * b
        took = time.perf_counter() - start
        for _ in range(rest):
            z = z + b
        cyrt.commit()
        wanted = 2 * (2 * (MIDDLE - 1 if replayed else MIDDLE - 3) + rest)
        np.testing.assert_array_equal(z.numpy(), wanted, err_msg="surprise")
        return took

    for _ in range(1 if session.small else 8):
        repeat()
    for i in range(1 if session.small else SURPRISES):
        for replayed, found in times.items():
            before = count_operations()
            repeat()
            settled = is_settled(before, count_operations())
            before = count_operations()
            found.append(interrupt(replayed, i))
            assert session.small or (settled and count_operations()[1] == before[1])
    if session.small:
        return None
    return 1e6 * (statistics.median(times[True][1:]) - statistics.median(times[False][1:]))


def measure_here(session: Session) -> Iterator[Row]:
    """Yield the rows of this installation."""
    for name, took in measure_loops(session):
        yield Row(name, "an operation", None, took, goal_of(name))
    for name, make in PROGRAMS.items():
        took, settled = measure_program(session, make)
        what = "an operation" if session.small else f"an operation; replayed after {settled} rounds"
        yield Row(name, what, None, took, goal_of(name))
    took = measure_surprise(session)
    what = f"in the middle of {LENGTH} operations, less its time when recorded"
    yield Row("surprise", what, None, took, goal_of("surprise"))


def goal_of(name: str) -> str:
    return f"goal {GOALS[name]:.3f}" if name in GOALS else ""


def measure(session: Session) -> Iterator[Row]:
    """Yield the rows of this installation, or of several that are measured by turns."""
    if not session.others or session.small:
        yield from measure_here(session)
        return
    pythons = [*session.others, sys.executable]
    found: list[dict[str, dict[str, object]]] = [{} for _ in pythons]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        for _ in range(TURNS):
            for known, python in zip(found, pythons, strict=True):
                subprocess.run(
                    [python, __file__, "--json", file], check=True, stdout=subprocess.DEVNULL
                )
                for row in json.loads(file.read_text(encoding="utf-8")):
                    before = known.get(row["case"])
                    if before is None or row["host"] < before["host"]:
                        known[row["case"]] = row
    for case, first in found[0].items():
        for known, python in zip(found, pythons, strict=True):
            host = float(str(known[case]["host"]))
            ratio = host / float(str(first["host"]))
            yield Row(case, python, None, host, f"{ratio:.2f} of the first; {goal_of(case)}")


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, takes_others=True))
