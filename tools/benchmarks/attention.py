"""Attention of one new token to a cache of keys and values: bytes of the cache read per second,
compared with a device copy and PyTorch's scaled_dot_product_attention. Attention of a prompt:
operations per second, compared with the same function of PyTorch; cyrt's by cuDNN, where it is
installed, and by its own kernels.

The keys and values before the position count once. cyrt appends the new row to the cache in the
same operation, and with "rope" turns it; PyTorch is given a slice of the cache that has it already.
Caches are cold, as behind the products of a layer: each call of a round has its own, and the round
begins behind operations on more memory than the device's caches hold, which also keep the device
busy while the host records. Of a prompt, two operations count for every feature of a query and key,
and of a weight and value, that is not hidden by the mask; the operands of all calls are the same.
"""

from __future__ import annotations

import operator
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import ROUNDS, Library, Row, Session, main

import cyrt
from cyrt import nn
from cyrt.builtin import library_attention


@dataclass(frozen=True)
class Case:
    """A model's heads, and a cache of which so many rows are full."""

    name: str
    batches: int
    heads: int
    shared: int
    features: int
    capacity: int
    filled: int


CASES = (
    Case("Llama-3.2-1B", 1, 32, 8, 64, 160, 159),
    Case("Llama-3.2-1B", 1, 32, 8, 64, 2048, 160),
    Case("Llama-3.2-1B", 1, 32, 8, 64, 2048, 2047),
    Case("Llama-3.2-1B", 1, 32, 8, 64, 32768, 32767),
    Case("Llama-3.1-8B", 1, 32, 8, 128, 8192, 8191),
    Case("Llama-3.1-8B", 16, 32, 8, 128, 2048, 2047),
    Case("GPT-2", 1, 12, 12, 64, 1024, 1023),
    Case("one head of keys", 1, 8, 1, 256, 8192, 8191),
)


@dataclass(frozen=True)
class Prompt:
    """A model's heads, and so many rows of queries, keys and values."""

    name: str
    heads: int
    shared: int
    features: int
    rows: int
    mask: str | None = "causal"  # or "bool", an array


PROMPTS = (
    *(Prompt("Llama-3.2-1B", 32, 8, 64, rows) for rows in (512, 2048, 8192)),
    *(Prompt("Llama-3.1-8B", 32, 8, 128, rows) for rows in (512, 2048, 8192)),
    Prompt("Llama-3.2-1B", 32, 8, 64, 2048, None),
    Prompt("Llama-3.2-1B", 32, 8, 64, 2048, "bool"),
)
SMALL_PROMPTS = (Prompt("small", 4, 2, 64, 70), Prompt("small", 2, 1, 40, 130, "bool"))
SMALL_CASES = (Case("small", 1, 4, 2, 64, 400, 333), Case("small", 2, 3, 3, 32, 50, 49))
DTYPES = "bfloat16", "float32"
ROTATED = 4 << 30  # bytes of all caches, at most
SETS = 4, 64  # calls of a round
BUSY_ELEMENTS, BUSY_CALLS = 1 << 27, 12  # what a round begins behind, about 3 ms
ROPE = {"base": 500_000.0}
TOLERANCES = {"bfloat16": 2e-2, "float32": 1e-5}

PROMPT_CALLS = 16  # the calls of a round
CHECKED_ROWS = 9  # rows of a prompt, from the first one to the last

Inputs = dict[str, Any]


def _inputs(case: Case, dtype: str) -> Inputs:
    rng = np.random.default_rng(3)
    to = cyrt.dtype(dtype).numpy
    shapes = {
        "q": (case.batches, case.heads, 1, case.features),
        "k": (case.batches, case.shared, 1, case.features),
        "v": (case.batches, case.shared, 1, case.features),
        "keys": (case.batches, case.shared, case.capacity, case.features),
        "values": (case.batches, case.shared, case.capacity, case.features),
    }
    return {
        name: rng.standard_normal(shape, dtype=np.float32).astype(to)
        for name, shape in shapes.items()
    }


def _turned(x: np.ndarray, position: int) -> np.ndarray:
    """One row of every head, by rope's angles."""
    half = x.shape[-1] // 2
    angles = position * ROPE["base"] ** (-np.arange(half) / half)
    low, high = x[..., :half], x[..., half:]
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.concatenate([low * cosine - high * sine, low * sine + high * cosine], -1)


def _expected(case: Case, host: Inputs, turn: bool) -> np.ndarray:
    at = case.filled
    q, k, v = (host[name].astype(np.float64) for name in "qkv")
    if turn:
        q, k = _turned(q, at), _turned(k, at).astype(host["k"].dtype).astype(np.float64)
    found = np.empty(q.shape)
    group = case.heads // case.shared
    for batch, head in np.ndindex(case.batches, case.heads):
        shared = head // group
        keys, values = (
            np.concatenate([host[name][batch, shared, :at].astype(np.float64), new[batch, shared]])
            for name, new in (("keys", k), ("values", v))
        )
        logits = keys @ q[batch, head, 0] * case.features**-0.5
        powers = np.exp(logits - logits.max())
        found[batch, head, 0] = powers @ values / powers.sum()
    return found


def _function(library: Library, case: Case, turn: bool) -> Callable[[Inputs], Any] | None:
    """The function of a set of inputs; None where the library has none."""
    at = case.filled
    if library.name == "cyrt":
        rope = ROPE if turn else None
        return lambda a: nn.attention(
            a["q"], a["k"], a["v"], cache=(a["keys"], a["values"]), position=at, rope=rope
        )
    if turn:
        return None
    from torch.nn import functional

    def attend(a: Inputs) -> Any:
        keys, values = a["keys"][:, :, : at + 1], a["values"][:, :, : at + 1]
        return functional.scaled_dot_product_attention(a["q"], keys, values, enable_gqa=True)

    return attend


def _on_device(library: Library, case: Case, host: Inputs) -> Inputs:
    inputs = {name: library.to_device(each) for name, each in host.items()}
    if library.name != "cyrt":
        for cache, new in (("keys", "k"), ("values", "v")):
            inputs[cache][:, :, case.filled] = inputs[new][:, :, 0]
    return inputs


def _device_time(library: Library, function: Callable[[Inputs], Any], sets: list[Inputs]) -> float:
    """Median µs a call on the device."""
    busy = library.to_device(np.zeros(BUSY_ELEMENTS, np.float32))
    times = []
    for _ in range(ROUNDS):
        for _ in range(BUSY_CALLS):
            busy * 2
        begin = library.record_event()
        for each in sets:
            function(each)
        times.append(1e3 * library.elapsed(begin, library.record_event()) / len(sets))
    return statistics.median(times)


def _prompt_inputs(case: Prompt) -> Inputs:
    rng = np.random.default_rng(4)
    to = cyrt.dtype("bfloat16").numpy
    inputs = {
        name: rng.standard_normal((1, heads, case.rows, case.features), dtype=np.float32).astype(to)
        for name, heads in (("q", case.heads), ("k", case.shared), ("v", case.shared))
    }
    if case.mask == "bool":
        inputs["mask"] = np.tri(case.rows, dtype=bool)
    return inputs


def _prompt_function(library: Library, case: Prompt) -> Callable[[Inputs], Any]:
    causal = case.mask == "causal"
    if library.name == "cyrt":
        return lambda a: nn.attention(
            a["q"], a["k"], a["v"], mask="causal" if causal else a.get("mask")
        )
    from torch.nn import functional

    return lambda a: functional.scaled_dot_product_attention(
        a["q"], a["k"], a["v"], attn_mask=a.get("mask"), is_causal=causal, enable_gqa=True
    )


def _check_prompt(case: Prompt, host: Inputs, found: np.ndarray) -> None:
    """Compare some rows of every head with NumPy in float64."""
    q, k, v = (host[name][0].astype(np.float64) for name in "qkv")
    for head in range(case.heads):
        shared = head // (case.heads // case.shared)
        for row in np.linspace(0, case.rows - 1, CHECKED_ROWS).astype(int):
            seen = case.rows if case.mask is None else row + 1
            logits = k[shared, :seen] @ q[head, row] * case.features**-0.5
            powers = np.exp(logits - logits.max())
            wanted = powers @ v[shared, :seen] / powers.sum()
            np.testing.assert_allclose(
                found[0, head, row], wanted, rtol=2e-2, atol=2e-2 * np.abs(wanted).max()
            )


@contextmanager
def _served(served: bool | None) -> Iterator[None]:
    """Allow cuDNN to cyrt or not; None: as it is used by default."""
    device = operator.index(cyrt.Device())
    library_attention.decide(device, served, behind=0)
    try:
        yield
    finally:
        library_attention.decide(device)


def _variants(library: Library, case: Prompt) -> list[tuple[str, bool | None]]:
    """The names of a library's variants, and whether cyrt may use cuDNN."""
    own = library.name == "cyrt" and case.mask != "bool"
    return [(library.name, None)] + [("cyrt, own kernels", False)] * own


def _measure_prompts(session: Session, libraries: list[Library]) -> Iterator[Row]:
    for case in SMALL_PROMPTS if session.small else PROMPTS:
        host = _prompt_inputs(case)
        pairs = case.rows**2 if case.mask is None else case.rows * (case.rows + 1) // 2
        for library in libraries:
            inputs = {name: library.to_device(each) for name, each in host.items()}
            function = _prompt_function(library, case)
            for name, served in _variants(library, case):
                with _served(served):
                    _check_prompt(case, host, library.to_host(function(inputs)).astype(np.float64))
                    took = None
                    if not session.small:
                        took = _device_time(library, function, [inputs] * PROMPT_CALLS)
                rate = 0 if took is None else 4 * case.heads * pairs * case.features / took / 1e6
                yield Row(
                    f"{case.name}, a prompt",
                    f"{name}: {case.heads} heads over {case.shared}, {case.rows} × "
                    f"{case.features} bfloat16, mask {case.mask}",
                    took,
                    note=f"{rate:,.0f} TFLOP/s" if rate else "",
                )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every cache, element type and library, and for every prompt and library."""
    libraries = [each for each in session.libraries if each.name in ("cyrt", "PyTorch")]
    for case in SMALL_CASES if session.small else CASES:
        for dtype in DTYPES:
            host = _inputs(case, dtype)
            nbytes = 2 * case.batches * case.shared * case.filled * case.features
            nbytes *= cyrt.dtype(dtype).itemsize
            whole = 2 * host["keys"].nbytes
            count = 1 if session.small else min(max(ROTATED // whole, SETS[0]), SETS[1])
            for library in libraries:
                sets = [_on_device(library, case, host) for _ in range(count)]
                for turn in False, True:
                    function = _function(library, case, turn)
                    if function is None:
                        continue
                    found = library.to_host(function(sets[0])).astype(np.float64)
                    wanted = _expected(case, host, turn)
                    np.testing.assert_allclose(
                        found,
                        wanted,
                        rtol=TOLERANCES[dtype],
                        atol=TOLERANCES[dtype] * np.abs(wanted).max(),
                    )
                    took = None if session.small else _device_time(library, function, sets)
                    yield Row(
                        f"{case.name}{' with rope' if turn else ''}",
                        f"{library.name}: {case.batches} × {case.heads} heads over {case.shared}, "
                        f"{case.filled} of {case.capacity} × {case.features} {dtype}",
                        took,
                        note=session.copy_note(took, nbytes),
                    )
    yield from _measure_prompts(session, libraries)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
