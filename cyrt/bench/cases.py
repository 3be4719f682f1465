"""The cases by name, each with its programs and with the floors to which it is compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cyrt
from cyrt import settings
from cyrt.bench import arrays, dispatch, emulated, imports, views
from cyrt.bench.floor_cases import NO_PROGRAMMATIC
from cyrt.bench.floors import Floor
from cyrt.bench.launches import (
    Chain,
    ColdBranches,
    ColdChain,
    ForkJoin,
    Loop,
    Repoint,
    Reshape,
    Wide,
)
from cyrt.bench.measurement import Bench
from cyrt.bench.program import CHAIN, CHAINS, N, Program, buffer, expect
from cyrt.bench.result import BenchResult


def _uncommitted() -> int:
    """The number of operations that can be recorded before a batch is committed by a limit."""
    most: int = settings.get("CYRT_MAX_OPS_PER_GRAPH")
    return min(CHAIN, (most + 1) // 2)


def _record(bench: Bench) -> Iterator[BenchResult]:
    count = _uncommitted()
    with bench.stream():
        yield bench.measure(
            "record",
            f"a chain of {count}",
            Chain([bench.kernels.add] * count),
            wall=False,
            commit=False,
            note="committed when its time is taken",
        )


def _chain(bench: Bench) -> Iterator[BenchResult]:
    count = CHAIN * CHAINS
    with bench.stream():
        yield bench.measure(
            "chain",
            "full edges" if bench.graphs else "k[grid, block](...)",
            Chain([bench.kernels.add] * count),
        )
    if bench.graphs:
        yield from _programmatic(bench, "chain", lambda: Chain([bench.kernels.early_add] * count))


def _programmatic(bench: Bench, name: str, program: Callable[[], Program]) -> Iterator[BenchResult]:
    what = "programmatic edges"
    if bench.programmatic:
        with bench.stream():
            yield bench.measure(name, what, program())
    else:
        yield BenchResult("case", name, what, note=NO_PROGRAMMATIC)


def _fork_join(bench: Bench) -> Iterator[BenchResult]:
    kernels = bench.kernels
    with bench.stream():
        yield bench.measure(
            "fork-join",
            "diamonds of one, four, one" if bench.graphs else "diamonds, one after the other",
            ForkJoin(kernels.add, kernels.join),
        )
    if bench.graphs:
        yield from _programmatic(
            bench, "fork-join", lambda: ForkJoin(kernels.early_add, kernels.early_join)
        )


def _wide(bench: Bench) -> Iterator[BenchResult]:
    with bench.stream():
        yield bench.measure("wide", "100 independent operations a commit", Wide(bench.kernels.add))


def _repoint(bench: Bench) -> Iterator[BenchResult]:
    with bench.stream():
        yield bench.measure(
            "repoint", "a chain, new addresses in every batch", Repoint(bench.kernels.add)
        )


def _reshape(bench: Bench) -> Iterator[BenchResult]:
    with bench.stream():
        yield bench.measure(
            "reshape", "a chain, new sizes in every batch", Reshape(bench.kernels.add)
        )


def _cold_case(bench: Bench) -> Iterator[BenchResult]:
    kernels = bench.kernels
    for what, program in (
        ("chains never seen", lambda: ColdChain(kernels.add, kernels.plus)),
        ("branches never seen", lambda: ColdBranches(kernels.add)),
    ):
        with bench.stream():
            yield bench.measure("cold", what, program(), warm=0, wall=False)


def _loop(bench: Bench) -> Iterator[BenchResult]:
    """Yield the host time of single rounds, whose queue is not full, and the wall time of many."""
    with bench.stream():
        program = Loop(bench.kernels.add, bench.kernels.plus)
        burst = bench.measure("loop", "", program)
        for _ in range(30):  # until every topology of the loop was seen twice
            program.work()
        cyrt.synchronize()
        before = cyrt.current_encoder().stats()
        begin = time.perf_counter()
        count = sum(program.work() for _ in range(3 * bench.rounds))
        cyrt.synchronize()
        yield bench.row(
            "loop",
            "1,009 operations a round, never synchronised",
            program,
            (burst.host or 0.0) / 1e6,
            (time.perf_counter() - begin) / count,
            before,
            "host: of rounds by themselves",
        )


def _sync(bench: Bench) -> Iterator[BenchResult]:
    with bench.stream():
        yield bench.measure(
            "sync", "commit and wait every 6", Chain([bench.kernels.add] * 6), rounds=10
        )


def _arrays(bench: Bench) -> Iterator[BenchResult]:
    for what, program in arrays.PROGRAMS.items():
        with bench.stream():
            yield bench.measure("arrays", what, program())


def _views(bench: Bench) -> Iterator[BenchResult]:
    for what, program in views.PROGRAMS.items():
        with bench.stream():
            yield bench.measure(
                "views",
                what,
                program(_uncommitted()),
                wall=False,
                commit=False,
                note="committed when its time is taken",
            )


def _direct(bench: Bench) -> Iterator[BenchResult]:
    """Yield the time of direct launches; the difference to the C loop is Python's."""
    encoder = cyrt.CommandEncoder(graphs=False)
    with cyrt.stream(encoder.stream):
        yield bench.measure(
            "direct",
            "k[grid, block](...)",
            Chain([bench.kernels.add] * (CHAIN * CHAINS)),
            graphs=False,
        )


def _update(bench: Bench) -> Iterator[BenchResult]:
    """Yield, for C loops, the two ways to update a ready graph of which every node differs."""
    x, rounds = buffer(), bench.rounds // 4 + 1
    chain = Floor(bench.kernels.add, 4, 256, x, buffer(1), N)
    sizes = 10, 100, 1000
    times = {nodes: [chain.update(nodes) for _ in range(rounds)] for nodes in sizes}
    expect(x, 3 * rounds * sum(sizes), "update")
    for nodes, measured in times.items():
        for way, column in zip(
            ("node by node", "as a whole"), zip(*measured, strict=True), strict=True
        ):
            yield BenchResult(
                "case",
                "update",
                f"all of {nodes:,} nodes, {way}, and a launch",
                1e6 * statistics.median(column) / nodes,
                None,
                "in C",
            )


@dataclass(frozen=True)
class Case:
    """The function that yields a case's rows, and the names of its floors."""

    run: Callable[[Bench], Iterator[BenchResult]]
    floors: tuple[str, ...] = ("C loop",)


_REPLAYS = ("C loop", "C replay", "C replay, programmatic")

CASES: dict[str, Case] = {
    "record": Case(_record),
    "chain": Case(_chain, _REPLAYS),
    "fork-join": Case(_fork_join, _REPLAYS),
    "wide": Case(_wide, ("C loop", "C replay")),
    "repoint": Case(_repoint, ("C loop", "C replay")),
    "reshape": Case(_reshape, ("C loop", "C replay")),
    "cold": Case(_cold_case, ("C loop", "C cold")),
    "loop": Case(_loop, ("C loop", "C replay", "C replay, two kernels")),
    "sync": Case(_sync),
    "arrays": Case(_arrays, _REPLAYS),
    "views": Case(_views),
    "direct": Case(_direct),
    "update": Case(_update),
    "dispatch": Case(lambda bench: dispatch.run(), ()),
    "emulated": Case(lambda bench: emulated.run(bench.rounds), ()),
    "import": Case(lambda bench: imports.run(bench.rounds), ()),
}
