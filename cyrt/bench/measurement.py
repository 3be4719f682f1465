"""Measuring a program: its rounds, its clocks, and its row.

Host time is the time until all operations are launched; wall time includes the wait for the GPU.
"""

from __future__ import annotations

import statistics
import time
from functools import cached_property

import cyrt
from cyrt import settings
from cyrt.bench.floors import Floor
from cyrt.bench.kernels import Kernels
from cyrt.bench.program import N, Program, buffer
from cyrt.bench.result import BenchResult

DIRECT = "no graphs, as with CYRT_GRAPHS=0: each launched directly"


class Bench:
    """The state that the cases share.

    Parameters
    ----------
    rounds : int
        Number of measurements of each program; the median counts.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.kernels = Kernels()
        self.emulated = cyrt.Device().emulated
        self.graphs = settings.get("CYRT_GRAPHS")
        self.streams: list[cyrt.Stream] = []

    def stream(self) -> cyrt.Stream:
        """A new stream for each program, so that no case warms up the next one."""
        self.streams.append(cyrt.Stream())  # kept alive: a dead stream's state is used again
        return self.streams[-1]

    @cached_property
    def programmatic(self) -> bool:
        """Whether edges can be programmatic on this device."""
        return Floor(self.kernels.early_add, 4, 256, buffer(), buffer(), N).programmatic

    def row(
        self,
        name: str,
        what: str,
        program: Program,
        host: float,
        wall: float | None,
        before: dict[str, int],
        note: str = "",
        graphs: bool = True,
    ) -> BenchResult:
        """Check a measured program's results, and return its row."""
        counts = None
        graphs = graphs and self.graphs
        if graphs:
            after = cyrt.current_encoder().stats()
            counts = {
                key: after[key] - before[key]
                for key in ("operations", "commits", "hits", "misses", "patched", "instantiations")
            }
        program.check()
        return BenchResult(
            "case",
            name,
            what,
            1e6 * host,
            None if self.emulated or wall is None else 1e6 * wall,
            note if graphs else DIRECT,
            counts,
        )

    def measure(
        self,
        name: str,
        what: str,
        program: Program,
        *,
        warm: int = 2,
        wall: bool = True,
        commit: bool = True,
        rounds: int = 1,
        note: str = "",
        graphs: bool = True,
    ) -> BenchResult:
        """Return the medians over the rounds.

        Each round ends with a wait; its host time ends with the commit.
        """
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
        return self.row(
            name,
            what,
            program,
            statistics.median(hosts),
            statistics.median(walls) if wall else None,
            before,
            note,
            graphs,
        )
