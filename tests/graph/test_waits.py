"""What comes between the rounds of a program, or inside one, moves no other batch."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cyrt
from cyrt import settings
from cyrt.bench.rounds.adam import Adam
from cyrt.bench.rounds.k_means import KMeans
from cyrt.bench.rounds.keeping import Keeping
from cyrt.bench.rounds.mlp import Training
from cyrt.bench.rounds.stencil import Stencil

MAX_OPS = 128

pytestmark = [
    pytest.mark.usefixtures("pooled", "batched"),
    pytest.mark.skipif(
        settings.get("CYRT_GRAPH_UPDATE") != "node", reason="counts what is patched, node by node"
    ),
    pytest.mark.skipif(
        settings.get("CYRT_MAX_OPS_PER_GRAPH") != MAX_OPS, reason="expects batches of 128"
    ),
]

PROGRAMS = {
    "Adam": lambda: Adam(50, kept=True),
    "Adam-200": lambda: Adam(200, kept=True),
    "Adam-thrown-away": lambda: Adam(50, kept=False),
    "stencil": lambda: Stencil(32),
    "training": Training,
    "keeping": Keeping,
    "k-means": KMeans,
}
programs = pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)


class Between:
    """What a program does now and then besides its rounds."""

    def __init__(self, program):
        self.program = program
        self.side = cyrt.zeros(16)

    def read(self):
        self.program.results()[-1].numpy()

    def synchronize(self):
        cyrt.synchronize()

    def commit(self):
        cyrt.commit()

    def operation(self):
        self.side = self.side + 1

    def mean(self):
        float(self.program.results()[0].mean())


between = pytest.mark.parametrize("what", ["read", "synchronize", "commit", "operation", "mean"])


@pytest.fixture(autouse=True)
def stream():
    """A stream of the test's own, on a pool that holds nothing of other tests."""
    gc.collect()
    cyrt.trim_memory()
    with cyrt.Stream() as stream:
        yield stream


def counts():
    stats = cyrt.current_encoder().stats()
    return stats["patched"], stats["operations"]


def share_patched(run, rounds):
    before = counts()
    for i in range(rounds):
        run(i)
    patched, operations = np.subtract(counts(), before)
    return patched / operations


@between
@programs
def test_what_comes_between_rounds_moves_nothing(make, what):
    """Once in ten rounds, when the program has settled."""
    program = make()
    act = getattr(Between(program), what)

    def run(i):
        program.run()
        if i % 10 == 9:
            act()

    share_patched(run, 60)
    assert share_patched(run, 20) <= 0.02
    program.check()


@between
@programs
def test_what_comes_after_every_round_settles(make, what):
    program = make()
    act = getattr(Between(program), what)

    def run(i):
        program.run()
        act()

    share_patched(run, 30)
    assert share_patched(run, 10) <= 0.02
    program.check()


class Chain:
    """A round of 300 operations, each of which reads what two others wrote."""

    def __init__(self):
        self.x, self.y = cyrt.zeros(512), cyrt.ones(512)
        self.start = np.zeros(512, np.float32), np.ones(512, np.float32)
        self.rounds = 0

    def step(self, xp, x, y, i):
        return y, (xp.maximum(x, y) if i % 7 == 3 else x * 0.5 - y * 0.25)

    def run(self, wait_before=()):
        for i in range(115):
            if i in wait_before:
                cyrt.synchronize()
            self.x, self.y = self.step(cyrt, self.x, self.y, i)
        self.rounds += 1

    def check(self):
        x, y = self.start
        for _ in range(self.rounds):
            for i in range(115):
                x, y = self.step(np, x, y, i)
        np.testing.assert_allclose(self.y.numpy(), y, 1e-4, 1e-6)


@pytest.mark.parametrize("waits", [(40,), (0, 60), (10, 20, 90)], ids=str)
def test_waits_inside_every_round_settle(waits):
    program = Chain()
    share_patched(lambda i: program.run(waits), 30)
    assert share_patched(lambda i: program.run(waits), 10) <= 0.02
    program.check()


def test_a_wait_anywhere_unsettles_one_batch():
    """Where a batch was never cut before, its two parts are new; the next batch is as ever."""
    program = Chain()
    share_patched(lambda i: program.run(), 30)
    for wait in (17, 44, 71, 98):
        before = counts()
        program.run((wait,))
        program.run()
        assert counts()[0] - before[0] <= MAX_OPS
        assert share_patched(lambda i: program.run(), 4) <= 0.02
    program.check()


def test_operations_beside_the_round_unsettle_one_batch():
    program = Chain()
    side = cyrt.zeros(16)
    share_patched(lambda i: program.run(), 30)
    for count in (1, 3, 8):
        before = counts()
        for _ in range(count):
            side = cyrt.exp(side)
        program.run()
        program.run()
        assert counts()[0] - before[0] <= MAX_OPS + count
        assert share_patched(lambda i: program.run(), 4) <= 0.02
    program.check()


def test_a_longer_stay_outside_the_round_is_overcome():
    """Two hundred other operations: another program for a while."""
    program = Chain()
    side = cyrt.zeros(16)
    share_patched(lambda i: program.run(), 30)
    for _ in range(200):
        side = cyrt.exp(side)
    share_patched(lambda i: program.run(), 30)
    assert share_patched(lambda i: program.run(), 8) <= 0.02
    program.check()


def test_a_round_that_runs_other_kernels_from_now_on_settles():
    program = Chain()
    share_patched(lambda i: program.run(), 30)
    step = program.step
    program.check()
    program.start = program.x.numpy(), program.y.numpy()
    program.rounds = 0
    program.step = lambda xp, x, y, i: (y, xp.minimum(x, y)) if 30 < i < 60 else step(xp, x, y, i)
    share_patched(lambda i: program.run(), 40)
    assert share_patched(lambda i: program.run(), 8) <= 0.02
    program.check()


def test_programs_that_ran_before_do_not_unsettle_the_next():
    """Their streams live on, with all that their places keep."""
    streams = []
    for _ in range(4):
        streams.append(cyrt.Stream())
        with streams[-1]:
            program = Adam(200, kept=True)
            share_patched(lambda i: program.run(), 30)  # noqa: B023
            assert share_patched(lambda i: program.run(), 4) <= 0.02  # noqa: B023
            program.check()
