"""A perceptron's training, with gradients written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import cyrt
from rounds.program import Rounds

BATCH, BATCHES = 32, 8
WIDTHS = 64, 128, 128, 10


class Training(Rounds):
    """An epoch of minibatches, which arrays of indices choose."""

    def __init__(self, widths: Sequence[int] = WIDTHS) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        self.x = rng.standard_normal((BATCH * BATCHES, widths[0])).astype(np.float32)
        self.y = rng.standard_normal((BATCH * BATCHES, widths[-1])).astype(np.float32)
        self.start = [
            (rng.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32)
            for m, n in itertools.pairwise(widths)
        ]
        self.order = rng.permutation(BATCH * BATCHES).reshape(BATCHES, BATCH)
        self.device = (cyrt.array(self.x), cyrt.array(self.y))
        self.indices = [cyrt.array(rows) for rows in self.order]
        self.weights = [cyrt.array(w) for w in self.start]

    def step(self) -> None:
        x, y = self.device
        for rows in self.indices:
            train(cyrt, x[rows], y[rows], self.weights)

    def results(self) -> list[cyrt.ndarray]:
        return self.weights

    def expected(self) -> list[np.ndarray]:
        weights = list(self.start)
        for _ in range(self.rounds):
            for rows in self.order:
                train(np, self.x[rows], self.y[rows], weights)
        return weights


def train(xp: Any, x: Any, y: Any, weights: list[Any]) -> None:
    """One minibatch, by cyrt or by NumPy.

    The activation is smooth: a step such as relu's derivative turns the rounding of a sum into a
    difference that grows from round to round, and results could not be compared.
    """
    inputs = [x]
    for w in weights[:-1]:
        inputs.append(xp.tanh(inputs[-1] @ w))
    g = (inputs[-1] @ weights[-1] - y) * (2 / BATCH)
    for i in reversed(range(len(weights))):
        change = inputs[i].T @ g
        if i:
            g = (g @ weights[i].T) * (1 - inputs[i] * inputs[i])
        weights[i] = weights[i] - change * 0.002
