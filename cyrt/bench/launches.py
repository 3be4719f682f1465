"""The programs that launch kernels in chains, branches and diamonds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

import cyrt
from cyrt.bench.program import CHAIN, CHAINS, N, Program, buffer, expect

DIAMONDS = 150


class Chain(Program):
    """One kernel again and again on the same memory; each launch waits for the one before."""

    def __init__(self, kernels: Sequence[cyrt.Kernel]) -> None:
        super().__init__()
        self.kernels = kernels
        self.x = buffer()
        self.count = 0

    def work(self) -> int:
        x, b = self.x, self.b
        for kernel in self.kernels:
            kernel[4, 256](x, b, x, 1024)
        self.count += len(self.kernels)
        return len(self.kernels)

    def check(self) -> None:
        expect(self.x, self.count, "chain")


class ColdChain(Chain):
    """A chain of two kernels in a new order each time."""

    def __init__(self, add: cyrt.Kernel, plus: cyrt.Kernel) -> None:
        super().__init__(())
        self.both = add, plus
        self.random = random.Random(5)

    def prepare(self) -> None:
        self.kernels = self.random.choices(self.both, k=CHAIN)


class ColdBranches(Program):
    """100 operations between random pairs of 40 buffers, new ones each time."""

    def __init__(self, add: cyrt.Kernel) -> None:
        super().__init__()
        self.add = add
        self.many = [buffer() for _ in range(40)]
        self.values = [0] * 40
        self.random = random.Random(5)

    def prepare(self) -> None:
        self.picks = [self.random.sample(range(40), 2) for _ in range(CHAIN)]

    def work(self) -> int:
        add, b, many, values = self.add, self.b, self.many, self.values
        for i, j in self.picks:
            add[4, 256](many[i], b, many[j], 1024)
        for i, j in self.picks:
            values[j] = values[i] + 1
        return CHAIN

    def check(self) -> None:
        for held, value in zip(self.many, self.values, strict=True):
            expect(held, value, "branches")


class Repoint(Program):
    """A chain through 500 buffers: every batch has other addresses."""

    def __init__(self, add: cyrt.Kernel) -> None:
        super().__init__()
        self.add = add
        self.many = [buffer() for _ in range(500)]
        self.path = self.many
        self.random = random.Random(5)
        self.count = 0

    def prepare(self) -> None:
        """Choose another order of all buffers, from the last chain's end; each is visited twice."""
        last = self.path[-1]
        order = [last, *self.random.sample([x for x in self.many if x is not last], 499)]
        self.path = [*(order * (CHAIN * CHAINS // 500)), last]

    def work(self) -> int:
        add, b = self.add, self.b
        x = self.path[0]
        for y in self.path[1:]:
            add[4, 256](x, b, y, 1024)
            x = y
        self.count += len(self.path) - 1
        return len(self.path) - 1

    def check(self) -> None:
        expect(self.path[-1], self.count, "repoint")


class Reshape(Program):
    """Chains of 100, each on another number of elements, from 1 to 1,024."""

    def __init__(self, add: cyrt.Kernel) -> None:
        super().__init__()
        self.add = add
        self.x = buffer()
        self.random = random.Random(5)
        self.expected = np.zeros(N, np.float32)

    def prepare(self) -> None:
        self.sizes = self.random.choices(range(1, N + 1), k=CHAINS)

    def work(self) -> int:
        add, x, b = self.add, self.x, self.b
        for n in self.sizes:
            grid = (n + 255) // 256
            for _ in range(CHAIN):
                add[grid, 256](x, b, x, n)
            cyrt.commit()
        for n in self.sizes:
            self.expected[:n] += CHAIN
        return CHAIN * len(self.sizes)

    def check(self) -> None:
        expect(self.x, self.expected, "reshape")


class Wide(Program):
    """Batches of 100 independent operations."""

    def __init__(self, add: cyrt.Kernel) -> None:
        super().__init__()
        self.add = add
        self.many = [buffer(i) for i in range(CHAIN)]
        self.rounds = 0

    def work(self) -> int:
        add, b = self.add, self.b
        for _ in range(CHAINS):
            for x in self.many:
                add[4, 256](x, b, x, 1024)
            cyrt.commit()
        self.rounds += CHAINS
        return CHAIN * CHAINS

    def check(self) -> None:
        for i, held in enumerate(self.many):
            expect(held, i + self.rounds, "wide")


class ForkJoin(Program):
    """Diamonds of six, each waiting for the one before: one operation, four, one."""

    def __init__(self, add: cyrt.Kernel, join: cyrt.Kernel) -> None:
        super().__init__()
        self.add, self.join = add, join
        self.top, self.bottom, *self.four = (buffer() for _ in range(6))
        self.diamonds = 0

    def work(self) -> int:
        add, join, b, top, bottom, four = (
            self.add,
            self.join,
            self.b,
            self.top,
            self.bottom,
            self.four,
        )
        for _ in range(DIAMONDS):
            add[4, 256](bottom, b, top, 1024)
            for x in four:
                add[4, 256](top, b, x, 1024)
            join[4, 256](*four, bottom, 1024)
        self.diamonds += DIAMONDS
        return 6 * DIAMONDS

    def check(self) -> None:
        expect(self.bottom, 2 * self.diamonds, "fork-join")


class Loop(Chain):
    """A chain of 1,009 operations of two kinds in a random order.

    The number is not a multiple of a batch's size, so topologies repeat only if batches end at the
    end of the loop.
    """

    def __init__(self, add: cyrt.Kernel, plus: cyrt.Kernel) -> None:
        super().__init__(random.Random(5).choices((add, plus), k=1009))
