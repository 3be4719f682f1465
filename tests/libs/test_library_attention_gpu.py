"""Attention of many rows by cuDNN on a GPU, against NumPy."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from attention_reference import on_device, operands, reference
from explaining import explain
from rows_of_numbers import assert_close, exact, numbers

import cyrt
from cyrt import nn
from cyrt.builtin import library_attention
from cyrt.graph import template
from cyrt.libs import cudnn

pytestmark = pytest.mark.gpu


@pytest.fixture
def library():
    found, reason = cudnn.find()
    if found is None:
        pytest.skip(reason)
    library_attention.decide(0, None, from_=1, behind=0)
    yield found
    library_attention.decide(0)


SHAPES = [
    # batches, heads, heads of keys, rows, keys, features
    (2, 2, 1, 17, 17, 16),
    (1, 4, 2, 64, 65, 64),
    (2, 2, 2, 127, 128, 72),
    (1, 4, 2, 65, 200, 128),
    (1, 1, 1, 128, 513, 40),
    (1, 8, 2, 300, 300, 64),
    (1, 3, 1, 17, 1000, 128),
]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask", [None, "causal"])
def test_results(library, rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    arrays = on_device(q, k, v)
    found = nn.attention(*arrays, mask=mask)
    assert_close(found, reference(q, k, v, mask=mask), name)
    again = nn.attention(*arrays, mask=mask)
    np.testing.assert_array_equal(again.numpy().view("uint16"), found.numpy().view("uint16"))


def test_the_library_is_used(library):
    explained = explain("flash_attention", "bfloat16", (1, 8, 300, 64), (1, 2, 300, 64))
    assert explained.origin == f"cuDNN {library.dotted}"


@pytest.mark.parametrize("mask", [None, "causal"])
def test_views(library, rng, mask):
    """Operands are views of one matrix (B, T, rows), and parts of a cache."""
    whole = cyrt.asarray(numbers(rng, "bfloat16", 2, 80, (4 + 2 + 2) * 64))
    q, k, v = (
        whole[..., 64 * a : 64 * b].reshape(2, 80, b - a, 64).swapaxes(1, 2)
        for a, b in ((0, 4), (4, 6), (6, 8))
    )
    host = [each.numpy() for each in (q, k, v)]
    assert_close(nn.attention(q, k, v, mask=mask), reference(*host, mask=mask), "bfloat16")
    keys, values = on_device(*operands(rng, "bfloat16", 2, 2, 2, 1, 200, 64)[1:])
    keys, values = keys[:, :, :99], values[:, :, 101:]
    wanted = reference(host[0], keys.numpy(), values.numpy(), mask=mask)
    assert_close(nn.attention(q, keys, values, mask=mask), wanted, "bfloat16")


@pytest.mark.parametrize("scale", [1e-3, 0.7, 30.0])
def test_scales(library, rng, scale):
    q, k, v = operands(rng, "float16", 1, 2, 1, 70, 90, 24)
    found = nn.attention(*on_device(q, k, v), scale, "causal")
    assert_close(found, reference(q, k, v, scale=scale, mask="causal"), "float16", scale=2)


def test_numbers_that_are_none(library, rng):
    """They stay in the rows that see them."""
    q, k, v = operands(rng, "float16", 1, 2, 2, 300, 300, 64)
    q[0, 0, 3, 2], q[0, 0, 131, 0] = np.nan, np.inf
    k[0, 1, 290, 3], v[0, 1, 290, 7] = np.nan, np.inf
    found = exact(nn.attention(*on_device(q, k, v), mask="causal"))
    assert np.isnan(found[0, 0, [3, 131]]).any(-1).all()
    clean = np.delete(found[0, 0], [3, 131], 0)
    assert np.isfinite(clean).all()
    assert np.isnan(found[0, 1, 290:]).any(-1).all()
    assert np.isfinite(found[0, 1, :128]).all()


def test_calls_outlive_what_learned_them(library, rng):
    template.forget()
    arrays = on_device(*operands(rng, "bfloat16", 1, 8, 2, 256, 256, 64))
    found = [nn.attention(*arrays, mask="causal") for _ in range(3)]
    template.forget()
    gc.collect()
    cyrt.synchronize()
    assert len({each.numpy().tobytes() for each in found}) == 1


def test_a_chain(library, rng):
    """A graph is patched with other addresses, and computes what fresh ones do."""
    q, k, v = on_device(*operands(rng, "float16", 1, 4, 4, 192, 192, 64))

    def chain():
        y = q
        for _ in range(20):
            y = nn.attention(y, k, v, mask="causal")
        return y.numpy().tobytes()

    assert len({chain() for _ in range(4)}) == 1


@pytest.mark.parametrize("mask", [None, "causal"])
def test_streams(library, rng, mask):
    """Calls at the same time share no workspace."""
    q, k, v = operands(rng, "bfloat16", 1, 4, 2, 200, 300, 128)
    arrays, found = on_device(q, k, v), []
    cyrt.synchronize()
    for stream in [cyrt.Stream() for _ in range(4)]:
        with stream:
            found.extend(nn.attention(*arrays, mask=mask) for _ in range(8))
    wanted = reference(q, k, v, mask=mask)
    for each in found:
        assert_close(each, wanted, "bfloat16")


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ((2, 4, 2, 64, 64, 64), (64, 64)),
        ((2, 4, 2, 70, 99, 64), (70, 99)),
        ((2, 4, 2, 130, 257, 128), (2, 1, 1, 257)),
        ((2, 4, 2, 130, 257, 40), (1, 4, 130, 257)),
        ((2, 4, 4, 300, 200, 128), (2, 4, 300, 200)),
        ((1, 2, 1, 17, 1001, 64), (1001,)),
    ],
)
def test_masks(library, rng, name, shape, mask):
    q, k, v = operands(rng, name, *shape)
    shown = rng.random(mask) < 0.4
    shown[..., shown.shape[-1] // 2 :] &= rng.random() < 0.5
    if shown.ndim > 1 and shown.shape[-2] > 1:
        shown[..., 3, :] = shown[..., 16, :] = False
    arrays, given = on_device(q, k, v), cyrt.asarray(shown)
    found = nn.attention(*arrays, mask=given)
    assert_close(found, reference(q, k, v, mask=shown), name)
    again = nn.attention(*arrays, mask=given)
    np.testing.assert_array_equal(again.numpy().view("uint16"), found.numpy().view("uint16"))
