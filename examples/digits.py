"""A convolutional network learns scikit-learn's handwritten digits; its accuracy on others."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import cyrt
from cyrt import nn, optim

try:
    from sklearn.datasets import load_digits
except ImportError:
    sys.exit("digits.py needs scikit-learn: pip install scikit-learn")

CLASSES = 10
HELD_BACK = 360
Params = dict[str, cyrt.Array]


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,797 images of 8 x 8 pixels and one channel, from 0 to 1, and their labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = images[order].reshape(-1, 8, 8, 1) / 16
    return images.astype(np.float32), labels[order].astype(np.int32)


def new_params(channels: int) -> Params:
    """Return weights of random numbers whose sums have a variance of about 1, and biases of 0."""
    rng = np.random.default_rng(1)
    shapes = {
        "first": (channels, 3, 3, 1),
        "second": (2 * channels, 3, 3, channels),
        "last": (CLASSES, 2 * 2 * 2 * channels),
    }
    params = {}
    for name, shape in shapes.items():
        scale = (2 / np.prod(shape[1:])) ** 0.5
        params[name] = cyrt.asarray((scale * rng.standard_normal(shape)).astype(np.float32))
        params[f"{name} bias"] = cyrt.zeros(shape[0])
    return params


def logits(params: Params, images: cyrt.Array) -> cyrt.Array:
    """Return the logits of the classes: two convolutions, each with a pool, and a layer."""
    x = images
    for name in ("first", "second"):
        x = nn.conv2d(x, params[name], padding=1, bias=params[f"{name} bias"], activation="relu")
        x = nn.max_pool(x, 2)
    return nn.linear(x.reshape((x.shape[0], -1)), params["last"], params["last bias"])


def loss(params: Params, images: cyrt.Array, labels: cyrt.Array) -> cyrt.Array:
    return nn.cross_entropy(logits(params, images), labels).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1437, help="digits to learn from")
    parser.add_argument("--channels", type=int, default=16, help="of the first convolution")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    for name in ("size", "channels", "epochs", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: expected 1 or more, got {getattr(options, name)}")
    print(f"device: {cyrt.Device().name}")

    host_images, host_labels = digits()
    images, labels = cyrt.asarray(host_images), cyrt.asarray(host_labels)
    count = min(options.size, len(host_labels) - HELD_BACK)
    batch = min(options.batch, count)
    steps = options.epochs * (count // batch)
    params = new_params(options.channels)
    optimizer = optim.adam(optim.cosine(1e-2, steps))
    state = optimizer.init(params)
    step = cyrt.value_and_grad(loss)

    begin = time.perf_counter()
    rng = np.random.default_rng(2)
    for epoch in range(1, options.epochs + 1):
        # Copied as one array: a batch is a row of indices, and all batches have one shape.
        rows = rng.permutation(count)[: count // batch * batch].reshape(-1, batch)
        total = cyrt.zeros(())
        for chosen in cyrt.asarray(rows):
            value, grads = step(params, images[chosen], labels[chosen])
            params, state = optimizer.update(grads, state, params)
            total += value
        if epoch % max(1, options.epochs // 4) == 0:
            print(f"epoch {epoch:3}: loss {total.item() / len(rows):.4f}")
    cyrt.synchronize()
    seconds = time.perf_counter() - begin
    found = cyrt.argmax(logits(params, images[-HELD_BACK:]), axis=1)
    accuracy = (found == labels[-HELD_BACK:]).astype("float32").mean().item()
    print(
        f"{steps / seconds:,.0f} steps a second; accuracy on {HELD_BACK} other digits "
        f"{100 * accuracy:.1f} %"
    )


if __name__ == "__main__":
    main()
