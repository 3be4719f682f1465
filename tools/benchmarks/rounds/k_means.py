"""Lloyd's algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

import cyrt
from rounds.program import Rounds

POINTS, CLUSTERS, FEATURES = 2048, 8, 4
STEPS = 5  # a round's


class KMeans(Rounds):
    """Distances, the nearest centre, and the mean of its points, by a matrix of zeros and ones."""

    def __init__(self, points: int = POINTS) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        middles = 8 * rng.standard_normal((CLUSTERS, FEATURES))
        self.points = (
            middles[rng.integers(0, CLUSTERS, points)] + rng.standard_normal((points, FEATURES))
        ).astype(np.float32)
        self.start = (middles + 1).astype(np.float32)
        self.x, self.centres = cyrt.array(self.points), cyrt.array(self.start)
        self.numbers = cyrt.arange(CLUSTERS)

    def step(self) -> None:
        for _ in range(STEPS):
            self.centres = improve(cyrt, self.x, self.centres, self.numbers)

    def results(self) -> list[cyrt.ndarray]:
        return [self.centres]

    def expected(self) -> list[np.ndarray]:
        centres = self.start
        for _ in range(STEPS * self.rounds):
            centres = improve(np, self.points, centres, np.arange(CLUSTERS)).astype(np.float32)
        return [centres]


def improve(xp: Any, x: Any, centres: Any, numbers: Any) -> Any:
    """One step, by cyrt or by NumPy."""
    difference = x[:, None, :] - centres[None, :, :]
    nearest = xp.argmin((difference * difference).sum(axis=2), axis=1)
    member = (nearest[:, None] == numbers[None, :]).astype(xp.float32)
    return (member.T @ x) / xp.maximum(member.sum(axis=0), 1)[:, None]
