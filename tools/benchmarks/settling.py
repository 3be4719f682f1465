"""Programs of rounds: after how many rounds nothing is patched, and the times of a round then.

``python tools/benchmarks/settling.py`` runs each twice, with a commit after every round and
without; its options are those of ``python -m cyrt bench``.
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from rounds.adam import Adam
from rounds.k_means import KMeans
from rounds.keeping import Keeping
from rounds.mlp import Training
from rounds.program import Rounds
from rounds.stencil import Stencil
from rounds.transformer import Decoding

import cyrt
from cyrt.bench.cases import Case
from cyrt.bench.result import BenchResult
from cyrt.cli.bench import run_script
from cyrt.graph import plan_cache
from cyrt.graph.plan import Plan

SETTLING = 20  # rounds before anything is measured, and before each further wait
PATCHED = 0.02  # share of a round's operations below which it has settled
OPERATIONS = 10_000  # the fewest that are measured
WAITS = 3  # more waits before times are taken

PROGRAMS: dict[str, Callable[[], Rounds]] = {
    "Adam, 50 tensors": lambda: Adam(50, kept=True),
    "Adam, 50 tensors, state thrown away": lambda: Adam(50, kept=False),
    "Adam, 200 tensors": lambda: Adam(200, kept=True),
    "Adam, 200 tensors, state thrown away": lambda: Adam(200, kept=False),
    "stencil by slices, 256²": lambda: Stencil(256),
    "stencil by slices, 2,048²": lambda: Stencil(2048),
    "training of a perceptron": Training,
    "one result in ten kept": Keeping,
    "k-means": KMeans,
    "transformer, growing cache": Decoding,
}
ONLY_ON_A_GPU = "stencil by slices, 2,048²"  # the emulated device takes seconds for a round


def _patched(before: dict[str, int], after: dict[str, int]) -> float:
    """The share of operations that were patched."""
    return (after["patched"] - before["patched"]) / max(
        1, after["operations"] - before["operations"]
    )


def _launches() -> dict[Plan, int]:
    """The number of launches of each topology."""
    return {plan: plan.launches for plan in plan_cache.list_plans()}


def _count_execs(before: dict[Plan, int]) -> int:
    """Return the number of executable graphs of topologies launched since. A new stream may have
    the graphs of one that has ended."""
    return sum(
        len(plan._graphs)
        for plan, launches in _launches().items()
        if launches > before.get(plan, 0)
    )


def settle(program: Rounds, *, commit: bool) -> tuple[int, float]:
    """Run 20 rounds; returns after how many the program had settled, and the last one's share."""
    encoder = cyrt.current_encoder()
    settled, share = 0, 0.0
    for number in range(1, SETTLING + 1):
        before = encoder.stats()
        program.run()
        if commit:
            cyrt.commit()
        share = _patched(before, encoder.stats())
        if share > PATCHED:
            settled = number
    return settled, share


def _measure(program: Rounds, rounds: int, *, commit: bool) -> tuple[float, float, float]:
    """Host and wall seconds of a round, and the share of operations that were patched."""
    encoder = cyrt.current_encoder()
    cyrt.synchronize()
    hosts = []
    before = encoder.stats()
    begin = time.perf_counter()
    for _ in range(rounds):
        start = time.perf_counter()
        program.run()
        if commit:
            cyrt.commit()
        hosts.append(time.perf_counter() - start)
    cyrt.synchronize()
    wall = (time.perf_counter() - begin) / rounds
    # A full queue delays the host: the shorter rounds were not delayed.
    return statistics.quantiles(hosts, n=10)[0], wall, _patched(before, encoder.stats())


def measure(
    name: str, what: str, make: Callable[[], Rounds], rounds: int, *, commit: bool, emulated: bool
) -> BenchResult:
    """Measure a program, check its results, and return its row."""
    gc.collect()
    cyrt.trim_memory()
    program = make()
    encoder = cyrt.current_encoder()
    launches, start = _launches(), encoder.stats()
    settled, _ = settle(program, commit=commit)
    count = (encoder.stats()["operations"] - start["operations"]) / SETTLING
    if not emulated:
        rounds = max(rounds, math.ceil(OPERATIONS / count))
    _, _, patched = _measure(program, rounds, commit=commit)
    # Each wait cuts a batch. Graphs of what is left of it are instantiated after the first ones.
    for _ in range(0 if emulated else WAITS):
        _measure(program, SETTLING, commit=commit)
    before = encoder.stats()
    host, wall, _ = _measure(program, rounds, commit=commit)
    after = encoder.stats()
    memory = cyrt.memory_stats()
    held = _count_execs(launches)
    program.check()
    return BenchResult(
        "case",
        name,
        what + (", a commit a round" if commit else ""),
        1e6 * host / count,
        None if emulated else 1e6 * wall / count,
        counts={key: after[key] - before[key] for key in before if key in after},
        figures={
            "patched after 20": f"{100 * patched:.1f} %",
            "execs": f"{held:,}",
            "rounds to settle": f"{settled}",
            "bytes beside": f"{memory['cached']:,}",
        },
    )


def run(stream: Callable[[], cyrt.Stream], rounds: int, *, emulated: bool) -> Iterator[BenchResult]:
    """Yield a row for every program, each on its own stream."""
    for what, make in PROGRAMS.items():
        if emulated and what == ONLY_ON_A_GPU:
            yield BenchResult(
                "case", "programs", what, note="on a GPU only: takes minutes on a CPU"
            )
            continue
        for commit in (False, True):
            with stream():
                yield measure(
                    "programs", what, make, max(2, rounds // 4), commit=commit, emulated=emulated
                )


def main(arguments: list[str] | None = None) -> int:
    """Measure the programs, and print and write their rows."""
    case = Case(lambda bench: run(bench.stream, bench.rounds, emulated=bench.emulated))
    return run_script({"programs": case}, arguments)


if __name__ == "__main__":
    sys.exit(main())
