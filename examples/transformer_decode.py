"""A decoder-only transformer, token by token: tokens a second, and the share of the memory's
bandwidth that the weights' bytes make.

It is ordinary array code: every operation is called when its turn comes, and arrays are new ones.
The caches of keys and values are the only state. The position is an array on the device, as the
tokens are, so that a token is the same batch of operations as the one before; nothing is captured,
and no buffer is fixed.

Shapes are GPT-2's, Llama-3.2-1B's, and a tiny one, which is the default on the emulated device; on
a GPU it is Llama's. Weights are random, or those of a folder of safetensors by Llama's names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cyrt
from cyrt import nn

PROMPT = 32  # tokens
Cache = tuple[cyrt.Array, cyrt.Array]
Weights = dict[str, cyrt.Array]


@dataclass(frozen=True)
class Shape:
    """The sizes of a model. Learned embeddings of `positions` make it GPT-2's kind: layer_norm,
    GELU and biases; without them it is Llama's: rms_norm, SwiGLU and rotary positions."""

    layers: int
    width: int
    heads: int
    key_heads: int
    head: int
    hidden: int
    vocabulary: int
    positions: int = 0
    base: float = 500_000.0
    eps: float = 1e-5


SHAPES = {
    "gpt2": Shape(12, 768, 12, 12, 64, 3072, 50_257, positions=1024),
    "llama": Shape(16, 2048, 32, 8, 64, 8192, 128_256),
    "tiny": Shape(2, 64, 4, 2, 16, 128, 256),
}


def layer_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """The shapes of a layer's weights, (out, in)."""
    rows = shape.head * (shape.heads + 2 * shape.key_heads)
    wide, joined = shape.width, shape.head * shape.heads
    if shape.positions:
        return {
            "norm_1": (wide,),
            "norm_1_bias": (wide,),
            "qkv": (rows, wide),
            "qkv_bias": (rows,),
            "o": (wide, joined),
            "o_bias": (wide,),
            "norm_2": (wide,),
            "norm_2_bias": (wide,),
            "up": (shape.hidden, wide),
            "up_bias": (shape.hidden,),
            "down": (wide, shape.hidden),
            "down_bias": (wide,),
        }
    return {
        "norm_1": (wide,),
        "qkv": (rows, wide),
        "o": (wide, joined),
        "norm_2": (wide,),
        "gate_up": (2 * shape.hidden, wide),
        "down": (wide, shape.hidden),
    }


class Transformer:
    """A model. Its matrix of the output may be that of the embedding.

    Attributes
    ----------
    shape : Shape
    weights : dict of str to Array
        ``embedding``, ``head`` and ``norm``; by the kind of model ``norm_bias`` and ``positions``,
        or the divisors of the rotation's angles, ``freqs``.
    layers : list of dict
        The weights of each layer: see `layer_shapes`.
    """

    def __init__(self, shape: Shape, weights: Weights, layers: list[Weights]) -> None:
        self.shape, self.weights, self.layers = shape, weights, layers
        self.rope = {"base": shape.base, "freqs": weights.get("freqs")}

    def caches(self, capacity: int, batches: int = 1) -> list[Cache]:
        """Empty caches of all layers."""
        shape = (batches, self.shape.key_heads, capacity, self.shape.head)
        kind = self.weights["embedding"].dtype
        return [(cyrt.zeros(shape, dtype=kind), cyrt.zeros(shape, dtype=kind)) for _ in self.layers]

    def logits(
        self, tokens: cyrt.Array, caches: list[Cache], position: int | cyrt.Array
    ) -> cyrt.Array:
        """The logits (B, 1, vocabulary) behind the last of the tokens (B, T), which begin at a
        position."""
        x = self.embed(tokens, position)
        for w, cache in zip(self.layers, caches, strict=True):
            x = self.layer(x, w, cache, position)
        x, w = x[:, -1:], self.weights
        if self.shape.positions:
            norm = w["norm"], w["norm_bias"], self.shape.eps
            return nn.linear(x, w["head"], layer_norm=norm)
        return nn.linear(x, w["head"], rms_norm=(w["norm"], self.shape.eps))

    def embed(self, tokens: cyrt.Array, position: int | cyrt.Array) -> cyrt.Array:
        x = cyrt.take(self.weights["embedding"], tokens, axis=0)
        if not self.shape.positions:
            return x
        table, rows = self.weights["positions"], tokens.shape[1]
        if isinstance(position, int):
            return x + table[position : position + rows]
        places = position if rows == 1 else position + cyrt.arange(rows)
        return x + cyrt.take(table, places, axis=0)

    def layer(
        self, x: cyrt.Array, w: Weights, cache: Cache, position: int | cyrt.Array
    ) -> cyrt.Array:
        eps = self.shape.eps
        if self.shape.positions:
            norm = w["norm_1"], w["norm_1_bias"], eps
            y = nn.linear(x, w["qkv"], w["qkv_bias"], layer_norm=norm)
            y = self.attend(y, cache, position, None)
            x = nn.linear(y, w["o"], w["o_bias"], residual=x)
            norm = w["norm_2"], w["norm_2_bias"], eps
            y = nn.linear(x, w["up"], w["up_bias"], "gelu_tanh", layer_norm=norm)
            return nn.linear(y, w["down"], w["down_bias"], residual=x)
        y = nn.linear(x, w["qkv"], rms_norm=(w["norm_1"], eps))
        x = nn.linear(self.attend(y, cache, position, self.rope), w["o"], residual=x)
        y = nn.linear(x, w["gate_up"], activation="swiglu", rms_norm=(w["norm_2"], eps))
        return nn.linear(y, w["down"], residual=x)

    def attend(
        self, qkv: cyrt.Array, cache: Cache, position: int | cyrt.Array, rope: dict[str, Any] | None
    ) -> cyrt.Array:
        """Divide (B, T, rows) into heads, attend, and join the heads again."""
        batches, rows, _ = qkv.shape
        shape, parts, at = self.shape, [], 0
        for heads in shape.heads, shape.key_heads, shape.key_heads:
            part = qkv[..., at : at + heads * shape.head]
            parts.append(part.reshape(batches, rows, heads, shape.head).swapaxes(1, 2))
            at += heads * shape.head
        y = nn.attention(*parts, cache=cache, position=position, rope=rope)
        return y.swapaxes(1, 2).reshape(batches, rows, shape.heads * shape.head)


# -- weights --------------------------------------------------------------------------------------


def random_model(shape: Shape, dtype: str = "bfloat16") -> Transformer:
    """A model of random weights, about as large as trained ones."""

    def made(name: str, of: tuple[int, ...]) -> cyrt.Array:
        numbers = cyrt.random.normal(shape=of, dtype=cyrt.float32)
        if len(of) == 1:
            numbers = numbers * 0.1 + (0.0 if name.endswith("bias") else 1.0)
        else:
            numbers = numbers * of[-1] ** -0.5
        return numbers.astype(dtype)

    weights = {"embedding": made("embedding", (shape.vocabulary, shape.width))}
    weights["head"] = weights["embedding"]
    weights["norm"] = made("norm", (shape.width,))
    if shape.positions:
        weights["norm_bias"] = made("norm_bias", (shape.width,))
        weights["positions"] = made("positions", (shape.positions, shape.width))
    each = layer_shapes(shape)
    return Transformer(
        shape,
        weights,
        [{name: made(name, of) for name, of in each.items()} for _ in range(shape.layers)],
    )


def read_config(folder: Path, shape: Shape) -> tuple[Shape, dict[str, Any]]:
    """The shape in a folder's config.json, and what it says of rope; the given one without it."""
    file = folder / "config.json"
    if not file.exists():
        return shape, {}
    config = json.loads(file.read_text(encoding="utf-8"))
    try:
        heads = config["num_attention_heads"]
        found = Shape(
            layers=config["num_hidden_layers"],
            width=config["hidden_size"],
            heads=heads,
            key_heads=config.get("num_key_value_heads", heads),
            head=config.get("head_dim") or config["hidden_size"] // heads,
            hidden=config["intermediate_size"],
            vocabulary=config["vocab_size"],
            base=config.get("rope_theta", 10_000.0),
            eps=config.get("rms_norm_eps", 1e-5),
        )
    except KeyError as error:
        raise ValueError(f"{file}: there is no {error}, which Llama's has") from None
    return found, config.get("rope_scaling") or {}


def frequencies(shape: Shape, scaling: dict[str, Any]) -> cyrt.Array:
    """The divisors of the pairs' angles, as Llama 3 scales them for long texts."""
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind != "llama3":
        raise ValueError(f"rope_scaling: expected the type llama3, got {kind!r}")
    divisors = shape.base ** (2 * np.arange(shape.head // 2) / shape.head)
    factor, low, high = (scaling[key] for key in ("factor", "low_freq_factor", "high_freq_factor"))
    waves = scaling["original_max_position_embeddings"] / (2 * np.pi * divisors)
    share = np.clip((waves - low) / (high - low), 0, 1)  # of the angle that stays
    return cyrt.asarray((divisors / (share + (1 - share) / factor)).astype(np.float32))


def load_model(folder: Path, shape: Shape) -> Transformer:
    """The model in a folder of safetensors, by Llama's names.

    Raises
    ------
    FileNotFoundError
        The folder has no such file.
    ValueError, TypeError
        A tensor is missing, or of another shape or type.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder}: there is no file *.safetensors")
    shape, scaling = read_config(folder, shape)
    tensors: Weights = {}
    for file in files:
        tensors.update(cyrt.load_safetensors(file))
    kind = None

    def taken(name: str, *of: int) -> cyrt.Array:
        nonlocal kind
        if name not in tensors:
            raise ValueError(f"{folder}: {name} is missing, of shape {of}")
        found = tensors[name]
        kind = kind or found.dtype
        if found.shape != of:
            raise ValueError(f"{folder}: {name}: expected shape {of}, got {found.shape}")
        if found.dtype.name not in ("float16", "bfloat16", "float32"):
            raise TypeError(
                f"{folder}: {name}: expected float16, bfloat16 or float32, got {found.dtype}"
            )
        if found.dtype != kind:
            raise TypeError(
                f"{folder}: {name}: expected {kind}, the type of the others, got {found.dtype}"
            )
        return found

    wide, rows, shared = shape.width, shape.heads * shape.head, shape.key_heads * shape.head
    weights = {
        "embedding": taken("model.embed_tokens.weight", shape.vocabulary, wide),
        "norm": taken("model.norm.weight", wide),
    }
    tied = "lm_head.weight" not in tensors
    weights["head"] = (
        weights["embedding"] if tied else taken("lm_head.weight", shape.vocabulary, wide)
    )
    parts = []
    for i in range(shape.layers):
        at = f"model.layers.{i}"
        parts.append(
            {
                "norm_1": [taken(f"{at}.input_layernorm.weight", wide)],
                "qkv": [
                    taken(f"{at}.self_attn.q_proj.weight", rows, wide),
                    taken(f"{at}.self_attn.k_proj.weight", shared, wide),
                    taken(f"{at}.self_attn.v_proj.weight", shared, wide),
                ],
                "o": [taken(f"{at}.self_attn.o_proj.weight", wide, rows)],
                "norm_2": [taken(f"{at}.post_attention_layernorm.weight", wide)],
                "gate_up": [
                    taken(f"{at}.mlp.gate_proj.weight", shape.hidden, wide),
                    taken(f"{at}.mlp.up_proj.weight", shape.hidden, wide),
                ],
                "down": [taken(f"{at}.mlp.down_proj.weight", wide, shape.hidden)],
            }
        )
    if scaling:
        weights["freqs"] = frequencies(shape, scaling)
    return Transformer(
        shape,
        weights,
        [
            {name: cyrt.concat(some) if len(some) > 1 else some[0] for name, some in each.items()}
            for each in parts
        ],
    )


# -- decoding -------------------------------------------------------------------------------------


def choose(logits: cyrt.Array, k: int) -> cyrt.Array:
    """The next tokens (B, 1): the most likely ones, or of the k most likely one by its chance."""
    if k == 0:
        return cyrt.argmax(logits, axis=-1)
    values, indices = cyrt.top_k(logits, k)
    chosen = cyrt.random.categorical(values)
    return cyrt.take_along_axis(indices, chosen[..., None], axis=-1)[..., 0]


def generate(
    model: Transformer, prompt: cyrt.Array, count: int, k: int = 0
) -> tuple[cyrt.Array, Callable[[], float]]:
    """Return the prompt (T,) with so many tokens behind it, and a function that waits for them: it
    returns the seconds that the tokens after the first one took."""
    length = prompt.shape[0]
    caches = model.caches(length + count)
    text = cyrt.concat([prompt, cyrt.zeros(count, dtype=prompt.dtype)])
    token = choose(model.logits(prompt[None], caches, 0), k)
    position = cyrt.full(1, length, dtype=cyrt.int32)
    text[position] = token[0]
    cyrt.synchronize()
    begin = time.perf_counter()
    for _ in range(count - 1):
        token = choose(model.logits(token, caches, position), k)
        position += 1
        text[position] = token[0]
    cyrt.commit()

    def wait() -> float:
        cyrt.synchronize()
        return time.perf_counter() - begin

    return text, wait


def operations_of(work: Callable[[], Any]) -> int:
    """How many operations a function records."""
    encoder = cyrt.current_encoder()
    before = encoder.stats()["operations"]
    work()
    return encoder.stats()["operations"] - before


def copy_rate(nbytes: int) -> float:
    """Bytes that a plain copy reads and writes a second."""
    source, target = cyrt.Buffer(nbytes), cyrt.Buffer(nbytes)
    source.fill(1)
    seconds = []
    for _ in range(5):
        begin, end = cyrt.Event(), cyrt.Event()
        begin.record()
        target.copy_from(source)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return 2 * nbytes / sorted(seconds)[2]


def bytes_read(model: Transformer) -> int:
    """Bytes of the weights that a token reads: all but the rows of embeddings of other tokens."""
    kept = [model.weights["norm"], model.weights["head"]]
    return sum(x.nbytes for w in [*model.layers, dict(enumerate(kept))] for x in w.values())


def report(model: Transformer, count: int, k: int) -> None:
    """Generate, and print what it took."""
    device, shape = cyrt.Device(), model.shape
    print(
        f"device {device.index}: {device.name} "
        f"({'emulated, on the CPU: its times say nothing' if device.emulated else 'GPU'})"
    )
    print(
        f"{shape.layers} layers of width {shape.width}, {shape.heads} heads over "
        f"{shape.key_heads}, vocabulary {shape.vocabulary:,}, {model.weights['head'].dtype}"
    )
    rng = np.random.default_rng(0)
    prompt = cyrt.asarray(rng.integers(0, shape.vocabulary, PROMPT))
    generate(model, prompt, count, k)[1]()  # loads kernels, and makes graphs
    encoder = cyrt.current_encoder()
    before = encoder.stats()
    text, wait = generate(model, prompt, count, k)
    seconds = wait()
    after = encoder.stats()
    print(f"tokens {PROMPT} to {PROMPT + count}: {text.numpy()[PROMPT:].tolist()}")
    if count > 1:
        rate, nbytes = (count - 1) / seconds, bytes_read(model)
        copied = copy_rate(10**6 if device.emulated else 10**9)
        print(
            f"{rate:,.1f} tokens a second; {nbytes / 1e6:,.1f} MB of weights a token are "
            f"{100 * rate * nbytes / copied:.1f} % of a copy's {copied / 1e9:,.1f} GB/s"
        )
    cache, x = (
        model.caches(1)[0],
        cyrt.zeros((1, 1, shape.width), dtype=model.weights["head"].dtype),
    )
    here = cyrt.zeros(1, dtype=cyrt.int32)
    per_layer = operations_of(lambda: model.layer(x, model.layers[0], cache, here))
    told = {key: after[key] - before[key] for key in ("operations", "patched", "misses")}
    print(
        f"{per_layer} operations a layer; in all {told['operations']:,} operations, of which "
        f"{told['patched']:,} were patched in their graphs, {told['misses']} new graphs"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shape", choices=SHAPES, help="default: tiny on the emulated device, llama on a GPU"
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FOLDER",
        help="safetensors by Llama's names, of the shape in config.json, or of --shape",
    )
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="to generate")
    parser.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="of which one is drawn; 0: the first one"
    )
    options = parser.parse_args(arguments)
    shape = SHAPES[options.shape or ("tiny" if cyrt.Device().emulated else "llama")]
    if options.tokens < 1 or not 0 <= options.top_k <= shape.vocabulary:
        parser.error(f"--tokens from 1, --top-k from 0 to {shape.vocabulary:,}")
    if shape.positions and (options.checkpoint or PROMPT + options.tokens > shape.positions):
        parser.error(
            f"gpt2 has no checkpoint by Llama's names, and {shape.positions} positions at most"
        )
    if options.checkpoint is None:
        model = random_model(shape)
    else:
        try:
            model = load_model(options.checkpoint, shape)
        except (OSError, ValueError, TypeError) as error:
            sys.exit(f"{parser.prog}: {error}")
    report(model, options.tokens, options.top_k)


if __name__ == "__main__":
    main()
