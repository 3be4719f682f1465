"""The interface of the benchmark's programs, each of which repeats one round."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

import cyrt
from cyrt.bench.program import WrongResult


class Rounds(ABC):
    """A program that repeats a round of operations, and the same in NumPy."""

    def __init__(self) -> None:
        self.rounds = 0

    def run(self) -> None:
        """Record one round."""
        self.step()
        self.rounds += 1

    @abstractmethod
    def step(self) -> None:
        """Record the operations of one round."""

    @abstractmethod
    def results(self) -> list[cyrt.ndarray]:
        """Return the results of the rounds that have run so far."""

    @abstractmethod
    def expected(self) -> list[np.ndarray]:
        """The same, by NumPy."""

    def check(self) -> None:
        """Raise WrongResult where a result is another than NumPy's."""
        for held, wanted in zip(self.results(), self.expected(), strict=True):
            found = held.numpy()
            if found.shape != wanted.shape or not np.allclose(found, wanted, 1e-3, 1e-4):
                raise WrongResult(
                    f"{type(self).__name__}, {self.rounds} rounds: expected {wanted}, got {found}"
                )
