"""Waits and extra operations between or inside a program's rounds move no other batch."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import numpy as np
import pytest
from rounds.adam import Adam
from rounds.k_means import KMeans
from rounds.keeping import Keeping
from rounds.mlp import Training
from rounds.program import Rounds
from rounds.stencil import Stencil

import cyrt
from cyrt import settings

MAX_OPS = 128

pytestmark = [
    pytest.mark.usefixtures("pooled", "batched"),
    pytest.mark.skipif(
        settings.get("CYRT_MAX_OPS_PER_GRAPH") != MAX_OPS, reason="expects batches of 128"
    ),
]

FEW = 256  # elements: what settles does not depend on them
PROGRAMS = {
    "Adam": lambda: Adam(50, kept=True, n=FEW),
    "Adam-200": lambda: Adam(200, kept=True, n=FEW),
    "Adam-thrown-away": lambda: Adam(50, kept=False, n=FEW),
    "stencil": lambda: Stencil(32),
    "training": lambda: Training((16, 32, 32, 10)),
    "keeping": Keeping,
    "k-means": lambda: KMeans(FEW),
}
programs = pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)

BENCHMARKS = Path(__file__).resolve().parents[2] / "tools" / "benchmarks"


class Between:
    """The actions that a program performs sometimes, besides its rounds."""

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
    """A separate stream for the test, and a pool without blocks of other tests."""
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
    """The action happens once in ten rounds, when rounds are no longer patched. An operation that
    does not wait changes the batch that contains it, which is several rounds if they are short."""
    program = make()
    act = getattr(Between(program), what)

    def run(i):
        program.run()
        if i % 10 == 9:
            act()

    share_patched(run, 90)
    before = counts()
    share_patched(run, 20)
    patched, operations = np.subtract(counts(), before)
    assert patched <= max(0.02 * operations, 2 * MAX_OPS if what == "operation" else 0)
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


class Mixture(Rounds):
    """A round of 300 operations of random kinds; some results live until the next round's."""

    def __init__(self, seed=5):
        super().__init__()
        self.kinds = random.Random(seed).choices(range(4), k=300)
        self.start = np.zeros(512, np.float32), np.ones(512, np.float32)
        self.x, self.y = (cyrt.array(x) for x in self.start)
        self.waits, self.kept = (), []

    def step(self):
        kept = []
        for i, kind in enumerate(self.kinds):
            if i in self.waits:
                cyrt.synchronize()
            self.x, self.y = self.y, self.combine(cyrt, kind, self.x, self.y)
            if i % 37 == 5:
                kept.append(self.y)
        self.kept = kept

    def combine(self, xp, kind, x, y):
        if kind < 2:
            return (xp.maximum, xp.minimum)[kind](x, y)
        return x - y if kind == 2 else x * 0.5

    def results(self):
        return [self.x, self.y]

    def expected(self):
        x, y = self.start
        for kind in self.kinds * self.rounds:
            x, y = y, self.combine(np, kind, x, y)
        return [x, y]


@pytest.mark.parametrize("waits", [(40,), (0, 60), (10, 20, 90)], ids=str)
def test_waits_inside_every_round_settle(waits):
    program = Mixture()
    program.waits = waits
    share_patched(lambda i: program.run(), 30)
    assert share_patched(lambda i: program.run(), 10) <= 0.02
    program.check()


class Waiting(list):
    """A list whose iteration waits for the device once, before the element with index `before`."""

    before = -1

    def __iter__(self):
        for i, each in enumerate(super().__iter__()):
            if i == self.before:
                cyrt.synchronize()
            yield each


def test_a_wait_anywhere_unsettles_one_batch():
    """If a batch was never cut at that point, its two parts are new; later batches are not."""
    program = Adam(50, kept=True, n=FEW)
    program.g = Waiting(program.g)
    share_patched(lambda i: program.run(), 30)
    for before in (3, 19, 40):
        patched = counts()[0]
        program.g.before = before
        program.run()
        program.g.before = -1
        program.run()
        assert counts()[0] - patched <= MAX_OPS
        assert share_patched(lambda i: program.run(), 4) <= 0.02
    program.check()


def test_operations_beside_the_round_unsettle_one_batch():
    program = Adam(50, kept=True, n=FEW)
    side = cyrt.zeros(16)
    share_patched(lambda i: program.run(), 30)
    for count in (1, 3, 8):
        patched = counts()[0]
        for _ in range(count):
            side = cyrt.exp(side)
        program.run()
        program.run()
        assert counts()[0] - patched <= MAX_OPS + count
        assert share_patched(lambda i: program.run(), 4) <= 0.02
    program.check()


def test_a_longer_stay_outside_the_round_is_overcome():
    """Two hundred operations that do not belong to the round act as another program."""
    program = Mixture()
    side = cyrt.zeros(16)
    share_patched(lambda i: program.run(), 30)
    for _ in range(200):
        side = cyrt.exp(side)
    share_patched(lambda i: program.run(), 30)
    assert share_patched(lambda i: program.run(), 8) <= 0.02
    program.check()


def test_a_round_that_runs_other_kernels_from_now_on_settles():
    program = Mixture()
    share_patched(lambda i: program.run(), 30)
    program.check()
    program.start, program.rounds = tuple(x.numpy() for x in program.results()), 0
    program.kinds[90:130] = [3 - kind for kind in program.kinds[90:130]]
    share_patched(lambda i: program.run(), 40)
    assert share_patched(lambda i: program.run(), 8) <= 0.02
    program.check()


def test_programs_that_ran_before_do_not_unsettle_the_next(python):
    """The streams of those programs stay alive, with all blocks of their sequences and sites."""
    done = python(
        """
        import cyrt
        from rounds.adam import Adam
        from settling import settle

        streams, shares = [], []
        for _ in range(4):
            cyrt.synchronize()
            streams.append(cyrt.Stream())
            with streams[-1]:
                program = Adam(200, kept=True, n=256)
                settle(program, commit=True)
                shares.append(settle(program, commit=True)[1])
        assert max(shares) <= 0.02, shares
        """,
        folders=[BENCHMARKS],
    )
    assert done.returncode == 0, done.stderr


def test_a_program_settles_beside_an_idle_and_a_busy_stream(python):
    done = python(
        """
        import cyrt
        from rounds.adam import Adam
        from settling import settle
        from gates import Gate

        gate, streams = Gate(), []
        for i in range(3):
            cyrt.synchronize()
            gate.flag[0] = 0
            if i == 2:
                with streams[-1]:
                    gate.wait()
                    cyrt.commit()
            streams.append(cyrt.Stream())
            with streams[-1]:
                program = Adam(200, kept=True, n=256)
                # The pool may be at its bound, and give blocks of the busy stream, which wait.
                timer = gate.open_in(0.5)
                for _ in range(2):
                    program.run()
                    cyrt.commit()
                timer.join()
                share = settle(program, commit=True)[1]
        assert share <= 0.02, share
        """,
        folders=[Path(__file__).resolve().parent.parent, BENCHMARKS],
    )
    assert done.returncode == 0, done.stderr
