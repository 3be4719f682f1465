"""A small network trained on two spirals by its gradient, and the loss falls."""

from __future__ import annotations

import argparse
import time

import numpy as np

import cyrt
from cyrt import nn, optim

CLASSES = 2
RATE = 0.5


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of two spirals in the plane, with features of degree 1 to 3, and their labels."""
    label = np.arange(count) % CLASSES
    radius = rng.uniform(0.2, 1.0, count)
    angle = 3.0 * radius + np.pi * label
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    features = np.stack([x, y, x * x, x * y, y * y, x**3, y**3, np.ones(count)], axis=1)
    return features.astype(np.float32), label.astype(np.int32)


def logits(weights: dict[str, cyrt.Array], x: cyrt.Array) -> cyrt.Array:
    """Return the network's results for points."""
    hidden = nn.layer_norm(x @ weights["in"], weights["scale"], weights["shift"])
    return nn.gelu(hidden) @ weights["out"]


def mean_loss(weights: dict[str, cyrt.Array], x: cyrt.Array, labels: cyrt.Array) -> cyrt.Array:
    return nn.cross_entropy(logits(weights, x), labels).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128, help="points to learn from")
    parser.add_argument("--hidden", type=int, default=32, help="width of the hidden layer")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    if options.size < 1:
        parser.error(f"--size: expected 1 or more, got {options.size}")
    if options.hidden < 1:
        parser.error(f"--hidden: expected 1 or more, got {options.hidden}")
    device = cyrt.Device()
    print(f"device: {device.name}")

    rng = np.random.default_rng(0)
    features, answers = spirals(options.size, rng)
    x, labels = cyrt.asarray(features), cyrt.asarray(answers)
    width = features.shape[1], options.hidden
    weights = {
        "in": cyrt.asarray(rng.standard_normal(width).astype(np.float32) / width[0] ** 0.5),
        "scale": cyrt.ones(options.hidden),
        "shift": cyrt.zeros(options.hidden),
        "out": cyrt.zeros((options.hidden, CLASSES)),
    }

    def loss() -> float:
        return mean_loss(weights, x, labels).item()

    def accuracy() -> float:
        return (cyrt.argmax(logits(weights, x), axis=1) == labels).mean().item()

    gradient = cyrt.grad(mean_loss)
    optimizer = optim.sgd(RATE)
    state = optimizer.init(weights)
    first = loss()
    print(f"step {0:5}: loss {first:.4f}")
    begin = time.perf_counter()
    for step in range(1, options.steps + 1):
        weights, state = optimizer.update(gradient(weights, x, labels), state, weights)
        cyrt.commit()  # a step is a batch; without it, batches end by themselves
        if step % max(1, options.steps // 5) == 0:
            print(f"step {step:5}: loss {loss():.4f}")
    cyrt.synchronize()
    seconds = time.perf_counter() - begin
    print(f"{options.steps / seconds:,.0f} steps a second; accuracy {100 * accuracy():.0f} %")
    if not loss() < first:
        raise SystemExit("the loss did not fall")


if __name__ == "__main__":
    main()
