"""A loop that keeps some of its results."""

from __future__ import annotations

import numpy as np

import cyrt
from rounds.program import Rounds

N = 1024
STEPS = 100  # a round's


class Keeping(Rounds):
    """One result in ten is kept until the next round."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.b = cyrt.zeros(N), cyrt.ones(N)
        self.kept: list[cyrt.ndarray] = []

    def step(self) -> None:
        kept = []
        for i in range(STEPS):
            self.x = (self.x + self.b) * 0.5 - 0.25
            if i % 10 == 9:
                kept.append(self.x)
        self.kept = kept

    def results(self) -> list[cyrt.ndarray]:
        return self.kept

    def expected(self) -> list[np.ndarray]:
        x, kept = np.zeros(N, np.float32), []
        for i in range(STEPS * self.rounds):
            x = (x + 1) * np.float32(0.5) - np.float32(0.25)
            if i % 10 == 9:
                kept.append(x)
        return kept[-10:]
