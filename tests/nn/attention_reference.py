"""What the tests of attention share: types, arguments of rope, and NumPy in float64."""

from __future__ import annotations

import numpy as np
from rows_of_numbers import exact, numbers

import cyrt

TYPES = ["float16", "bfloat16", "float32"]
ROPES = {
    "no rope": None,
    "halves": {"base": 500.0},
    "neighbours": {"traditional": True, "dims": 8, "scale": 0.5},
}


def turned(x, rope, offset):
    """x (B, H, T, D) by rope's arguments, from a position on, or one for each batch."""
    if rope is None:
        return x
    dims = rope.get("dims", x.shape[3])
    pairs = dims // 2
    turns = rope.get("base", 10000.0) ** (-np.arange(pairs) / pairs)
    if "freqs" in rope:
        turns = 1 / exact(rope["freqs"])
    positions = np.arange(x.shape[2]) + np.asarray(offset).reshape(-1, 1, 1)
    angles = rope.get("scale", 1.0) * positions[..., None] * turns
    cosine, sine = np.cos(angles), np.sin(angles)
    neighbours = rope.get("traditional", False)
    low = np.s_[..., 0:dims:2] if neighbours else np.s_[..., :pairs]
    high = np.s_[..., 1:dims:2] if neighbours else np.s_[..., pairs:dims]
    out = x.copy()
    out[low] = x[low] * cosine - x[high] * sine
    out[high] = x[low] * sine + x[high] * cosine
    return out


def weights_of(q, k, scale=None, mask=None, sinks=None):
    heads, rows, keys = q.shape[1], q.shape[2], k.shape[2]
    k = np.repeat(k, heads // k.shape[1], 1)
    logits = q @ k.swapaxes(-1, -2) * (q.shape[3] ** -0.5 if scale is None else scale)
    if isinstance(mask, str):
        mask = np.arange(keys) <= np.arange(rows)[:, None] + keys - rows
    if mask is not None:
        logits = np.where(mask, logits, -np.inf) if mask.dtype == bool else logits + exact(mask)
    sink = np.full((heads, 1, 1), -np.inf) if sinks is None else exact(sinks)[:, None, None]
    most = np.maximum(logits.max(-1, keepdims=True, initial=-np.inf), sink)
    most = np.where(np.isinf(most), 0, most)
    powers = np.exp(logits - most)
    total = powers.sum(-1, keepdims=True) + np.exp(sink - most)
    return powers / np.where(total == 0, 1, total)


def reference(q, k, v, **options):
    q, k, v = exact(q), exact(k), exact(v)
    return weights_of(q, k, **options) @ np.repeat(v, q.shape[1] // k.shape[1], 1)


def gradients(q, k, v, g, scale=None, mask=None):
    q, k, v, g = exact(q), exact(k), exact(v), exact(g)
    group = q.shape[1] // k.shape[1]
    factor = q.shape[3] ** -0.5 if scale is None else scale
    weights = weights_of(q, k, scale, mask)
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    slope = g @ values.swapaxes(-1, -2)
    slope = weights * (slope - (weights * slope).sum(-1, keepdims=True)) * factor

    def summed(x):
        return x.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2)

    of_k, of_v = slope.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g
    return slope @ keys, summed(of_k), summed(of_v)


def operands(rng, name, batches, heads, shared, rows, keys, features):
    q = numbers(rng, name, batches, heads, rows, features)
    return q, *(numbers(rng, name, batches, shared, keys, features) for _ in range(2))


def on_device(*arrays):
    return [None if each is None else cyrt.asarray(each) for each in arrays]
