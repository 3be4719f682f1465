"""The step of an Adam optimiser, tensor by tensor."""

from __future__ import annotations

import numpy as np

import cyrt
from rounds.program import Rounds

N = 4096


class Adam(Rounds):
    """Fourteen operations a tensor of n elements, whose state is kept, or thrown away."""

    def __init__(self, tensors: int, *, kept: bool, n: int = N) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        self.kept = kept
        self.gradients = rng.standard_normal((tensors, n), np.float32)
        self.g = [cyrt.array(g) for g in self.gradients]
        self.p, self.m, self.v = ([cyrt.zeros(n) for _ in range(tensors)] for _ in range(3))
        self.last = self.p[-1]

    def step(self) -> None:
        p, m, v = self.p, self.m, self.v
        for i, g in enumerate(self.g):
            m_new = m[i] * 0.9 + g * 0.1
            v_new = v[i] * 0.99 + g * g * 0.01
            self.last = p[i] - (m_new / 0.1) / (cyrt.sqrt(v_new / 0.01) + 1e-4) * 0.01
            if self.kept:
                p[i], m[i], v[i] = self.last, m_new, v_new

    def results(self) -> list[cyrt.ndarray]:
        return [*self.p, *self.m, *self.v, self.last]

    def expected(self) -> list[np.ndarray]:
        g: np.ndarray = self.gradients
        last: np.ndarray | None = None
        p, m, v = (np.zeros_like(g) for _ in range(3))
        for _ in range(self.rounds):
            m_new, v_new = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
            last = p - (m_new / 0.1) / (np.sqrt(v_new / 0.01) + 1e-4) * 0.01
            if not self.kept:
                break
            p, m, v = last, m_new, v_new
        return [*p, *m, *v, p[-1] if last is None else last[-1]]
