"""Logistic regression by gradient descent, written with arrays: steps a second, and the loss."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import cyrt

FEATURES = 100
RATE = 0.1


def loss(X: cyrt.Array, y: cyrt.Array, w: cyrt.Array) -> float:
    """Mean cross entropy, of labels 0 and 1."""
    p = cyrt.sigmoid(X @ w).numpy().astype(np.float64).clip(1e-9, 1 - 1e-9)
    labels = y.numpy()
    return float(-np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p)))


def mean_loss(w: cyrt.Array, X: cyrt.Array, y: cyrt.Array) -> cyrt.Array:
    return cyrt.nn.binary_cross_entropy(X @ w, y, with_logits=True)


def steps_a_second(step: Callable[[], None], seconds: float) -> tuple[float, int]:
    """How many steps are done in a second, those on the device included, and how many were."""
    count = 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(100):
            step()
        count += 100
        cyrt.commit()
    cyrt.synchronize()
    return count / (time.perf_counter() - begin), count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000, help="examples to learn from")
    count = parser.parse_args().size
    if count < 1:
        parser.error(f"--size: expected 1 or more, got {count}")
    device = cyrt.Device()
    print(
        f"device {device.index}: {device.name} "
        f"({'emulated, on the CPU' if device.emulated else 'GPU'})"
    )
    rng = np.random.default_rng(0)
    X_host = rng.standard_normal((count, FEATURES), np.float32)
    y_host = (X_host @ rng.standard_normal(FEATURES, np.float32) > 0).astype(np.float32)
    X, y = cyrt.asarray(X_host), cyrt.asarray(y_host)
    w = cyrt.zeros(FEATURES, dtype=cyrt.float32)

    gradient = cyrt.grad(mean_loss)

    def step() -> None:
        nonlocal w
        w = w - RATE * gradient(w, X, y)

    def waited_step() -> None:
        step()
        cyrt.synchronize()

    first = loss(X, y, w)
    step()
    wanted = -RATE * X_host.T @ (0.5 - y_host) / count
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-4, atol=1e-6)
    print("the first step agrees with NumPy")

    seconds = 0.5 if device.emulated else 2.0
    for what, each in (("sent in batches", step), ("waited for one by one", waited_step)):
        for _ in range(20):
            each()
        rate, done = steps_a_second(each, seconds)
        print(f"{done:,} steps, {what}: {rate:,.0f} a second; the loss is {loss(X, y, w):.4f}")
    last = loss(X, y, w)
    if not last < first:
        raise SystemExit(f"the loss did not fall: {first:.4f} at first, {last:.4f} now")
    print(f"the loss fell from {first:.4f} to {last:.4f}")


if __name__ == "__main__":
    main()
