"""The cases by name: how each program is measured, and the floors that it stands beside.

Host time is what recording and launching take the CPU; wall time includes the wait for the GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import cyrt
from cyrt import settings
from cyrt.bench import (
    arrays,
    emulated,
    generating,
    imports,
    indexing,
    kernels,
    products,
    reductions,
    sorting,
)
from cyrt.bench.floors import Chain as Floor
from cyrt.bench.programs import (
    CHAIN,
    CHAINS,
    Chain,
    ColdBranches,
    ColdChain,
    ForkJoin,
    Kernels,
    Loop,
    N,
    Program,
    Repoint,
    Reshape,
    Wide,
    buffer,
    expect,
)
from cyrt.bench.report import Row

DIRECT = "no graphs, as with CYRT_GRAPHS=0: each launched directly"
NO_PROGRAMMATIC = ("no programmatic edges here: they need compute capability 9.0, CUDA 12.3 and "
                   "CYRT_PDL=1")


class Bench:
    """What the cases share: the kernels, how many rounds, whether a GPU's time can be told."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.kernels = Kernels()
        self.emulated = cyrt.Device().emulated
        self.graphs = settings.get("CYRT_GRAPHS")
        self.streams: list[cyrt.Stream] = []

    def stream(self) -> cyrt.Stream:
        """A new one for each program: no case leaves the next one a cache or a habit."""
        self.streams.append(cyrt.Stream())      # kept: an ended stream's state is used again
        return self.streams[-1]

    @cached_property
    def programmatic(self) -> bool:
        """Whether edges can be programmatic here."""
        return Floor(self.kernels.early_add, 4, 256, buffer(), buffer(), N).programmatic

    def floor(self, name: str) -> Row:
        """The row of one of FLOORS, measured and checked."""
        kernel = self.kernels.add
        if name == "C replay, programmatic":
            if not self.programmatic:
                return Row("floor", name, "a ready graph of 100 nodes", note=NO_PROGRAMMATIC)
            kernel = self.kernels.early_add
        x = buffer()
        other = self.kernels.plus if name == "C replay, two kernels" else None
        row, count = FLOORS[name](Floor(kernel, 4, 256, x, buffer(1), N, other), self.rounds)
        expect(x, count, name)
        row.name = name
        if self.emulated:
            row.wall = None
        return row

    def row(self, name: str, what: str, program: Program, host: float, wall: float | None,
            before: dict[str, int], note: str = "", graphs: bool = True) -> Row:
        """The row of a program that was measured, once its results were checked."""
        counts = None
        graphs = graphs and self.graphs
        if graphs:
            after = cyrt.current_encoder().stats()
            counts = {key: after[key] - before[key] for key in
                      ("operations", "commits", "hits", "misses", "patched", "instantiations")}
        program.check()
        return Row("case", name, what, 1e6 * host,
                   None if self.emulated or wall is None else 1e6 * wall,
                   note if graphs else DIRECT, counts)

    def measure(self, name: str, what: str, program: Program, *, warm: int = 2,
                wall: bool = True, commit: bool = True, rounds: int = 1, note: str = "",
                graphs: bool = True) -> Row:
        """Medians over the rounds; each ends with a wait, and its host time with the commit."""
        hosts, walls = [], []
        for _ in range(warm):
            program.prepare()
            program.work()
            cyrt.synchronize()
        if warm:
            program.check()
        before = cyrt.current_encoder().stats()
        for _ in range(rounds * self.rounds):
            program.prepare()
            cyrt.synchronize()
            begin = time.perf_counter()
            count = program.work()
            if commit:
                cyrt.commit()
            middle = time.perf_counter()
            cyrt.synchronize()
            hosts.append((middle - begin) / count)
            walls.append((time.perf_counter() - begin) / count)
        return self.row(name, what, program, statistics.median(hosts),
                        statistics.median(walls) if wall else None, before, note, graphs)


def _launch(chain: Floor, rounds: int) -> tuple[Row, int]:
    count = CHAIN * CHAINS
    times = [chain.launch(count) for _ in range(rounds + 1)][1:]
    host, wall = (1e6 * statistics.median(column) / count for column in zip(*times, strict=True))
    return Row("floor", "", "cuLaunchKernel", host, wall), count * (rounds + 1)


def _replay(chain: Floor, rounds: int) -> tuple[Row, int]:
    times = [chain.replay(CHAIN, CHAINS) for _ in range(rounds)]
    host, wall = (1e6 * statistics.median(column) / (CHAIN * CHAINS)
                  for column in zip(*times, strict=True))
    return (Row("floor", "", "a ready graph of 100 nodes", host, wall),
            CHAIN * (CHAINS + 1) * rounds)


def _cold(chain: Floor, rounds: int) -> tuple[Row, int]:
    times = [chain.cold(CHAIN) for _ in range(rounds + 1)][1:]
    host = 1e6 * statistics.median(map(sum, times)) / CHAIN
    names = ("nodes", "edges", "instantiation", "first launch")
    parts = {name: 1e6 * statistics.median(column) / CHAIN
             for name, column in zip(names, zip(*times, strict=True), strict=True)}
    return (Row("floor", "", "a fresh graph of 100 nodes", host, parts=parts),
            CHAIN * (rounds + 1))


FLOORS: dict[str, Callable[[Floor, int], tuple[Row, int]]] = {
    "C loop": _launch,
    "C replay": _replay,
    "C replay, programmatic": _replay,
    "C replay, two kernels": _replay,
    "C cold": _cold,
}


def _record(bench: Bench) -> Iterator[Row]:
    # As many as are recorded before anything commits by itself.
    count = min(CHAIN, (settings.get("CYRT_MAX_OPS_PER_GRAPH") + 1) // 2)
    with bench.stream():
        yield bench.measure("record", f"a chain of {count}", Chain([bench.kernels.add] * count),
                            wall=False, commit=False, note="committed when its time is taken")


def _chain(bench: Bench) -> Iterator[Row]:
    count = CHAIN * CHAINS
    with bench.stream():
        yield bench.measure("chain", "full edges" if bench.graphs else "k[grid, block](...)",
                            Chain([bench.kernels.add] * count))
    if bench.graphs:
        yield from _programmatic(bench, "chain", lambda: Chain([bench.kernels.early_add] * count))


def _programmatic(bench: Bench, name: str, program: Callable[[], Program]) -> Iterator[Row]:
    what = "programmatic edges"
    if bench.programmatic:
        with bench.stream():
            yield bench.measure(name, what, program())
    else:
        yield Row("case", name, what, note=NO_PROGRAMMATIC)


def _fork_join(bench: Bench) -> Iterator[Row]:
    kernels = bench.kernels
    with bench.stream():
        yield bench.measure("fork-join", "diamonds of one, four, one" if bench.graphs
                            else "diamonds, one after the other",
                            ForkJoin(kernels.add, kernels.join))
    if bench.graphs:
        yield from _programmatic(bench, "fork-join",
                                 lambda: ForkJoin(kernels.early_add, kernels.early_join))


def _wide(bench: Bench) -> Iterator[Row]:
    with bench.stream():
        yield bench.measure("wide", "100 independent operations a commit", Wide(bench.kernels.add))


def _repoint(bench: Bench) -> Iterator[Row]:
    with bench.stream():
        yield bench.measure("repoint", "a chain, new addresses in every batch",
                            Repoint(bench.kernels.add))


def _reshape(bench: Bench) -> Iterator[Row]:
    with bench.stream():
        yield bench.measure("reshape", "a chain, new sizes in every batch",
                            Reshape(bench.kernels.add))


def _cold_case(bench: Bench) -> Iterator[Row]:
    kernels = bench.kernels
    for what, program in (
            ("chains never seen", lambda: ColdChain(kernels.add, kernels.plus)),
            ("branches never seen", lambda: ColdBranches(kernels.add))):
        with bench.stream():
            yield bench.measure("cold", what, program(), warm=0, wall=False)


def _loop(bench: Bench) -> Iterator[Row]:
    """Host time of a round at a time, which no queue holds up; the rest without an end."""
    with bench.stream():
        program = Loop(bench.kernels.add, bench.kernels.plus)
        burst = bench.measure("loop", "", program)
        for _ in range(30):         # every topology of the loop was seen twice
            program.work()
        cyrt.synchronize()
        before = cyrt.current_encoder().stats()
        begin = time.perf_counter()
        count = sum(program.work() for _ in range(3 * bench.rounds))
        cyrt.synchronize()
        yield bench.row("loop", "1,009 operations a round, never synchronised", program,
                        burst.host / 1e6, (time.perf_counter() - begin) / count, before,
                        "host: of rounds by themselves")


def _sync(bench: Bench) -> Iterator[Row]:
    with bench.stream():
        yield bench.measure("sync", "commit and wait every 6", Chain([bench.kernels.add] * 6),
                            rounds=10)


def _arrays(bench: Bench) -> Iterator[Row]:
    for what, program in arrays.PROGRAMS.items():
        with bench.stream():
            yield bench.measure("arrays", what, program())


def _direct(bench: Bench) -> Iterator[Row]:
    """What Python costs beyond the C loop."""
    encoder = cyrt.CommandEncoder(graphs=False)
    with cyrt.stream(encoder.stream):
        yield bench.measure("direct", "k[grid, block](...)",
                            Chain([bench.kernels.add] * (CHAIN * CHAINS)), graphs=False)


def _update(bench: Bench) -> Iterator[Row]:
    """The two ways to make a ready graph equal to a batch of which every node differs, in C."""
    x, rounds = buffer(), bench.rounds // 4 + 1
    chain = Floor(bench.kernels.add, 4, 256, x, buffer(1), N)
    sizes = 10, 100, 1000
    times = {nodes: [chain.update(nodes) for _ in range(rounds)] for nodes in sizes}
    expect(x, 3 * rounds * sum(sizes), "update")
    for nodes, measured in times.items():
        for way, column in zip(("node by node", "as a whole"), zip(*measured, strict=True),
                               strict=True):
            yield Row("case", "update", f"all of {nodes:,} nodes, {way}, and a launch",
                      1e6 * statistics.median(column) / nodes, None, "in C")


@dataclass(frozen=True)
class Case:
    """How a case's rows are made, and the names of the floors they are compared with."""

    run: Callable[[Bench], Iterator[Row]]
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
    "direct": Case(_direct),
    "update": Case(_update),
    "emulated": Case(lambda bench: emulated.run(bench.rounds), ()),
    "kernels": Case(lambda bench: iter(kernels.run(bench.rounds)), ()),
    "reductions": Case(lambda bench: iter(reductions.run(bench.rounds)), ()),
    "products": Case(lambda bench: iter(products.run(bench.rounds)), ()),
    "sorting": Case(lambda bench: iter(sorting.run(bench.rounds)), ()),
    "indexing": Case(lambda bench: iter(indexing.run(bench.rounds)), ()),
    "random": Case(lambda bench: iter(generating.run(bench.rounds)), ()),
    "import": Case(lambda bench: imports.run(bench.rounds), ()),
}
