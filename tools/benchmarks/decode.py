"""A transformer of random weights, token by token and over a prompt, as PyTorch's eager functions
compute it, and as a CUDA graph of these does: wall time, everything included (embedding, rotary
positions, cache, choice of the token).

The model is that of `examples/transformer_decode.py`; PyTorch has the same weights, without a copy.
Its eager step attends to the filled part of the cache. Its step in a graph, whose shapes cannot
change, attends to the whole cache under a mask. A token's time is the mean of 127 tokens behind a
prompt of 32. A prompt is measured once its length is known, and at its first time.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, Session, main

import cyrt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples"))

import transformer_decode as example

PROMPT, TOKENS, LONG_PROMPT, ROUNDS = 32, 128, 2048, 5
TOLERANCE = 0.05  # times the largest logit: bfloat16 is rounded in another order
NAMES = {"gpt2": "GPT-2", "llama": "Llama-3.2-1B", "tiny": "tiny"}


class TorchModel:
    """The example's model in PyTorch."""

    def __init__(self, model: example.Transformer, capacity: int) -> None:
        import torch
        from torch.nn import functional

        self.torch, self.functional = torch, functional
        self.shape = shape = model.shape
        cyrt.synchronize()
        self.weights = {name: torch.from_dlpack(x) for name, x in model.weights.items()}
        self.layers = [
            {name: torch.from_dlpack(x) for name, x in each.items()} for each in model.layers
        ]
        half = shape.head // 2
        angles = torch.arange(capacity, device="cuda")[:, None] * shape.base ** (
            -torch.arange(half, device="cuda") / half
        )
        angles = torch.cat([angles, angles], -1)
        self.cosine, self.sine = angles.cos().bfloat16(), angles.sin().bfloat16()
        size = (1, shape.key_heads, capacity, shape.head)
        self.caches = [
            tuple(torch.zeros(size, dtype=torch.bfloat16, device="cuda") for _ in range(2))
            for _ in self.layers
        ]
        self.places = torch.arange(capacity, device="cuda")

    def norm(self, x: Any, w: dict[str, Any], name: str) -> Any:
        width, eps = (self.shape.width,), self.shape.eps
        if self.shape.positions:
            return self.functional.layer_norm(x, width, w[name], w[f"{name}_bias"], eps)
        return self.functional.rms_norm(x, width, w[name], eps)

    def turn(self, x: Any, places: Any) -> Any:
        low, high = x.chunk(2, -1)
        turned = self.torch.cat([-high, low], -1)
        return x * self.cosine[places] + turned * self.sine[places]

    def logits(self, tokens: Any, places: Any, filled: int | None) -> Any:
        """The logits behind the last of the tokens (1, T), which stand at places (T,) of the text.
        Attend to so many rows of the cache, or to all under a mask."""
        shape, w, linear = self.shape, self.weights, self.functional.linear
        x = w["embedding"][tokens]
        if shape.positions:
            x = x + w["positions"][places]
        mask = None if filled else (self.places <= places[:, None])
        for layer, cache in zip(self.layers, self.caches, strict=True):
            y = self.norm(x, layer, "norm_1")
            heads = (shape.heads, shape.key_heads, shape.key_heads)
            parts = linear(y, layer["qkv"], layer.get("qkv_bias")).split(
                [each * shape.head for each in heads], -1
            )
            q, k, v = (
                part.unflatten(-1, (each, shape.head)).transpose(1, 2)
                for part, each in zip(parts, heads, strict=True)
            )
            if not shape.positions:
                q, k = self.turn(q, places), self.turn(k, places)
            cache[0].index_copy_(2, places, k)
            cache[1].index_copy_(2, places, v)
            y = self.functional.scaled_dot_product_attention(
                q,
                cache[0][:, :, :filled],
                cache[1][:, :, :filled],
                attn_mask=mask,
                is_causal=mask is None and tokens.shape[1] > 1,
                enable_gqa=True,
            )
            x = x + linear(y.transpose(1, 2).flatten(2), layer["o"], layer.get("o_bias"))
            y = self.norm(x, layer, "norm_2")
            if shape.positions:
                y = linear(y, layer["up"], layer["up_bias"])
                y = self.functional.gelu(y, approximate="tanh")
            else:
                gate, up = linear(y, layer["gate_up"]).chunk(2, -1)
                y = self.functional.silu(gate) * up
            x = x + linear(y, layer["down"], layer.get("down_bias"))
        return linear(self.norm(x[:, -1:], w, "norm"), w["head"])

    def generate(self, prompt: Any, count: int, step: Callable[..., Any]) -> float:
        """Seconds that the tokens after the first one take."""
        length = prompt.shape[0]
        token = self.logits(prompt[None], self.places[:length], length).argmax(-1)
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(count - 1):
            token = step(token, length + i)
        self.torch.cuda.synchronize()
        return time.perf_counter() - begin

    def eager_step(self, token: Any, at: int) -> Any:
        return self.logits(token, self.places[at : at + 1], at + 1).argmax(-1)

    def captured_step(self) -> Callable[..., Any]:
        """A step that launches a graph of itself."""
        token, place = self.places[:1][None].clone(), self.places[:1].clone()
        stream, graph = self.torch.cuda.Stream(), self.torch.cuda.CUDAGraph()
        with self.torch.cuda.stream(stream):
            for _ in range(3):
                self.logits(token, place, None)
        self.torch.cuda.synchronize()
        with self.torch.cuda.graph(graph):
            token.copy_(self.logits(token, place, None).argmax(-1))
            place += 1

        def step(given: Any, at: int) -> Any:
            if at == PROMPT:
                token.copy_(given)
                place.fill_(at)
            graph.replay()
            return token

        return step


def _token_rate(seconds: float, count: int) -> tuple[float, str]:
    return 1e6 * seconds / (count - 1), f"{(count - 1) / seconds:,.0f} tokens/s"


def _check(model: example.Transformer, text: np.ndarray, found: np.ndarray) -> None:
    """Compare logits behind a text with those that cyrt computes from the whole text at once."""
    caches = model.caches(len(text))
    wanted = model.logits(cyrt.asarray(text)[None], caches, 0).numpy().astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())


def _token_by_token(model: example.Transformer, text: np.ndarray) -> np.ndarray:
    caches, tokens = model.caches(len(text)), cyrt.asarray(text)[None]
    for i in range(len(text)):
        logits = model.logits(tokens[:, i : i + 1], caches, i)
    found: np.ndarray = logits.numpy().astype(np.float64)
    return found


def _median_of_firsts(
    synchronize: Callable[[], None], work: Callable[[int], Any], longest: int
) -> float:
    """Median µs of calls with several lengths up to the longest one, each of which is new."""
    times = []
    for length in range(longest - ROUNDS, longest):
        synchronize()
        begin = time.perf_counter()
        work(length)
        synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def _median_time(synchronize: Callable[[], None], work: Callable[[], Any]) -> float:
    """Median µs of a call and the wait for it, after one that is not timed."""
    times = []
    for _ in range(ROUNDS + 1):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def _measure_shape(session: Session, key: str) -> Iterator[Row]:
    shape = example.SHAPES[key]
    model = example.random_model(shape)
    rng = np.random.default_rng(0)
    text = rng.integers(0, shape.vocabulary, PROMPT)
    _check(model, text, _token_by_token(model, text))
    name, what = f"{NAMES[key]}, a token", "{}: bfloat16, 32 tokens before"
    if session.small:
        yield Row(name, what.format("cyrt"))
        return
    prompt = cyrt.asarray(text)
    seconds = [example.generate(model, prompt, TOKENS)[1]() for _ in range(3)][-1]
    took, note = _token_rate(seconds, TOKENS)
    yield Row(name, what.format("cyrt"), took, note=note)
    long = min(LONG_PROMPT, shape.positions or LONG_PROMPT)
    rows, caches = rng.integers(0, shape.vocabulary, long), model.caches(long)
    tokens = cyrt.asarray(rows)[None]
    took = _median_time(cyrt.synchronize, lambda: model.logits(tokens, caches, 0))
    last, of_prompt = f"{NAMES[key]}, a prompt", f"{{}}: bfloat16, {long:,} tokens"
    yield Row(last, of_prompt.format("cyrt"), took, note=f"{1e6 * long / took:,.0f} tokens/s")
    first, of_first = f"{last} of a new length", f"{{}}: bfloat16, up to {long - 1:,} tokens"
    took = _median_of_firsts(
        cyrt.synchronize, lambda length: model.logits(tokens[:, :length], caches, 0), long
    )
    yield Row(first, of_first.format("cyrt"), took)
    if "PyTorch" not in [library.name for library in session.libraries]:
        return
    other = TorchModel(model, max(PROMPT + TOKENS, long))
    torch = other.torch
    with torch.inference_mode():
        there = torch.from_numpy(text).cuda()
        found = other.logits(there[None], other.places[:PROMPT], PROMPT)
        _check(model, text, found.double().cpu().numpy())
        more = torch.from_numpy(rows).cuda()[None]
        took = _median_time(
            torch.cuda.synchronize, lambda: other.logits(more, other.places[:long], long)
        )
        note = f"{1e6 * long / took:,.0f} tokens/s"
        yield Row(last, of_prompt.format("PyTorch"), took, note=note)
        took = _median_of_firsts(
            torch.cuda.synchronize,
            lambda length: other.logits(more[:, :length], other.places[:length], length),
            long,
        )
        yield Row(first, of_first.format("PyTorch"), took)
        other = TorchModel(model, PROMPT + TOKENS)
        for way, step in (
            ("PyTorch", other.eager_step),
            ("PyTorch, a CUDA graph", other.captured_step()),
        ):
            seconds = [other.generate(there, TOKENS, step) for _ in range(3)][-1]
            took, note = _token_rate(seconds, TOKENS)
            yield Row(name, what.format(way), took, note=note)


def measure(session: Session) -> Iterator[Row]:
    """Yield rows of one token and of prompts for every shape and library."""
    for key in ("tiny",) if session.small else ("gpt2", "llama"):
        yield from _measure_shape(session, key)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
