"""A transformer learns to write like cyrt's documentation, character by character."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import cyrt
from cyrt import nn, optim

DOCS = Path(__file__).resolve().parent.parent / "docs"
Params = dict[str, Any]


def text_of_docs() -> str:
    """Return the text of the pages of the documentation, without characters beyond ASCII."""
    pages = sorted(DOCS.glob("*.md")) + sorted(DOCS.glob("*/*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return "".join(each for each in text if each.isascii())


def new_params(characters: int, width: int, layers: int) -> Params:
    rng = np.random.default_rng(0)

    def matrix(outputs: int, inputs: int) -> cyrt.Array:
        weights = rng.standard_normal((outputs, inputs)) / inputs**0.5
        return cyrt.asarray(weights.astype(np.float32))

    return {
        "table": matrix(characters, width),
        "layers": [
            {
                "attention norm": cyrt.ones(width),
                "qkv": matrix(3 * width, width),
                "out": matrix(width, width),
                "norm": cyrt.ones(width),
                "up": matrix(4 * width, width),
                "down": matrix(width, 4 * width),
            }
            for _ in range(layers)
        ],
        "norm": cyrt.ones(width),
        "last": matrix(characters, width),
    }


def logits(params: Params, x: cyrt.Array, heads: int) -> cyrt.Array:
    """Return for each character of x, (batch, length), what the next one may be."""
    batch, length = x.shape
    h = nn.embedding(x, params["table"])
    for layer in params["layers"]:
        y = nn.linear(nn.rms_norm(h, layer["attention norm"]), layer["qkv"])
        y = y.reshape((batch, length, 3, heads, -1))
        q, k, v = (cyrt.swapaxes(y[:, :, i], 1, 2) for i in range(3))
        y = nn.attention(q, k, v, mask="causal", rope={})
        h = h + nn.linear(cyrt.swapaxes(y, 1, 2).reshape(h.shape), layer["out"])
        y = nn.linear(nn.rms_norm(h, layer["norm"]), layer["up"], activation="gelu")
        h = h + nn.linear(y, layer["down"])
    return nn.linear(nn.rms_norm(h, params["norm"]), params["last"])


def write(params: Params, alphabet: str, start: str, count: int, context: int, heads: int) -> str:
    """Return a text that goes on from its start."""
    text = start
    for _ in range(count):
        x = cyrt.asarray([[alphabet.index(each) for each in text[-context:]]])
        text += alphabet[int(cyrt.random.categorical(logits(params, x, heads)[0, -1]).item())]
    return text


def plot(losses: list[float], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="loss, nats a character")
    figure.savefig(file)
    print(f"the loss of each step: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=float, default=2.0, help="the loss at which training ends")
    parser.add_argument("--steps", type=int, default=2000, help="after which training ends, too")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64, help="characters of an example")
    parser.add_argument("--batch", type=int, default=32, help="examples of a step")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the loss (matplotlib)")
    options = parser.parse_args()
    for name in ("steps", "width", "layers", "heads", "context", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: expected 1 or more, got {getattr(options, name)}")
    if options.width % (2 * options.heads):
        parser.error(f"--width: expected a multiple of {2 * options.heads}, got {options.width}")
    print(f"device: {cyrt.Device().name}")

    text = text_of_docs()
    alphabet = "".join(sorted(set(text)))
    codes = np.array([alphabet.index(each) for each in text], np.int32)
    print(f"{len(codes):,} characters, {len(alphabet)} different ones")
    params = new_params(len(alphabet), options.width, options.layers)
    rate = optim.warmup(optim.cosine(3e-3, options.steps, end=3e-4), 20)
    optimizer = optim.clip_by_global_norm(1.0, optim.adamw(rate, b2=0.99))
    state = optimizer.init(params)

    def loss(params: Params, x: cyrt.Array, y: cyrt.Array) -> cyrt.Array:
        return nn.cross_entropy(logits(params, x, options.heads), y).mean()

    step = cyrt.value_and_grad(loss)
    rng = np.random.default_rng(1)
    values: list[cyrt.Array] = []
    recent = float("inf")
    begin = time.perf_counter()
    with Progress() as progress:
        task = progress.add_task("learning", total=options.steps)
        while len(values) < options.steps and recent > options.until:
            first = rng.integers(0, len(codes) - options.context - 1, (options.batch, 1))
            rows = codes[first + np.arange(options.context + 1)]
            value, grads = step(params, cyrt.asarray(rows[:, :-1]), cyrt.asarray(rows[:, 1:]))
            params, state = optimizer.update(grads, state, params)
            values.append(value)
            if len(values) % 10 == 0:  # only then is a value waited for
                recent = cyrt.stack(values[-10:]).mean().item()
                progress.update(
                    task, completed=len(values), description=f"learning, loss {recent:.3f}"
                )
    seconds = time.perf_counter() - begin
    losses = cyrt.stack(values).numpy().tolist()
    print(
        f"{len(losses)} steps, {len(losses) / seconds:,.0f} a second; the loss fell from "
        f"{losses[0]:.3f} to {recent:.3f}"
    )
    print(write(params, alphabet, "The ", 80, options.context, options.heads))
    if options.plot is not None:
        plot(losses, options.plot)
    if not recent <= options.until:
        raise SystemExit(f"the loss has not fallen to {options.until}")


if __name__ == "__main__":
    main()
