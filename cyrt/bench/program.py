"""The interface of the measured programs, which are small kernels on 1,024 floats.

Each program keeps counting: the values in its memory follow from all operations since it was
created. So its check finds every operation that was lost, doubled or out of order, also a measured
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

import cyrt

N = 1024  # elements
CHAIN = 100  # operations of which each depends on the one before
CHAINS = 10  # between two waits: the GPU is always busy, and its queue of 1,021 never full


class WrongResult(RuntimeError):
    """A program's memory holds other values than its operations compute."""


def buffer(value: float = 0) -> cyrt.Buffer:
    """Allocate 1,024 floats, all of one value."""
    made = cyrt.Buffer(4 * N)
    made.copy_from(np.full(N, value, np.float32))
    return made


def expect(actual: cyrt.Buffer, wanted: float | np.ndarray, what: str) -> None:
    """Raise WrongResult unless the 1,024 floats are equal to the wanted ones."""
    found = np.empty(N, np.float32)
    actual.copy_to(found)
    wrong = np.flatnonzero(found != np.float32(wanted))
    if len(wrong):
        i = wrong[0]
        raise WrongResult(
            f"{what}: element {i} is {found[i]}, expected "
            f"{np.broadcast_to(wanted, N)[i]} ({len(wrong)} of {N} are wrong)"
        )


class Program(ABC):
    """Operations whose results keep counting."""

    def __init__(self) -> None:
        self.b = buffer(1)

    def prepare(self) -> None:  # noqa: B027
        """Choose what the next :meth:`work` does; not timed."""

    @abstractmethod
    def work(self) -> int:
        """Record the operations, and return their number."""

    @abstractmethod
    def check(self) -> None:
        """Raise WrongResult if a result is wrong."""
