"""Attention of many rows of queries, in a launch or by products of some rows, against NumPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from attention_reference import gradients, on_device, operands, reference
from explaining import explain
from rows_of_numbers import assert_close, exact, launches, numbers

import cyrt
from cyrt import settings
from cyrt.nn import attention, attention_vjp

SHAPES = [
    # batches, heads, heads of keys, rows, keys, features
    ("float16", (2, 2, 1, 17, 17, 16)),
    ("bfloat16", (1, 2, 1, 64, 65, 64)),
    ("float16", (2, 2, 2, 127, 128, 72)),
    ("bfloat16", (1, 4, 2, 65, 200, 128)),
    ("float16", (1, 1, 1, 128, 513, 40)),
    ("bfloat16", (1, 1, 1, 513, 127, 96)),
    ("float16", (1, 3, 1, 200, 64, 33)),
]


@pytest.mark.parametrize(("name", "shape"), SHAPES)
@pytest.mark.parametrize("mask", [None, "causal"])
def test_results(rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    arrays = on_device(q, k, v)
    found = attention(*arrays, mask=mask)
    assert_close(found, reference(q, k, v, mask=mask), name)
    again = attention(*arrays, mask=mask)
    np.testing.assert_array_equal(again.numpy().view("uint16"), found.numpy().view("uint16"))


def mask_of_tiles(rng, kind, name):
    """The keys of a tile may all be hidden, before others that are not, or after them."""
    mask = rng.random((140, 150)) < 0.3
    mask[:50, :70] = mask[50:60, 64:] = mask[60:70] = mask[130:, 128:] = False
    if kind == "bool":
        return mask
    to = cyrt.dtype(name if kind == "own" else kind).numpy
    return np.where(mask, 3 * rng.normal(size=mask.shape), -np.inf).astype(to)


@pytest.mark.parametrize(
    ("name", "kind", "features"),
    [
        ("float16", "bool", 16),
        ("bfloat16", "own", 16),
        ("float16", "float64", 16),
        ("bfloat16", "bool", 72),
        ("float16", "own", 72),
    ],
)
def test_masks_of_more_than_a_tile(rng, name, kind, features):
    q, k, v = operands(rng, name, 1, 2, 1, 140, 150, features)
    q *= 3
    mask = mask_of_tiles(rng, kind, name)
    sinks = numbers(rng, "float32", 2)
    found = attention(*on_device(q, k, v), mask=cyrt.asarray(mask), sinks=cyrt.asarray(sinks))
    assert_close(found, reference(q, k, v, mask=mask, sinks=sinks), name, scale=2)
    assert (exact(found)[:, :, 60:70] == 0).all()


def test_layouts_of_masks(rng):
    q, k, v = operands(rng, "float16", 1, 1, 1, 140, 150, 8)
    mask = mask_of_tiles(rng, "bool", "float16")
    wanted = reference(q, k, v, mask=mask)
    for given in (
        cyrt.asarray(np.ascontiguousarray(mask.T)).mT,
        cyrt.asarray(np.ascontiguousarray(mask[::-1]))[::-1],
        cyrt.asarray(np.repeat(mask, 2, 1))[:, ::2],
    ):
        assert_close(attention(*on_device(q, k, v), mask=given), wanted, "float16")


def test_one_row_of_a_mask_for_all(rng):
    q, k, v = operands(rng, "float16", 2, 2, 2, 70, 80, 16)
    mask = rng.random((2, 1, 1, 80)) < 0.5
    found = attention(*on_device(q, k, v), mask=cyrt.asarray(mask))
    assert_close(found, reference(q, k, v, mask=mask), "float16")


def test_the_lowest_number_as_a_mask(rng):
    """It is no infinity: in a row of them, all keys count as much."""
    q, k, v = operands(rng, "bfloat16", 1, 1, 1, 20, 80, 8)
    for kind in "float32", "bfloat16":
        mask = np.where(rng.random((20, 80)) < 0.5, 0, float(cyrt.finfo(kind).min))
        mask[3] = mask.min()
        mask[4, :70] = -np.inf
        mask = mask.astype(cyrt.dtype(kind).numpy)
        found = attention(*on_device(q, k, v), mask=cyrt.asarray(mask))
        assert_close(found, reference(q, k, v, mask=mask), "bfloat16")
        np.testing.assert_allclose(exact(found)[0, 0, 3], exact(v)[0, 0].mean(0), atol=0.01)


@pytest.mark.parametrize("scale", [0, -1.5, np.float32(0.7)])
def test_scale(rng, scale):
    q, k, v = operands(rng, "float16", 1, 2, 1, 70, 90, 24)
    sinks = numbers(rng, "float16", 2) + 1
    wanted = reference(q, k, v, scale=float(scale), mask="causal", sinks=sinks)
    found = attention(*on_device(q, k, v), scale, "causal", sinks=cyrt.asarray(sinks))
    assert_close(found, wanted, "float16", scale=2)
    mask = rng.random((70, 90)) < 0.5
    wanted = reference(q, k, v, scale=float(scale), mask=mask)
    found = attention(*on_device(q, k, v), scale, cyrt.asarray(mask))
    assert_close(found, wanted, "float16", scale=2)


@pytest.mark.usefixtures("batched")
def test_layouts(rng):
    """Views of (B, T, H, D) are taken as they are; rows that begin at no vector are copied."""
    names = ["cyrt_flash_attention_float16"]
    x = numbers(rng, "float16", 2, 80, (4 + 2 + 2) * 24)
    whole = cyrt.asarray(x)
    q, k, v = (
        whole[..., 24 * a : 24 * b].reshape(2, 80, b - a, 24).swapaxes(1, 2)
        for a, b in ((0, 4), (4, 6), (6, 8))
    )
    host = [each.numpy() for each in (q, k, v)]
    wanted = reference(*host, mask="causal")
    assert_close(attention(q, k, v, mask="causal"), wanted, "float16")
    assert launches(lambda: attention(q, k, v, mask="causal")) == names
    one = cyrt.broadcast_to(k[:, :1], k.shape)
    assert launches(lambda: attention(q, one, v)) == names
    assert_close(
        attention(q, one, v),
        reference(host[0], np.broadcast_to(host[1][:, :1], k.shape), host[2]),
        "float16",
    )
    shifted = [cyrt.asarray(np.pad(each, [(0, 0)] * 3 + [(1, 0)]))[..., 1:] for each in host]
    backwards = [cyrt.asarray(np.ascontiguousarray(each[..., ::-1]))[..., ::-1] for each in host]
    for views in shifted, backwards:
        assert_close(attention(*views, mask="causal"), wanted, "float16")
        found = launches(lambda views=views: attention(*views, mask="causal"))
        assert found[-1:] == names
        assert len(found) == 4


def test_numbers_that_are_none(rng):
    """They go where float32, which is computed by products, has them, too."""
    q, k, v = operands(rng, "float16", 1, 2, 2, 150, 140, 16)
    q[0, 0, 3, 2], q[0, 0, 131, 0], q[0, 0, 5, 1] = np.nan, np.inf, -np.inf
    k[0, 1, 100, 3], v[0, 1, 5, 7], v[0, 1, 90, 2] = np.nan, np.inf, np.nan
    for mask in None, "causal":
        found = attention(*on_device(q, k, v), mask=mask).numpy()
        wide = (each.astype(np.float32) for each in (q, k, v))
        wanted = attention(*on_device(*wide), mask=mask).numpy()
        # A key that a row does not see may spoil it by its value, in a tile that it sees.
        seen = 90 if mask else 0
        rows = np.s_[0, 0] if mask else np.s_[0]
        np.testing.assert_array_equal(np.isnan(found[rows]), np.isnan(wanted[rows]))
        assert np.isnan(found[0, 1, seen + 10 :, 2]).all()
        assert np.isfinite(found[0, 0, 20:130]).all()


def test_large_logits(rng):
    q, k, v = operands(rng, "float16", 1, 1, 1, 130, 200, 16)
    q *= 1000
    assert_close(attention(*on_device(q, k, v)), reference(q, k, v), "float16", scale=4)


def test_no_elements():
    for shape in (1, 2, 0, 8), (0, 2, 20, 8), (1, 0, 20, 8), (1, 2, 20, 0):
        assert attention(*[cyrt.ones(shape, dtype="float16")] * 3).shape == shape
    q, k = cyrt.ones((2, 2, 20, 8), dtype="float16"), cyrt.ones((2, 1, 0, 8), dtype="float16")
    mask, sinks = cyrt.ones((20, 0), dtype="bool"), cyrt.ones(2)
    for options in {}, {"mask": "causal"}, {"mask": mask}, {"sinks": sinks}:
        assert (exact(attention(q, k, k, **options)) == 0).all()


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize(
    ("features", "mask", "kernel"),
    [(64, None, ""), (65, "causal", "_wide"), (16, True, "_masked"), (128, True, "_wide_masked")],
)
def test_explanations_are_what_is_recorded(features, mask, kernel):
    q = cyrt.ones((2, 4, 130, features), dtype="bfloat16")
    k = cyrt.ones((2, 2, 20, features), dtype="bfloat16")
    given = cyrt.ones((130, 20), dtype="bool") if mask is True else mask
    found = launches(lambda: attention(q, k, k, mask=given))
    assert found[-1] == f"cyrt_flash_attention_bfloat16{kernel}"
    if mask is not True:
        explained = explain("flash_attention", "bfloat16", q.shape, k.shape)
        block = 256 if "wide" in kernel else 128, 1
        assert explained.kernels[-1] == (found[-1], 2 * 4 * 2, block)


@pytest.mark.usefixtures("batched")
def test_a_prompt_goes_through_a_cache_by_tiles(rng):
    q, k, v = operands(rng, "float16", 1, 2, 1, 40, 40, 16)
    cache = [cyrt.zeros((1, 1, 50, 16), dtype="float16") for _ in range(2)]
    arrays = on_device(q, k, v)
    found = attention(*arrays, cache=tuple(cache), position=3)
    old = np.zeros((1, 1, 3, 16))
    keys, values = (np.concatenate([old, exact(each)], 2) for each in (k, v))
    assert_close(found, reference(q, keys, values, mask="causal"), "float16")
    names = launches(lambda: attention(*arrays, cache=tuple(cache), position=3))
    assert names[-1] == "cyrt_flash_attention_float16"


# -- by products of some rows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "nbytes", "mask", "parts"),
    [
        ("float32", (2, 4, 2, 20, 30, 8), 4000, None, 6),
        ("float32", (2, 4, 2, 20, 30, 8), 4000, "causal", 6),
        ("float32", (2, 4, 2, 20, 30, 8), 4000, "bool", 6),
        ("float32", (1, 4, 2, 6, 30, 8), 1, "row", 6),
        ("float32", (5, 1, 1, 17, 9, 8), 1300, "row", 3),
        ("bfloat16", (1, 2, 2, 25, 20, 130), 800, "causal", 4),  # the first 5 see nothing
    ],
)
def test_some_rows_at_a_time(rng, monkeypatch, name, shape, nbytes, mask, parts):
    """Where a few bytes of weights are computed at once."""
    monkeypatch.setattr(importlib.import_module("cyrt.nn.attention"), "_WEIGHTS", nbytes)
    q, k, v = operands(rng, name, *shape)
    sinks = numbers(rng, name, shape[1])
    if mask in ("bool", "row"):
        mask = rng.random((shape[0], 1, shape[3] if mask == "bool" else 1, shape[4])) < 0.4
    given = cyrt.asarray(mask) if isinstance(mask, np.ndarray) else mask
    arrays = on_device(q, k, v, sinks)

    def attend():
        return attention(*arrays[:3], mask=given, sinks=arrays[3])

    assert_close(attend(), reference(q, k, v, mask=mask, sinks=sinks), name, scale=2)
    g = numbers(rng, name, *q.shape)
    found = attention_vjp(cyrt.asarray(g), *arrays[:3], mask=given)
    wanted = gradients(q, k, v, g, mask=mask)
    for each, expected in zip(found, wanted, strict=True):
        assert_close(each, expected, name, scale=max(1, np.abs(expected).max()))
    if settings.get("CYRT_GRAPHS"):
        assert sum("softmax" in each for each in launches(attend)) == parts
