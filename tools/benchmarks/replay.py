"""Replayed operations: host µs an operation, and rounds until most operations are replayed.

``python tools/benchmarks/replay.py`` measures this installation. With the Python of other
installations behind it, each of them and this one are measured by turns, three times, and the least
times are printed side by side, with their ratio to the first: ``replay.py BASE/.venv/bin/python``.
The results of every program are checked before its time is printed.
"""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
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
}
PROGRAMS: dict[str, Callable[[], Rounds]] = {
    "Adam 50": lambda: Adam(50, kept=True),
    "Adam 200": lambda: Adam(200, kept=True),
    "stencil": lambda: Stencil(256),
    "perceptron": Training,
    "k-means": KMeans,
    "transformer": Decoding,
}


def least(
    name: str, loop: Callable[[int], cyrt.ndarray], wanted: float, count: int = OPERATIONS
) -> float:
    """Return the least host time of an operation in µs. All elements of the loop's result must be
    `wanted`."""
    times = []
    for _ in range(WARM + REPEATS):
        cyrt.synchronize()
        start = time.perf_counter()
        result = loop(count)
        times.append(time.perf_counter() - start)
        if not np.allclose(result.numpy(), wanted, 1e-4):
            raise RuntimeError(f"{name}: expected {wanted}, got {result.numpy()}")
    return 1e6 * min(times[WARM:]) / count


def measure_loops() -> dict[str, float]:
    """Return the times of single operations."""
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

    return {
        "x + b": least("x + b", add, OPERATIONS),
        "x += b": least("x += b", add_in_place, OPERATIONS),
        "x * 0.5": least("x * 0.5", scale, 0),
        "kernel": least("kernel", launch, 2),
        "100 independent": least("100 independent", spread, 2, 4000),
        "sum(axis=1)": least("sum(axis=1)", total, 64),
        "matmul 64": least("matmul 64", multiply, 1),
        "x[1:-1, 1:-1]": least("x[1:-1, 1:-1]", take_slice, 1),
    }


def count_operations() -> tuple[int, int]:
    """Return the numbers of operations so far, and of those that were replayed."""
    stats = cyrt.current_encoder().stats()
    return stats["operations"], stats["replayed"]


def is_settled(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return whether most operations between two counts were replayed."""
    return after[1] - before[1] >= SETTLED * (after[0] - before[0])


def measure_program(make: Callable[[], Rounds]) -> tuple[float, int]:
    """Return the host time of an operation in µs, and the rounds until most are replayed."""
    gc.collect()
    cyrt.trim_memory()
    with cyrt.Stream():
        program = make()
        counts = [count_operations()]
        for _ in range(ROUNDS):
            program.run()
            counts.append(count_operations())
        count = (counts[-1][0] - counts[0][0]) / ROUNDS
        settled = next(number for number, each in enumerate(counts) if is_settled(each, counts[-1]))
        rounds = math.ceil(OPERATIONS / count)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            for _ in range(rounds):
                program.run()
            times.append(time.perf_counter() - start)
            cyrt.synchronize()
        program.check()
    return 1e6 * min(times) / (rounds * count), settled


def measure() -> dict[str, float]:
    """Return all figures of this installation."""
    figures = measure_loops()
    for name, make in PROGRAMS.items():
        figures[name], settled = measure_program(make)
        figures[f"{name}: rounds until replay"] = settled
    return figures


def main(pythons: list[str]) -> None:
    """Measure the installations by turns, and print their figures."""
    pythons = [*pythons, sys.executable]
    figures: list[dict[str, float]] = [{} for _ in pythons]
    for _ in range(TURNS):
        for known, python in zip(figures, pythons, strict=True):
            command = [python, __file__, "--figures"]
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            for name, each in json.loads(found.stdout.splitlines()[-1]).items():
                known[name] = min(each, known.get(name, each))
    print(f"{'host µs an operation':<32}{'goal':>8}" + "".join(f"{'':>10}" for _ in pythons))
    for name in figures[-1]:
        values = [known[name] for known in figures]
        goal = GOALS.get(name)
        print(
            f"{name:<32}{'' if goal is None else f'{goal:.3f}':>8}"
            + "".join(f"{each:>10.3f}" for each in values)
            + (f"{values[-1] / values[0]:>8.2f}" if values[0] else "")
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["--figures"]:
        print(json.dumps(measure()))
    else:
        main(sys.argv[1:])
