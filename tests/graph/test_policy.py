"""Programs of many kinds, drawn at random: after how many operations they are replayed, and how
many of their operations are replayed from then on."""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple

import pytest

import cyrt

pytestmark = pytest.mark.usefixtures("pooled", "batched")

LIMIT = 128  # operations of a batch
UNARY = (cyrt.cos, cyrt.sin, cyrt.tanh, cyrt.exp, cyrt.abs, cyrt.square)
SIZES = (8, 64, 500, 1500)
both = pytest.mark.parametrize("commit", [True, False], ids=["a commit a round", "no commit"])


def script(rng, length):
    """Return a round of that many operations on a few values that live on, and results that do
    not."""
    state = [cyrt.ones(rng.choice(SIZES)) for _ in range(rng.randint(1, 4))]
    plan = [
        (rng.randrange(len(UNARY)), rng.random(), rng.randrange(8) if rng.random() < 0.2 else None)
        for _ in range(length)
    ]

    def step():
        young = deque(maxlen=3)
        for kind, choice, target in plan:
            values = [*state, *young]
            y = UNARY[kind](values[int(choice * len(values))])
            if target is not None and target < len(state):
                state[target] = y
            else:
                young.append(y)
        return state[0]

    return step


class Run(NamedTuple):
    settled: int  # operations after which fewer than two batches more are lost
    share: float  # replayed operations among those of the last quarter
    length: float  # operations of a round there


def run(step, least, commit):
    """Call rounds until so many operations are recorded, and return what `stats` shows."""
    counts = []
    cyrt.trim_memory()  # blocks that others left in the pool decide which addresses change
    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        step = step()
        while len(counts) < 12 or counts[-1][0] < least:
            step(len(counts))
            if commit:
                cyrt.commit()
            stats = encoder.stats()
            counts.append((stats["operations"], stats["replayed"]))
    quarter = max(3, len(counts) // 4)
    last, first = counts[-1], counts[-quarter]
    share = (last[1] - first[1]) / (last[0] - first[0])
    settled = next(
        operations
        for operations, replayed in counts
        if min(share, 1) * (last[0] - operations) - (last[1] - replayed) <= 2 * LIMIT
    )
    return Run(settled, share, (last[0] - first[0]) / (quarter - 1))


def check(found, rounds, least):
    """It settles within so many rounds, or 12 batches, and this share is replayed then."""
    assert found.share >= least, found
    assert found.settled <= max(12 * LIMIT, rounds * found.length), found


@both
@pytest.mark.parametrize("seed", range(12))
def test_straight_loops(seed, commit):
    rng = random.Random(seed)

    def start():
        step = script(rng, rng.choice((2, 9, 31, 64, 100, 150, 290, 500)))
        return lambda i: step()

    check(run(start, 6000, commit), 6, 0.93)


@both
@pytest.mark.parametrize("seed", range(8))
def test_loops_in_loops(seed, commit):
    rng = random.Random(seed)

    def start():
        inner, outer = script(rng, rng.randint(1, 12)), script(rng, rng.randint(1, 40))
        times = rng.randint(2, 40)

        def step(i):
            for _ in range(times):
                inner()
            outer()

        return step

    check(run(start, 6000, commit), 6, 0.93)


@pytest.mark.parametrize("seed", range(8))
def test_operations_that_come_now_and_then(seed):
    rng = random.Random(seed)

    def start():
        step, every = script(rng, rng.randint(5, 60)), rng.randint(2, 20)

        def extra(i):
            x = step()
            if i % every == every - 1:
                x.mean()

        return extra

    check(run(start, 20_000, False), 170, 0.9)


@both
@pytest.mark.parametrize("seed", range(6))
def test_arrays_that_grow(seed, commit):
    """One array is larger every round, such as a cache: grids differ, and now and then the class of
    its size."""
    rng = random.Random(seed)

    def start():
        step, cache = script(rng, rng.randint(40, 120)), cyrt.ones((400, 64))

        def growing(i):
            x = step()
            rows = cache[: i + 1]
            rows[i] = x[0]
            cyrt.tanh(rows * 0.5)

        return growing

    check(run(start, 6000, commit), 60, 0.6)


@pytest.mark.parametrize("seed", range(8))
def test_evaluations_between_epochs(seed):
    """An evaluation runs other kernels, and waits. What comes before and after it is no whole
    batch."""
    rng = random.Random(seed)

    def start():
        train = script(rng, rng.randint(40, 200))
        rounds, length, x = rng.randint(10, 20), rng.randint(1, 100), cyrt.ones(300)

        def step(i):
            for _ in range(rounds):
                train()
            y = x
            for _ in range(length):
                y = y * 0.5 + 1
            y[0].item()

        return step

    check(run(start, 20_000, False), 5, 0.95)


@both
@pytest.mark.parametrize("seed", range(8))
def test_two_programs_by_turns(seed, commit):
    rng = random.Random(seed)

    def start():
        programs = script(rng, rng.randint(20, 150)), script(rng, rng.randint(20, 150))
        each = rng.randint(8, 12)

        def step(i):
            for program in programs:
                for _ in range(each):
                    program()

        return step

    # Without commits, a program that comes back is followed 16 operations late.
    check(run(start, 20_000, commit), 15, 0.95 if commit else 0.3)


@both
@pytest.mark.parametrize("seed", range(8))
def test_results_that_are_kept_for_a_while(seed, commit):
    rng = random.Random(seed)

    def start():
        step, every = script(rng, rng.randint(20, 120)), rng.randint(1, 4)
        kept = deque(maxlen=rng.randint(1, 6))

        def keeping(i):
            x = step()
            if i % every == 0:
                kept.append(x * 2)

        return keeping

    check(run(start, 12_000, commit), 60, 0.95)


def test_operations_that_never_repeat_are_replayed_never():
    rng = random.Random(1)

    def start():
        values = [cyrt.ones(64) for _ in range(8)]

        def step(i):
            for _ in range(50):
                values[rng.randrange(8)] = UNARY[rng.randrange(6)](values[rng.randrange(8)])

        return step

    assert run(start, 6000, False).share == 0
