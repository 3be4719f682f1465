"""A decoder's layer, token by token."""

from __future__ import annotations

from typing import Any

import numpy as np

import cyrt
from rounds.program import Rounds

WIDTH, HEADS, MOST = 64, 4, 256
LAYERS = 4


class Decoding(Rounds):
    """Layers by hand: norms, attention over a cache that grows by a row a round, GELU."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        self.layers = [
            {
                name: (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
                for name, shape in (
                    ("q", (WIDTH, WIDTH)),
                    ("k", (WIDTH, WIDTH)),
                    ("v", (WIDTH, WIDTH)),
                    ("o", (WIDTH, WIDTH)),
                    ("up", (WIDTH, 4 * WIDTH)),
                    ("down", (4 * WIDTH, WIDTH)),
                )
            }
            for _ in range(LAYERS)
        ]
        self.start = rng.standard_normal((1, WIDTH)).astype(np.float32)
        self.weights = [{name: cyrt.array(w) for name, w in layer.items()} for layer in self.layers]
        self.x = cyrt.array(self.start)
        self.caches = [
            (cyrt.zeros((HEADS, MOST, WIDTH // HEADS)), cyrt.zeros((HEADS, MOST, WIDTH // HEADS)))
            for _ in range(LAYERS)
        ]

    def step(self) -> None:
        self.x = token(cyrt, self.x, self.weights, self.caches, self.rounds % MOST)

    def results(self) -> list[cyrt.ndarray]:
        return [self.x]

    def expected(self) -> list[np.ndarray]:
        x = self.start
        caches = [
            (
                np.zeros((HEADS, MOST, WIDTH // HEADS), np.float32),
                np.zeros((HEADS, MOST, WIDTH // HEADS), np.float32),
            )
            for _ in range(LAYERS)
        ]
        for i in range(self.rounds):
            x = token(np, x, self.layers, caches, i % MOST)
        return [x]


def norm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / ((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5


def token(
    xp: Any, x: Any, layers: list[dict[str, Any]], caches: list[tuple[Any, Any]], at: int
) -> Any:
    """All layers at one position, by cyrt or by NumPy."""
    for w, (keys, values) in zip(layers, caches, strict=True):
        h = norm(x)
        q = (h @ w["q"]).reshape(HEADS, 1, WIDTH // HEADS)
        keys[:, at : at + 1] = (h @ w["k"]).reshape(HEADS, 1, WIDTH // HEADS)
        values[:, at : at + 1] = (h @ w["v"]).reshape(HEADS, 1, WIDTH // HEADS)
        scores = (q @ keys[:, : at + 1].transpose(0, 2, 1)) * (WIDTH // HEADS) ** -0.5
        e = xp.exp(scores - scores.max(axis=-1, keepdims=True))
        attended = (e / e.sum(axis=-1, keepdims=True)) @ values[:, : at + 1]
        x = x + attended.reshape(1, WIDTH) @ w["o"]
        u = norm(x) @ w["up"]
        x = x + (u * 0.5 * (xp.tanh((u + u * u * u * 0.044715) * 0.79788456) + 1)) @ w["down"]
    return norm(x)
