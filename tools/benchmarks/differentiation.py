"""Differentiation: what the host does for a recorded operation and for its gradient, and steps.

The gradients are compared with those by hand before a time is printed. The host's times are the
least of many rounds, beside which the ratio to an operation that is not recorded and the
difference from it are printed; the times of steps, in the column of the device, are of a pipelined
loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from common import Row, Session, main

import cyrt

OPERATIONS, ROUNDS, STEPS = 100, 50, 500


def least_times(functions: Sequence[Callable[[], object]], count: int) -> list[float]:
    """Return the least time until each function returns, in µs for each of `count` operations. The
    functions take turns, so that all have the same clock rate."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, own in zip(functions, times, strict=True):
            cyrt.synchronize()
            begin = time.perf_counter()
            function()
            own.append(time.perf_counter() - begin)
    return [min(own) * 1e6 / count for own in times]


def operations(session: Session) -> Iterator[Row]:
    """Yield the rows of a chain of products: what recording adds to an operation, and what the
    gradient of one takes."""
    count, n = (10, 64) if session.small else (OPERATIONS, 4096)

    def chain(x: cyrt.Array) -> cyrt.Array:
        for _ in range(count):
            x = x * 1.01
        return x

    x, g = cyrt.ones(n), cyrt.ones(n)
    y, pull = cyrt.vjp(chain, x)
    for found in (chain(x), y, pull(g)[0]):
        np.testing.assert_allclose(found.numpy(), np.full(n, 1.01**count), rtol=1e-4)
    cases: dict[str, Callable[[], object]] = {
        "an operation": lambda: chain(x),
        "the same, recorded": lambda: cyrt.vjp(chain, x),
        "the gradient of one": lambda: pull(g),
    }
    times = [] if session.small else least_times(list(cases.values()), count)
    for i, case in enumerate(cases):
        note = f"{times[i] / times[0]:.2f} ×, {times[i] - times[0]:+.2f} µs" if times and i else ""
        yield Row(case, f"cyrt: float32, {n:,}", None, times[i] if times else None, note)


def regression(session: Session) -> Iterator[Row]:
    """Yield the rows of logistic regression by gradient descent."""
    rows, columns = (20, 5) if session.small else (1000, 100)
    rng = np.random.default_rng(0)
    x = cyrt.asarray(rng.standard_normal((rows, columns)).astype(np.float32))
    y = cyrt.asarray((rng.random(rows) > 0.5).astype(np.float32))

    def loss(w: cyrt.Array, b: cyrt.Array) -> cyrt.Array:
        z = x @ w + b
        return cyrt.mean(cyrt.logaddexp(z, 0.0) - y * z)

    differentiated = cyrt.grad(loss, (0, 1))

    def by_tape(w: cyrt.Array, b: cyrt.Array) -> tuple[cyrt.Array, cyrt.Array]:
        dw, db = differentiated(w, b)
        return w - 0.1 * dw, b - 0.1 * db

    def by_hand(w: cyrt.Array, b: cyrt.Array) -> tuple[cyrt.Array, cyrt.Array]:
        error = (cyrt.sigmoid(x @ w + b) - y) * (1 / rows)
        return w - 0.1 * (x.T @ error), b - 0.1 * cyrt.sum(error)

    def train(
        step: Callable[[cyrt.Array, cyrt.Array], tuple[cyrt.Array, cyrt.Array]], count: int
    ) -> np.ndarray:
        w, b = cyrt.zeros(columns), cyrt.zeros(())
        for _ in range(count):
            w, b = step(w, b)
        return np.append(w.numpy(), b.numpy())

    warm = 3 if session.small else 100
    np.testing.assert_allclose(train(by_tape, warm), train(by_hand, warm), rtol=1e-3, atol=1e-5)
    for name, step in (("by hand", by_hand), ("by the tape", by_tape)):
        case = f"logistic regression, {rows:,} × {columns:,}"
        took, note = None, ""
        if not session.small:
            before = cyrt.current_encoder().stats()
            begin = time.perf_counter()
            train(step, STEPS)
            took = (time.perf_counter() - begin) / STEPS * 1e6
            after = cyrt.current_encoder().stats()
            recorded, replayed = (after[key] - before[key] for key in ("operations", "replayed"))
            note = f"{recorded / STEPS:.0f} operations, {100 * replayed / recorded:.0f} % replayed"
        yield Row(case, f"cyrt: a step, {name}", took, None, note)


def measure(session: Session) -> Iterator[Row]:
    """Yield all rows."""
    yield from operations(session)
    yield from regression(session)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
