"""Gradients of attention of many rows of queries, in two launches, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from attention_reference import gradients, on_device, operands
from rows_of_numbers import assert_close, exact, launches, numbers

import cyrt
from cyrt import Example
from cyrt.nn import attention, attention_vjp

SHAPES = [
    # batches, heads, heads of keys, rows, keys, features
    ("float16", (1, 1, 1, 1, 1, 8)),
    ("bfloat16", (2, 2, 1, 17, 1, 40)),
    ("float16", (1, 4, 2, 64, 65, 64)),
    ("bfloat16", (1, 1, 1, 1, 130, 72)),
    ("float16", (1, 1, 1, 65, 130, 128)),
    ("bfloat16", (1, 3, 1, 130, 64, 64)),
    ("float16", (1, 2, 2, 130, 17, 33)),
    ("bfloat16", (1, 1, 1, 200, 290, 16)),
    ("float16", (1, 2, 1, 150, 150, 96)),
]


def kernels(name, end=""):
    return [f"cyrt_flash_attention_vjp_{name}{end}{of}" for of in ("", "_keys")]


def bits(x):
    return x.numpy().view("uint16")


def assert_all_close(found, wanted, name, scale=1.0):
    for each, expected in zip(found, wanted, strict=True):
        assert each.shape == expected.shape
        assert_close(each, expected, name, scale * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize(("name", "shape"), SHAPES)
@pytest.mark.parametrize("mask", [None, "causal"])
def test_gradients(rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    g = numbers(rng, name, *q.shape)
    arrays = on_device(g, q, k, v)
    found = attention_vjp(*arrays, mask=mask)
    assert_all_close(found, gradients(q, k, v, g, mask=mask), name)
    hidden = max(0, shape[3] - shape[4]) if mask else 0  # rows that see no key
    assert (exact(found[0])[:, :, :hidden] == 0).all()
    for each, again in zip(found, attention_vjp(*arrays, mask=mask), strict=True):
        np.testing.assert_array_equal(bits(again), bits(each))


@pytest.mark.parametrize("scale", [0, -1.5, np.float32(0.7)])
def test_scale(rng, scale):
    q, k, v = operands(rng, "float16", 1, 2, 1, 70, 90, 24)
    g = numbers(rng, "float16", *q.shape)
    for mask in None, "causal":
        found = attention_vjp(*on_device(g, q, k, v), scale, mask)
        assert_all_close(found, gradients(q, k, v, g, float(scale), mask), "float16", 2)


@pytest.mark.parametrize("rows", [1, 5, 70])
def test_large_logits(rng, rows):
    """Weights of 0 and 1: none is lost, and none overflows."""
    q, k, v = operands(rng, "float16", 1, 2, 1, rows, 80, 16)
    q *= 100
    g = numbers(rng, "float16", *q.shape)
    found = attention_vjp(*on_device(g, q, k, v))
    assert_all_close(found, gradients(q, k, v, g), "float16", 4)


def test_small_mean_of_large_slopes(rng):
    """Values that have much in common: what the gradient has of it cancels in float32."""
    q, k, v = operands(rng, "float16", 1, 1, 1, 70, 80, 16)
    v += 8
    g = np.abs(numbers(rng, "float16", *q.shape))
    found = attention_vjp(*on_device(g, q, k, v))
    assert_all_close(found, gradients(q, k, v, g), "float16", 2)


@pytest.mark.usefixtures("batched")
def test_layouts(rng):
    """Views of (B, T, 3, H, D) are taken as they are; rows that begin at no vector are copied."""
    names = kernels("float16")
    whole = cyrt.asarray(numbers(rng, "float16", 2, 80, 3, 2, 24))
    q, k, v = (whole[:, :, i].swapaxes(1, 2) for i in range(3))
    g = cyrt.asarray(numbers(rng, "float16", 2, 80, 2, 24)).swapaxes(1, 2)
    host = [each.numpy() for each in (q, k, v, g)]
    wanted = gradients(*host, mask="causal")
    assert_all_close(attention_vjp(g, q, k, v, mask="causal"), wanted, "float16")
    assert launches(lambda: attention_vjp(g, q, k, v, mask="causal")) == names
    one = cyrt.broadcast_to(k[:, :1], k.shape)
    assert launches(lambda: attention_vjp(g, q, one, v)) == names
    keys = np.broadcast_to(host[1][:, :1], k.shape)
    wanted_of_one = gradients(host[0], keys, *host[2:])
    assert_all_close(attention_vjp(g, q, one, v), wanted_of_one, "float16")
    order = [host[3], *host[:3]]
    shifted = [cyrt.asarray(np.pad(each, [(0, 0)] * 3 + [(1, 0)]))[..., 1:] for each in order]
    backwards = [cyrt.asarray(np.ascontiguousarray(each[..., ::-1]))[..., ::-1] for each in order]
    for views in shifted, backwards:
        assert_all_close(attention_vjp(*views, mask="causal"), wanted, "float16")
        found = launches(lambda views=views: attention_vjp(*views, mask="causal"))
        assert found[-2:] == names
        assert len(found) == 6


def test_numbers_that_are_none(rng):
    """They go where float32, which is computed by products, has them, too."""
    q, k, v = operands(rng, "float16", 1, 3, 3, 150, 140, 16)
    g = numbers(rng, "float16", *q.shape)
    q[0, 0, 3, 2], q[0, 0, 131, 0], q[0, 0, 5, 1] = np.nan, np.inf, -np.inf
    k[0, 1, 100, 3] = np.nan
    g[0, 2, 7, 3], v[0, 2, 139, 1] = np.inf, np.nan
    found = attention_vjp(*on_device(g, q, k, v))
    wide = (each.astype(np.float32) for each in (g, q, k, v))
    wanted = attention_vjp(*on_device(*wide))
    for each, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.isfinite(each.numpy()), np.isfinite(expected.numpy()))
    assert np.isfinite(found[0].numpy()[0, 0, 20:130]).all()
    # Rows that do not see a key are as they would be without it.
    q, g = np.nan_to_num(q, posinf=1, neginf=1), np.nan_to_num(g, posinf=1)
    found = attention_vjp(*on_device(g, q, k, v), mask="causal")[0].numpy()
    assert np.isfinite(found[0, 1, :64]).all()
    assert np.isnan(found[0, 1, 110:]).all()


def test_no_elements():
    for shape in (1, 2, 0, 8), (0, 2, 20, 8), (1, 0, 20, 8), (1, 2, 20, 0):
        x = cyrt.ones(shape, dtype="float16")
        assert [each.shape for each in attention_vjp(x, x, x, x)] == [shape] * 3
    some, none = (cyrt.ones((2, 2, n, 8), dtype="float16") for n in (20, 0))
    headless = cyrt.ones((2, 0, 20, 8), dtype="float16")
    for mask in None, "causal":
        for q, k in (some, none), (none, some), (headless, some):
            found = attention_vjp(q, q, k, k, mask=mask)
            assert [each.shape for each in found] == [q.shape, k.shape, k.shape]
            assert all((exact(each) == 0).all() for each in found)


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize(("features", "end"), [(64, ""), (65, "_wide")])
def test_explanations_are_what_is_recorded(features, end):
    q = cyrt.ones((2, 4, 130, features), dtype="bfloat16")
    k = cyrt.ones((2, 2, 20, features), dtype="bfloat16")
    found = launches(lambda: attention_vjp(q, q, k, k, mask="causal"))
    assert found[-2:] == kernels("bfloat16", end)
    examples = [Example(each.shape, "bfloat16") for each in (q, q, k, k)]
    explained = cyrt.explain(attention_vjp, *examples, mask="causal")
    block = 256 if end else 128, 1
    assert explained.kernels[-2:] == ((found[-2], 2 * 4 * 2, block), (found[-1], 2 * 2, block))


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize(
    ("name", "features", "mask"),
    [("float32", 8, None), ("float16", 130, "causal"), ("bfloat16", 8, "array")],
)
def test_other_operands_go_through_products(name, features, mask):
    x = cyrt.ones((1, 1, 20, features), dtype=name)
    mask = cyrt.ones((20, 20), dtype="bool") if mask == "array" else mask
    found = launches(lambda: attention_vjp(x, x, x, x, mask=mask))
    assert not any("flash_attention_vjp" in each for each in found)
    assert any("softmax_vjp" in each for each in found)


# -- the tape -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("rows", [5, 30])
def test_the_tape_calls_it(rng, rows):
    q, k, v = on_device(*operands(rng, "bfloat16", 1, 2, 1, rows, 40, 16))
    g = cyrt.asarray(numbers(rng, "bfloat16", *q.shape))

    def loss(q, k, v):
        return (attention(q, k, v, mask="causal") * g).sum()

    gradient = cyrt.grad(loss, argnums=(0, 1, 2))
    found, wanted = gradient(q, k, v), attention_vjp(g, q, k, v, mask="causal")
    for each, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(bits(each), bits(expected))
    assert set(kernels("bfloat16")) < set(launches(lambda: gradient(q, k, v)))


def test_gradients_of_gradients(rng):
    """The tape computes them by products; a kernel refuses arrays that the tape follows."""
    q, k, v = operands(rng, "bfloat16", 1, 2, 1, 18, 20, 8)
    g = numbers(rng, "bfloat16", *q.shape)

    def twice(*host):
        g, *arrays = on_device(*host)

        def loss(*arrays):
            slopes = cyrt.grad(lambda *args: (attention(*args) * g).sum(), argnums=(0, 1, 2))
            return sum((each * each).sum() for each in slopes(*arrays))

        return cyrt.grad(loss, argnums=(0, 1, 2))(*arrays)

    wanted = [exact(each) for each in twice(*(each.astype(np.float32) for each in (g, q, k, v)))]
    assert_all_close(twice(g, q, k, v), wanted, "bfloat16", 2)
    g, q, k, v = on_device(g, q, k, v)
    with pytest.raises(TypeError, match="flash_attention_vjp_bfloat16 uses an array that is diff"):
        cyrt.grad(lambda q: attention_vjp(g, q, k, v)[0].sum())(q)


# -- memory ---------------------------------------------------------------------------------------


def test_no_memory_for_the_workspace(python):
    """Nothing is recorded: the results' memory is free again."""
    done = python(
        """
        import cyrt
        rows = 1 << 20
        def make(rows):
            q = cyrt.empty((1, 1, rows, 8), dtype="float16")
            return q, cyrt.ones((1, 1, 8, 8), dtype="float16")
        q, k = make(rows)                   # 16 MB; as much for the result, and 8 for the workspace
        cyrt.synchronize()
        before = cyrt.memory_stats()["in_use"]
        try:
            cyrt.nn.attention_vjp(q, q, k, k)
        except cyrt.OutOfMemoryError as error:
            assert "8,388,608" in str(error), error
        else:
            raise AssertionError
        assert cyrt.memory_stats()["in_use"] == before
        q, k = make(20)
        q[...] = 1
        found = cyrt.nn.attention_vjp(q, q, k, k)
        assert (found[2].numpy() == 2.5).all()
        """,
        CYRT_MEMORY_LIMIT="38M",
    )
    assert done.returncode == 0, done.stderr
