"""Differentiation: what the host does for a recorded operation and for its gradient, and steps.

The gradients are compared with those by hand before a time is printed. Times are microseconds; the
host's are the least of many rounds, those of steps are of a pipelined loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cyrt

OPERATIONS, ROUNDS, STEPS = 100, 50, 500


def host_time(function: Callable[[], Any]) -> float:
    """Return the least time until a call returns, in microseconds."""
    times = []
    for _ in range(ROUNDS):
        cyrt.synchronize()
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def chain(x: cyrt.Array) -> cyrt.Array:
    for _ in range(OPERATIONS):
        x = x * 1.01
    return x


def operations() -> None:
    x, g = cyrt.ones(4096), cyrt.ones(4096)
    _, pull = cyrt.vjp(chain, x)
    np.testing.assert_allclose(pull(g)[0].numpy(), np.full(4096, 1.01**OPERATIONS), rtol=1e-4)
    plain = host_time(lambda: chain(x)) / OPERATIONS
    recorded = host_time(lambda: cyrt.vjp(chain, x)) / OPERATIONS
    backward = host_time(lambda: pull(g)) / OPERATIONS
    print(f"an operation                 {plain:8.3f}")
    print(f"the same, recorded           {recorded:8.3f}   {recorded - plain:+.3f}")
    print(f"the gradient of one          {backward:8.3f}")


def regression() -> None:
    """Logistic regression of 1,000 rows of 100 numbers, by gradient descent."""
    rng = np.random.default_rng(0)
    x = cyrt.asarray(rng.standard_normal((1000, 100)).astype(np.float32))
    y = cyrt.asarray((rng.random(1000) > 0.5).astype(np.float32))

    def loss(w: cyrt.Array, b: cyrt.Array) -> cyrt.Array:
        z = x @ w + b
        return cyrt.mean(cyrt.logaddexp(z, 0.0) - y * z)

    differentiated = cyrt.grad(loss, (0, 1))

    def by_tape(w: cyrt.Array, b: cyrt.Array) -> tuple[cyrt.Array, cyrt.Array]:
        dw, db = differentiated(w, b)
        return w - 0.1 * dw, b - 0.1 * db

    def by_hand(w: cyrt.Array, b: cyrt.Array) -> tuple[cyrt.Array, cyrt.Array]:
        error = (cyrt.sigmoid(x @ w + b) - y) * 0.001
        return w - 0.1 * (x.T @ error), b - 0.1 * cyrt.sum(error)

    found = []
    for name, step in (("by hand", by_hand), ("by the tape", by_tape)):
        w, b = cyrt.zeros(100), cyrt.zeros(())
        for _ in range(100):
            w, b = step(w, b)
        found.append(w.numpy())
        before = cyrt.current_encoder().stats()
        begin = time.perf_counter()
        for _ in range(STEPS):
            w, b = step(w, b)
        cyrt.synchronize()
        each = (time.perf_counter() - begin) / STEPS * 1e6
        after = cyrt.current_encoder().stats()
        done = {key: after[key] - before[key] for key in ("operations", "replayed")}
        print(f"logistic regression, {name:12s} {each:8.1f}   {done} in {STEPS} steps")
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-5)


def main() -> None:
    operations()
    regression()


if __name__ == "__main__":
    main()
