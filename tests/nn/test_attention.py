"""Attention against NumPy in float64, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest
from attention_reference import ROPES, TYPES, gradients, on_device, operands, reference, turned
from rows_of_numbers import assert_close, exact, numbers

import cyrt
from cyrt.nn import attention, attention_vjp

SHAPES = [
    # batches, heads, heads of keys, rows, keys, features
    (1, 1, 1, 1, 1, 8),
    (2, 4, 2, 1, 40, 64),
    (1, 3, 3, 5, 33, 80),
    (1, 4, 1, 16, 16, 32),
    (2, 6, 2, 17, 30, 16),
    (1, 2, 1, 33, 33, 20),
    (1, 2, 2, 2, 3, 300),
    (1, 9, 1, 1, 70, 24),
    (1, 3, 1, 2, 9, 33),
]


@pytest.mark.parametrize("name", [*TYPES, "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask", [None, "causal"])
def test_results(rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    found = attention(*on_device(q, k, v), mask=mask)
    assert found.shape == q.shape
    assert_close(found, reference(q, k, v, mask=mask), name)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("rows", [3, 20])
@pytest.mark.parametrize("shape", [(2, 4, 0, 9), (4, 0, 1), (0, 9), (9,), (2, 1, 0, 1)])
@pytest.mark.parametrize("kind", ["bool", "float32", "float64", "own"])
def test_masks(rng, name, rows, shape, kind):
    """The 0 stands for the rows. Some rows are masked whole."""
    q, k, v = operands(rng, name, 2, 4, 2, rows, 9, 16)
    mask = rng.random([size or rows for size in shape]) < 0.6
    mask[0] = False
    if kind != "bool":
        to = cyrt.dtype(name if kind == "own" else kind).numpy
        mask = np.where(mask, rng.normal(size=mask.shape), -np.inf).astype(to)
    found = attention(*on_device(q, k, v), mask=cyrt.asarray(mask))
    wanted = reference(q, k, v, mask=mask)
    assert_close(found, wanted, name)
    if len(shape) > 1:
        assert (wanted == 0).all(-1).any()


@pytest.mark.parametrize("rows", [5, 20])
def test_more_rows_than_keys_see_nothing_at_first(rng, rows):
    q, k, v = operands(rng, "float32", 1, 2, 1, rows, 3, 8)
    found = attention(*on_device(q, k, v), mask="causal")
    assert (found.numpy()[:, :, : rows - 3] == 0).all()
    assert_close(found, reference(q, k, v, mask="causal"), "float32")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("rows", "mask"), [(1, None), (4, "causal"), (20, "causal"), (20, "array")]
)
def test_sinks(rng, name, rows, mask):
    q, k, v = operands(rng, name, 2, 4, 2, rows, 25, 16)
    if mask == "array":
        mask = rng.random((rows, 25)) < 0.5
        mask[3] = False
    given = cyrt.asarray(mask) if isinstance(mask, np.ndarray) else mask
    for kind in name, "float32", "float64":
        sinks = numbers(rng, kind, 4) * 3
        wanted = reference(q, k, v, mask=mask, sinks=sinks)
        found = attention(*on_device(q, k, v), mask=given, sinks=cyrt.asarray(sinks))
        assert_close(found, wanted, name)
        every_other = cyrt.asarray(np.repeat(sinks, 2))[::2]
        found = attention(*on_device(q, k, v), mask=given, sinks=every_other)
        assert_close(found, wanted, name)


@pytest.mark.parametrize("rows", [3, 20])
def test_a_sink_that_takes_nothing(rng, rows):
    q, k, v = operands(rng, "float32", 1, 2, 1, rows, 2, 8)
    mask = np.ones((rows, 2), bool)
    mask[0] = False
    sinks = np.full(2, -np.inf, np.float32)
    for kind, given in (("causal", "causal"), (mask, cyrt.asarray(mask))):
        found = attention(*on_device(q, k, v), mask=given, sinks=cyrt.asarray(sinks))
        assert_close(found, reference(q, k, v, mask=kind), "float32")


@pytest.mark.parametrize("mask", [None, "causal"])
def test_gradients_without_keys(mask):
    q, k = cyrt.ones((1, 2, 1, 4)), cyrt.ones((1, 1, 0, 4))
    gq, gk, gv = attention_vjp(q, q, k, k, mask=mask)
    assert (gq.numpy() == 0).all()
    assert gk.shape == gv.shape == (1, 1, 0, 4)


@pytest.mark.parametrize("rows", [1, 20])
def test_scale(rng, rows):
    q, k, v = operands(rng, "float32", 1, 2, 2, rows, 12, 8)
    for scale in 0.0, -1.5, np.float32(2):
        wanted = reference(q, k, v, scale=float(scale))
        assert_close(attention(*on_device(q, k, v), scale), wanted, "float32", scale=4)


@pytest.mark.parametrize("rows", [3, 20])
@pytest.mark.parametrize("rope", [each for each in ROPES.values() if each], ids=["halves", "pairs"])
def test_rope_without_a_cache(rng, rows, rope):
    q, k, v = operands(rng, "float32", 2, 2, 1, rows, 24, 16)
    for position in 0, 7, cyrt.asarray([7, 0]):
        first = exact(position) if isinstance(position, cyrt.Array) else position
        wanted = reference(
            turned(exact(q), rope, first + 24 - rows), turned(exact(k), rope, first), v
        )
        found = attention(*on_device(q, k, v), rope=rope, position=position)
        assert_close(found, wanted, "float32")


@pytest.mark.parametrize("rows", [2, 18])
def test_views(rng, rows):
    """Heads of one product, as a layer makes them; and other layouts."""
    x = numbers(rng, "float32", 2, rows, (4 + 2 + 2) * 16)
    whole = cyrt.asarray(x)
    q, k, v = (
        whole[..., 16 * a : 16 * b].reshape(2, rows, b - a, 16).swapaxes(1, 2)
        for a, b in ((0, 4), (4, 6), (6, 8))
    )
    host = [each.numpy() for each in (q, k, v)]
    wanted = reference(*host, mask="causal")
    assert_close(attention(q, k, v, mask="causal"), wanted, "float32")
    backwards = (cyrt.asarray(np.ascontiguousarray(each[..., ::-1]))[..., ::-1] for each in host)
    assert_close(attention(*backwards, mask="causal"), wanted, "float32")
    one = cyrt.broadcast_to(k[:1, :1, :1], k.shape)
    wanted = reference(host[0], np.broadcast_to(host[1][:1, :1, :1], k.shape), host[2])
    assert_close(attention(q, one, v), wanted, "float32")


@pytest.mark.parametrize("rows", [1, 20])
def test_large_logits_and_numbers_that_are_none(rng, rows):
    q, k, v = operands(rng, "float32", 1, 2, 1, rows, 30, 8)
    q[0, 0] *= 1e4
    assert_close(attention(*on_device(q, k, v)), reference(q, k, v), "float32", scale=1e3)
    q[0, 1, 0, 3] = np.nan
    found = attention(*on_device(q, k, v)).numpy()
    assert np.isnan(found[0, 1, 0]).all()
    assert np.isfinite(found[0, 0]).all()


@pytest.mark.parametrize("rows", [1, 20])
def test_no_elements(rows):
    found = attention(cyrt.ones((2, 2, rows, 8)), *[cyrt.ones((2, 1, 0, 8))] * 2)
    assert (found.numpy() == 0).all()
    assert found.shape == (2, 2, rows, 8)
    assert attention(*[cyrt.ones((0, 2, rows, 8))] * 3).shape == (0, 2, rows, 8)
    assert attention(*[cyrt.ones((1, 0, rows, 8))] * 3).shape == (1, 0, rows, 8)


# -- the gradients --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TYPES, "float64"])
@pytest.mark.parametrize("shape", [(2, 4, 2, 7, 9, 16), (1, 3, 1, 1, 20, 8), (1, 2, 2, 20, 5, 8)])
@pytest.mark.parametrize("mask", [None, "causal", "bool", "added"])
def test_gradients(rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    g = numbers(rng, name, *q.shape)
    if mask in ("bool", "added"):
        kept = rng.random((shape[3], shape[4])) < 0.7
        kept[0] = False
        added = np.where(kept, rng.normal(size=kept.shape), -np.inf).astype(np.float32)
        mask = kept if mask == "bool" else added
    given = cyrt.asarray(mask) if isinstance(mask, np.ndarray) else mask
    found = attention_vjp(*on_device(g, q, k, v), 0.4, given)
    wanted = gradients(q, k, v, g, 0.4, mask)
    for each, like, expected in zip(found, (q, k, v), wanted, strict=True):
        assert each.shape == like.shape
        assert_close(each, expected, name, scale=max(1, np.abs(expected).max()))


def test_gradients_are_differences(rng):
    q, k, v = operands(rng, "float64", 1, 2, 1, 3, 4, 4)
    g = numbers(rng, "float64", *q.shape)
    arrays = on_device(q, k, v)
    found = attention_vjp(cyrt.asarray(g), *arrays, mask="causal")
    for i, gradient in enumerate(found):
        step = numbers(rng, "float64", *gradient.shape)
        sides = []
        for sign in 1, -1:
            moved = [*arrays]
            moved[i] = arrays[i] + cyrt.asarray(sign * 1e-5 * step)
            sides.append(np.vdot(attention(*moved, mask="causal").numpy(), g))
        slope = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(np.vdot(gradient.numpy(), step), slope, rtol=1e-7)


# -- bad input ------------------------------------------------------------------------------------

Q, K = (2, 4, 3, 8), (2, 2, 5, 8)


def full(shape, name="float32"):
    return cyrt.ones(shape, dtype=name)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: attention(full(Q), full(Q), full(K)), ValueError, r"got \(2, 4, 3, 8\), \(2, 4"),
        (lambda: attention(full((4, 3, 8)), full(K), full(K)), ValueError, r"q \(B, H, T, D\)"),
        (
            lambda: attention(full((2, 3, 3, 8)), full(K), full(K)),
            ValueError,
            r"3 heads of q are not a multiple of the 2 heads of k and v: shapes \(2, 3, 3, 8\)",
        ),
        (
            lambda: attention(full(Q), full(K, "float16"), full(K)),
            TypeError,
            "one real floating-point type, got float32, float16 and float32",
        ),
        (lambda: attention(*[full(Q, "int32")] * 3), TypeError, "got int32, int32 and int32"),
        (lambda: attention(np.ones(Q), full(K), full(K)), TypeError, "q: expected an Array"),
        (lambda: attention(full(Q), full(K), full(K), "1"), TypeError, "scale: expected a number"),
        (lambda: attention(full(Q), full(K), full(K), np.inf), ValueError, "a finite number"),
        (lambda: attention(full(Q), full(K), full(K), mask="all"), ValueError, "got 'all'"),
        (
            lambda: attention(full(Q), full(K), full(K), mask=full((3, 4), bool)),
            ValueError,
            r"mask: expected a shape that broadcasts to \(2, 4, 3, 5\), got \(3, 4\)",
        ),
        (
            lambda: attention(full(Q), full(K), full(K), mask=full((1, 2, 4, 3, 5), bool)),
            ValueError,
            r"got \(1, 2, 4, 3, 5\)",
        ),
        (
            lambda: attention(full(Q), full(K), full(K), mask=full((3, 5), "int32")),
            TypeError,
            "mask: expected bool or a real floating-point type, got int32",
        ),
        (lambda: attention(full(Q), full(K), full(K), mask=True), TypeError, "mask: expected an A"),
        (
            lambda: attention(full(Q), full(K), full(K), sinks=full(2)),
            ValueError,
            r"sinks: expected shape \(4,\), a logit of each head, got \(2,\)",
        ),
        (
            lambda: attention(full(Q), full(K), full(K), sinks=full(4, "int32")),
            TypeError,
            "sinks: .* got int32",
        ),
        (lambda: attention(full(Q), full(K), full(K), position=3), ValueError, "without a cache"),
        (lambda: attention(full(Q), full(K), full(K), rope=8), TypeError, "rope: expected a dict"),
        (
            lambda: attention(full(Q), full(K), full(K), rope={"offset": 8}),
            TypeError,
            "expected arguments dims, .* got 'offset'",
        ),
        (
            lambda: attention_vjp(full(K), full(Q), full(K), full(K)),
            ValueError,
            r"attention_vjp: g: expected shape \(2, 4, 3, 8\), that of q, got \(2, 2, 5, 8\)",
        ),
        (
            lambda: attention_vjp(full(Q, "float16"), full(Q), full(K), full(K)),
            TypeError,
            "g: expected float32, the type of q, got float16",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
