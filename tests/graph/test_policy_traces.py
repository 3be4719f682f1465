"""The policy alone, over traces of operations of programs drawn at random: no device runs them.

Memory is modelled as sequences and sites do it: the n-th result of a batch has the n-th block, if
that is free; a result that outlives its batch has a block of its operation's own. A batch is
replayed if one of the same kernels on the same blocks was launched before, and at most half of its
operations were patched then.
"""

from __future__ import annotations

import random
from collections import deque

import pytest
from test_policy import LIMIT, Run, both, check

from cyrt.graph.policy import Trace

BLOCKS = 4096
KERNELS = 8
OWN = 8  # blocks of a site


class Value:
    """A result, whose block is freed with it."""

    def __init__(self, program, block):
        self.program, self.block = program, block

    def __del__(self):
        self.program.free(self.block)


class Program:
    """Records operations, and gives their results blocks."""

    def __init__(self):
        self.trace = Trace(LIMIT, BLOCKS)
        self.live, self.used = set(), set()
        self.sequence, self.next, self.own, self.ended = [], 0, {}, 0

    def allocate(self):
        if self.ended != len(self.trace.batches):  # the next batch has begun
            self.ended, self.used = len(self.trace.batches), set()
            self.next = self.next if self.trace.resumes else 0
        site = self.trace.site()
        if site:
            block = self.allocate_own(self.own.setdefault(site, []))
        else:
            if self.next == len(self.sequence):
                self.sequence.append(None)
            block = self.sequence[self.next]
            if not self.is_free(block):
                block = self.sequence[self.next] = self.other()
            self.next += 1
        self.live.add(block)
        self.used.add(block)
        return block

    def allocate_own(self, blocks):
        """Return the first free block of a site, which has a few."""
        block = next(filter(self.is_free, blocks), None)
        if block is None:
            block = self.other()
            blocks[:] = [*blocks, block][-OWN:]
        return block

    def is_free(self, block):
        return block is not None and block not in self.live | self.used

    def other(self):
        """Return a free block that no sequence or site has."""
        taken = self.live.union(self.used, self.sequence, *self.own.values())
        return next(each for each in range(BLOCKS) if each not in taken)

    def free(self, block):
        self.live.remove(block)
        self.trace.free(block)

    def call(self, kernel, *operands):
        result = Value(self, self.allocate())
        self.trace.record(kernel, tuple(each.block for each in operands), result.block)
        return result

    def script(self, rng, length):
        """Return a round of that many operations on a few values that live on, and results that do
        not."""
        state = [self.call(0) for _ in range(rng.randint(1, 4))]
        plan = [
            (rng.randrange(KERNELS), rng.random(), rng.randrange(8) if rng.random() < 0.2 else None)
            for _ in range(length)
        ]

        def step():
            young = deque(maxlen=3)
            for kernel, choice, target in plan:
                values = [*state, *young]
                y = self.call(kernel, values[int(choice * len(values))])
                if target is not None and target < len(state):
                    state[target] = y
                else:
                    young.append(y)
            return state[0]

        return step


def count_replayed(batches):
    """Return the numbers of operations, and of those that are replayed, after each batch."""
    kept, counts, operations, replayed = set(), [], 0, 0
    for kernels, uses, patched in batches:
        operations += len(kernels)
        replayed += len(kernels) if (kernels, uses) in kept else 0
        if 2 * patched <= len(kernels):
            kept.add((kernels, uses))
        counts.append((operations, replayed))
    return counts


def run(start, least, commit):
    """Call rounds until so many operations are recorded; see test_policy."""
    program = Program()
    step, rounds = start(program), 0
    while rounds < 12 or sum(len(kernels) for kernels, *_ in program.trace.batches) < least:
        step(rounds)
        if commit:
            program.trace.commit()
        rounds += 1
    counts = count_replayed(program.trace.batches)
    last = counts[-1]
    first = next(each for each in counts if 4 * each[0] >= 3 * last[0])
    share = (last[1] - first[1]) / (last[0] - first[0])
    settled = next(
        operations
        for operations, replayed in counts
        if share * (last[0] - operations) - (last[1] - replayed) <= 2 * LIMIT
    )
    return Run(settled, share, last[0] / rounds)


@both
@pytest.mark.parametrize("seed", range(12))
def test_straight_loops(seed, commit):
    rng = random.Random(seed)

    def start(program):
        step = program.script(rng, rng.choice((2, 9, 31, 64, 100, 150, 290, 500)))
        return lambda i: step()

    check(run(start, 8000, commit), 6, 0.95)


@both
@pytest.mark.parametrize("seed", range(8))
def test_loops_in_loops(seed, commit):
    rng = random.Random(seed)

    def start(program):
        inner, outer = (program.script(rng, rng.randint(1, n)) for n in (12, 40))
        times = rng.randint(2, 40)

        def step(i):
            for _ in range(times):
                inner()
            outer()

        return step

    check(run(start, 8000, commit), 6, 0.95)


@pytest.mark.parametrize("seed", range(8))
def test_operations_that_come_now_and_then(seed):
    rng = random.Random(seed)

    def start(program):
        step, every = program.script(rng, rng.randint(5, 60)), rng.randint(2, 20)

        def extra(i):
            x = step()
            if i % every == every - 1:
                program.call(KERNELS, x)

        return extra

    check(run(start, 20_000, False), 170, 0.9)


@pytest.mark.parametrize("seed", range(8))
def test_evaluations_between_epochs(seed):
    rng = random.Random(seed)

    def start(program):
        train = program.script(rng, rng.randint(40, 200))
        rounds, length = rng.randint(10, 20), rng.randint(1, 100)
        x = program.call(0)

        def step(i):
            for _ in range(rounds):
                train()
            y = x
            for _ in range(length):
                y = program.call(KERNELS + 1, program.call(KERNELS, y))
            program.trace.commit()

        return step

    check(run(start, 20_000, False), 16, 0.75)


@both
@pytest.mark.parametrize("seed", range(8))
def test_two_programs_by_turns(seed, commit):
    rng = random.Random(seed)

    def start(program):
        scripts = [program.script(rng, rng.randint(20, 150)) for _ in range(2)]
        each = rng.randint(8, 12)

        def step(i):
            for script in scripts:
                for _ in range(each):
                    script()

        return step

    check(run(start, 20_000, commit), 15 if commit else 26, 0.95 if commit else 0.3)


@both
@pytest.mark.parametrize("seed", range(8))
def test_results_that_are_kept_for_a_while(seed, commit):
    rng = random.Random(seed)

    def start(program):
        step, every = program.script(rng, rng.randint(20, 120)), rng.randint(1, 4)
        kept = deque(maxlen=rng.randint(1, 6))

        def keeping(i):
            x = step()
            if i % every == 0:
                kept.append(program.call(KERNELS, x))

        return keeping

    check(run(start, 12_000, commit), 60, 0.95)


def test_operations_that_never_repeat():
    rng = random.Random(1)

    def start(program):
        values = [program.call(0) for _ in range(8)]

        def step(i):
            for _ in range(50):
                values[rng.randrange(8)] = program.call(
                    rng.randrange(KERNELS), values[rng.randrange(8)]
                )

        return step

    assert run(start, 6000, False).share == 0


def test_blocks_that_a_trace_does_not_have():
    with pytest.raises(IndexError, match=r"expected blocks below 2, got \(0, 2\)"):
        Trace(LIMIT, 2).record(0, (0,), 2)
