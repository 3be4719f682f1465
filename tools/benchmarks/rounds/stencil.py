"""A heat equation by slices."""

from __future__ import annotations

import numpy as np

import cyrt
from rounds.program import Rounds

STEPS = 20  # a round's
RATE = 0.2


class Stencil(Rounds):
    """Each step copies the field and assigns to its inside.

    It begins with the sine that every step scales by the same factor.
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        angles = np.pi * np.arange(n) / (n - 1)
        self.start = np.outer(np.sin(angles), np.sin(angles)).astype(np.float32)
        self.factor = 1 + RATE * (4 * np.cos(angles[1]) - 4)
        self.u = cyrt.array(self.start)

    def step(self) -> None:
        for _ in range(STEPS):
            u = self.u
            new = u.copy()
            inside = u[1:-1, 1:-1]
            new[1:-1, 1:-1] = (
                inside
                + (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - inside * 4) * RATE
            )
            self.u = new

    def results(self) -> list[cyrt.ndarray]:
        return [self.u]

    def expected(self) -> list[np.ndarray]:
        return [(self.start * self.factor ** (STEPS * self.rounds)).astype(np.float32)]
