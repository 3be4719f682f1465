"""Programs of views: slices alone, and operations on slices and on contiguous arrays."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

import cyrt
from cyrt.bench.program import Program, WrongResult

SIDE = 8  # the matrix's, so small that the emulated device evicts little of the caches


class Slices(Program):
    """Views that are made and dropped; nothing is recorded."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.host = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
        self.x = cyrt.asarray(self.host)

    @abstractmethod
    def last(self) -> tuple[cyrt.Array, np.ndarray]:
        """Return the last view, and NumPy's."""

    def check(self) -> None:
        found, wanted = self.last()
        if not np.array_equal(found.numpy(), wanted):
            raise WrongResult(f"views: found {found.numpy()}, expected {wanted}")


class Rows(Slices):
    """``x[1:-1]``."""

    def work(self) -> int:
        x = self.x
        for _ in range(self.count):
            self.view = x[1:-1]
        return self.count

    def last(self) -> tuple[cyrt.Array, np.ndarray]:
        return self.view, self.host[1:-1]


class Inner(Slices):
    """``x[1:-1, :-2]``."""

    def work(self) -> int:
        x = self.x
        for _ in range(self.count):
            self.view = x[1:-1, :-2]
        return self.count

    def last(self) -> tuple[cyrt.Array, np.ndarray]:
        return self.view, self.host[1:-1, :-2]


class Sums(Program):
    """``x = x + b`` with a contiguous b."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.done = 0
        self.x = cyrt.zeros((SIDE - 2, SIDE - 2))
        self.other = self.operand()

    def operand(self) -> cyrt.Array:
        return cyrt.ones((SIDE - 2, SIDE - 2))

    def work(self) -> int:
        x, b = self.x, self.other
        for _ in range(self.count):
            x = x + b
        self.x = x
        self.done += self.count
        return self.count

    def check(self) -> None:
        if not (self.x.numpy() == self.done).all():
            raise WrongResult(f"views: found {self.x.numpy()}, expected {self.done} throughout")


class StridedSums(Sums):
    """``x = x + b`` with a slice of a larger matrix."""

    def operand(self) -> cyrt.Array:
        return cyrt.ones((SIDE, SIDE))[1:-1, :-2]


class RowSums(Sums):
    """``x = x + b`` with one row for all."""

    def operand(self) -> cyrt.Array:
        return cyrt.ones(SIDE - 2)


PROGRAMS: dict[str, type[Slices] | type[Sums]] = {
    "x[1:-1]": Rows,
    "x[1:-1, :-2]": Inner,
    "x + b, contiguous": Sums,
    "x + b, b a slice": StridedSums,
    "x + b, b a row": RowSums,
}
