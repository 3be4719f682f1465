"""The programs that are measured, of small kernels on 1,024 floats.

Each one counts on: what its memory must hold follows from every operation since it was made, so a
check tells of any that was lost, doubled or out of order, the measured ones included.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

import cyrt

N = 1024
CHAIN = 100         # operations that depend on each other, one on the next
CHAINS = 10         # between two waits: the GPU is busy throughout, and a queue of 1,021 not full
DIAMONDS = 150

# The trigger first pays for small grids (measured). Below 9.0 there is no such instruction.
SOURCE = """
#if __CUDA_ARCH__ >= 900
#define EARLY asm volatile("griddepcontrol.wait;" ::: "memory"); \\
              asm volatile("griddepcontrol.launch_dependents;");
#else
#define EARLY
#endif
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x;
#define MEAN(p, q, r, s) (0.25f * ((p) + (q) + (r) + (s)))

extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    INDEX if (i < n) y[i] = x[i] + b[i];
}
extern "C" __global__ void plus(const float* x, const float* b, float* y, int n) {
    INDEX if (i < n) y[i] = b[i] + x[i];
}
extern "C" __global__ void join(const float* p, const float* q, const float* r, const float* s,
                                float* y, int n) {
    INDEX if (i < n) y[i] = MEAN(p[i], q[i], r[i], s[i]);
}
extern "C" __global__ void early_add(const float* x, const float* b, float* y, int n) {
    EARLY INDEX if (i < n) y[i] = x[i] + b[i];
}
extern "C" __global__ void early_join(const float* p, const float* q, const float* r,
                                      const float* s, float* y, int n) {
    EARLY INDEX if (i < n) y[i] = MEAN(p[i], q[i], r[i], s[i]);
}
"""


class Kernels:
    """The kernels, each compiled where it is first needed."""

    @cached_property
    def module(self) -> cyrt.Module:
        return cyrt.Module(SOURCE)

    @cached_property
    def add(self) -> cyrt.Kernel:
        """``y = x + b``."""
        return self.module["add"]

    @cached_property
    def plus(self) -> cyrt.Kernel:
        """The same by another name, so another operation in a topology."""
        return self.module["plus"]

    @cached_property
    def join(self) -> cyrt.Kernel:
        """The mean of four."""
        return self.module["join"]

    @cached_property
    def early_add(self) -> cyrt.Kernel:
        return cyrt.Kernel(SOURCE, "early_add", pdl=True)

    @cached_property
    def early_join(self) -> cyrt.Kernel:
        return cyrt.Kernel(SOURCE, "early_join", pdl=True)


class WrongResult(RuntimeError):
    """A program's memory does not hold what its operations make of it."""


def buffer(value: float = 0) -> cyrt.Buffer:
    """1,024 floats of one value."""
    made = cyrt.Buffer(4 * N)
    made.copy_from(np.full(N, value, np.float32))
    return made


def expect(held: cyrt.Buffer, wanted: float | np.ndarray, what: str) -> None:
    """Raise WrongResult where one of the 1,024 floats is another."""
    found = np.empty(N, np.float32)
    held.copy_to(found)
    wrong = np.flatnonzero(found != np.float32(wanted))
    if len(wrong):
        i = wrong[0]
        raise WrongResult(f"{what}: element {i} is {found[i]}, expected "
                          f"{np.broadcast_to(wanted, N)[i]} ({len(wrong)} of {N} are wrong)")


class Program(ABC):
    """Operations that count on.

    :meth:`prepare` is not timed and chooses what the next :meth:`work` does; that records
    operations and returns how many; :meth:`check` raises where a result is wrong.
    """

    def __init__(self) -> None:
        self.b = buffer(1)

    def prepare(self) -> None:  # noqa: B027
        pass

    @abstractmethod
    def work(self) -> int:
        """Record the operations; how many they were."""

    @abstractmethod
    def check(self) -> None:
        """Raise WrongResult where the memory holds something else."""


class Chain(Program):
    """One kernel again and again on the same memory, each waiting for the one before."""

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
    """A chain of two kernels in an order never seen."""

    def __init__(self, add: cyrt.Kernel, plus: cyrt.Kernel) -> None:
        super().__init__(())
        self.both = add, plus
        self.random = random.Random(5)

    def prepare(self) -> None:
        self.kernels = self.random.choices(self.both, k=CHAIN)


class ColdBranches(Program):
    """100 operations between any of 40 buffers, never seen."""

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
        """Another order of all, from where the last chain ended; twice round."""
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
    """Chains of 100, each of a number of elements that is new, from 1 to 1,024."""

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
    """Batches of 100 operations that do not wait for each other."""

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
        add, join, b, top, bottom, four = (self.add, self.join, self.b, self.top, self.bottom,
                                           self.four)
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
    """A chain of 1,009 operations of two kinds in no order: no multiple of a batch, so topologies
    repeat only where batches are cut at the loop's boundary."""

    def __init__(self, add: cyrt.Kernel, plus: cyrt.Kernel) -> None:
        super().__init__(random.Random(5).choices((add, plus), k=1009))
