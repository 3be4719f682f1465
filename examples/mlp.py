"""A small network trained on two spirals: layer_norm, gradients by hand, and the loss falls."""

from __future__ import annotations

import argparse
import time

import numpy as np

import cyrt
from cyrt import nn

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


def forward(x: cyrt.Array, weights: dict[str, cyrt.Array]) -> dict[str, cyrt.Array]:
    """The network's logits, and what the gradients need of the way there."""
    hidden = x @ weights["in"]
    normed = nn.layer_norm(hidden, weights["scale"], weights["shift"])
    active = nn.gelu(normed)
    return {"hidden": hidden, "normed": normed, "active": active, "logits": active @ weights["out"]}


def gradients(
    x: cyrt.Array, labels: cyrt.Array, weights: dict[str, cyrt.Array]
) -> dict[str, cyrt.Array]:
    """The gradient of the mean loss for each weight: the chain rule, from the end to the start."""
    y = forward(x, weights)
    count = x.shape[0]
    g = nn.cross_entropy_vjp(cyrt.full(count, 1 / count), y["logits"], labels)
    found = {"out": y["active"].T @ g}
    g = nn.gelu_vjp(g @ weights["out"].T, y["normed"])
    g, found["scale"], found["shift"] = nn.layer_norm_vjp(
        g, y["hidden"], weights["scale"], weights["shift"]
    )
    found["in"] = x.T @ g
    return found


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
        return nn.cross_entropy(forward(x, weights)["logits"], labels).mean().item()

    def accuracy() -> float:
        return (cyrt.argmax(forward(x, weights)["logits"], axis=1) == labels).mean().item()

    first = loss()
    print(f"step {0:5}: loss {first:.4f}")
    begin = time.perf_counter()
    for step in range(1, options.steps + 1):
        for name, gradient in gradients(x, labels, weights).items():
            weights[name] = weights[name] - RATE * gradient
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
