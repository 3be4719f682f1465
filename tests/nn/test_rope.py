"""Rotary position embedding against float64, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from explaining import explain
from rows_of_numbers import assert_close, exact, numbers

import cyrt
from cyrt import nn
from cyrt.nn import rope, rope_vjp

TYPES = ["float16", "bfloat16", "float32"]


def reference(x, dims, traditional=False, base=10000.0, scale=1.0, offset=0, freqs=None, sign=1):
    """The rotation in float64; offset is a number, or one for each index of the first dimension."""
    pairs = dims // 2
    turns = base ** (-np.arange(pairs) / pairs) if freqs is None else 1 / np.asarray(freqs)
    offset = np.asarray(offset, np.float64)
    if offset.ndim and x.ndim > 2:
        offset = offset.reshape(-1, *[1] * (x.ndim - 2))
    positions = np.arange(x.shape[-2]) + offset
    angles = sign * scale * positions[..., None] * turns
    cosine, sine = np.cos(angles), np.sin(angles)
    x = x.astype(np.float64)
    out = x.copy()
    low = np.s_[..., 0:dims:2] if traditional else np.s_[..., :pairs]
    high = np.s_[..., 1:dims:2] if traditional else np.s_[..., pairs:dims]
    out[low] = x[low] * cosine - x[high] * sine
    out[high] = x[low] * sine + x[high] * cosine
    return out


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("features", [4, 6, 64])
def test_frequencies_of_float64(rng, features, name):
    """Large angles need all of their digits; with a cache, too."""
    freqs = 10000 ** (2 * np.arange(features // 2) / features)
    x = numbers(rng, name, 2, 1, 3, features)
    a, wanted = cyrt.asarray(x), reference(x, features, scale=131_071, offset=1)
    for each in (cyrt.asarray(freqs), cyrt.asarray(np.repeat(freqs, 2))[::2]):
        found = rope(a, features, offset=1, scale=131_071, freqs=each)
        assert_close(found, wanted, name)
        cache = [cyrt.zeros((2, 1, 4, features), dtype=name) for _ in range(2)]
        turn = {"freqs": each, "scale": 131_071}
        nn.attention(a, a, a, cache=cache, position=1, rope=turn)
        assert_close(cache[0][:, :, 1:], wanted, name)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("traditional", [False, True], ids=["halves", "neighbours"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((5, 8), 8),
        ((7, 64), 64),
        ((7, 64), 32),
        ((3, 6, 10), 6),
        ((2, 32, 1, 64), 64),
        ((2, 5, 9, 80), 48),
        ((1, 3, 2, 4, 33), 30),
        ((1, 1, 300, 2), 2),
    ],
)
def test_values(rng, name, traditional, shape, dims):
    x = numbers(rng, name, *shape)
    found = rope(cyrt.asarray(x), dims, traditional, offset=3)
    assert found.shape == shape
    assert_close(found, reference(x, dims, traditional, offset=3), name)
    gradient = rope_vjp(cyrt.asarray(x), dims, traditional, offset=3)
    assert_close(gradient, reference(x, dims, traditional, offset=3, sign=-1), name)


def test_features_beyond_dims_are_copied_exactly(rng):
    x = numbers(rng, "float32", 4, 20)
    found = rope(cyrt.asarray(x), 8, offset=100).numpy()
    np.testing.assert_array_equal(found[:, 8:], x[:, 8:])


@pytest.mark.parametrize("position", [0, 1000, 100_000, 2**31, -17])
def test_angles_are_exact_at_any_position(rng, position):
    x = numbers(rng, "float32", 2, 3, 64)
    found = rope(cyrt.asarray(x), 64, offset=position)
    assert_close(found, reference(x, 64, offset=position), "float32")


@pytest.mark.parametrize("options", [{"base": 500_000.0}, {"scale": 0.125}, {"base": 1.0}])
def test_base_and_scale(rng, options):
    x = numbers(rng, "float32", 2, 50, 32)
    assert_close(rope(cyrt.asarray(x), 32, **options), reference(x, 32, **options), "float32")


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_frequencies(rng, name):
    """Divisors of the angles, as Llama 3 scales them."""
    freqs = (10000 ** (np.arange(16) / 16) * rng.uniform(1, 8, 16)).astype(cyrt.dtype(name).numpy)
    x = numbers(rng, "float32", 2, 40, 32)
    wanted = reference(x, 32, freqs=freqs.astype(np.float64), scale=0.5)
    assert_close(rope(cyrt.asarray(x), 32, scale=0.5, freqs=cyrt.asarray(freqs)), wanted, "float32")
    every_other = cyrt.asarray(np.repeat(freqs, 2))[::2]
    assert_close(rope(cyrt.asarray(x), 32, scale=0.5, freqs=every_other), wanted, "float32")


@pytest.mark.parametrize("name", ["int32", "int64", "uint32"])
def test_offsets_on_the_device(rng, name):
    x = numbers(rng, "float32", 3, 2, 4, 16)
    one = cyrt.asarray(np.array(70, cyrt.dtype(name).numpy))
    assert_close(rope(cyrt.asarray(x), 16, offset=one), reference(x, 16, offset=70), "float32")
    each = np.array([5, 0, 1_000_000], cyrt.dtype(name).numpy)
    wanted = reference(x, 16, offset=each)
    assert_close(rope(cyrt.asarray(x), 16, offset=cyrt.asarray(each)), wanted, "float32")
    spaced = cyrt.asarray(np.repeat(each, 2))[::2]
    assert_close(rope(cyrt.asarray(x), 16, offset=spaced), wanted, "float32")


def test_views(rng):
    x = numbers(rng, "float32", 2, 6, 5, 16)
    wanted = reference(x, 16, offset=2)
    heads_last = cyrt.asarray(np.ascontiguousarray(x.transpose(0, 2, 1, 3))).transpose((0, 2, 1, 3))
    room = np.zeros((2, 6, 5, 24), np.float32)
    room[..., 4:20] = x
    backwards = cyrt.asarray(np.ascontiguousarray(x[..., ::-1]))[..., ::-1]
    for view in heads_last, cyrt.asarray(room)[..., 4:20], backwards:
        assert_close(rope(view, 16, offset=2), wanted, "float32")
    repeated = cyrt.broadcast_to(cyrt.asarray(x[:1, :1]), x.shape)
    alike = np.broadcast_to(x[:1, :1], x.shape)
    assert_close(rope(repeated, 16), reference(alike, 16), "float32")


def test_gradient_is_the_transpose(rng):
    """<rope(x), g> = <x, rope_vjp(g)>."""
    x, g = (numbers(rng, "float32", 3, 4, 7, 24) for _ in range(2))
    options = {"dims": 16, "traditional": True, "offset": 11}
    left = np.vdot(exact(rope(cyrt.asarray(x), **options)), g)
    right = np.vdot(x, exact(rope_vjp(cyrt.asarray(g), **options)))
    np.testing.assert_allclose(left, right, rtol=1e-5)


def test_vectors_and_elements_are_chosen():
    """Rows that divide into vectors take the vectors' kernel."""
    assert explain("rope", "bfloat16", (32, 1, 64)).kernel == "cyrt_rope_bfloat16_vectors"
    assert explain("rope", "bfloat16", (32, 1, 62)).kernel == "cyrt_rope_bfloat16"


def test_sizes_beyond_a_launch_are_halved():
    for shape in ((1 << 20, 1 << 14, 2), (3, 1 << 30, 6), (1 << 33, 1, 2)):
        explained = explain("rope", "float32", shape)
        assert explained.launches > 1
        assert all(grid < 2**31 for _, grid, _ in explained.kernels)


@pytest.mark.usefixtures("batched", "pooled", "fresh_stream")
def test_a_growing_position_patches_one_node():
    x = cyrt.ones((1, 8, 1, 64), dtype=cyrt.float32)
    encoder = cyrt.current_encoder()
    patched = []
    for position in range(12):
        before = encoder.stats()["patched"]
        y = rope(x, 64, offset=position)
        cyrt.commit()
        patched.append(encoder.stats()["patched"] - before)
        del y
    assert patched[8:] == [1] * 4


def test_no_elements():
    assert rope(cyrt.zeros((0, 3, 8), dtype=cyrt.float32), 8).shape == (0, 3, 8)
    assert rope(cyrt.zeros((2, 0, 8), dtype=cyrt.float32), 8).shape == (2, 0, 8)


X = (3, 2, 4, 8)


@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize("features", [8, 9])
def test_out(traditional, features, rng):
    x = numbers(rng, "float32", 2, 3, 5, features)
    options = {"traditional": traditional, "offset": 3}
    wanted = exact(rope(cyrt.asarray(x), 6, **options))
    wide = cyrt.zeros((2, 3, 5, features + 8))
    for out in cyrt.zeros(x.shape), wide[..., 8:], cyrt.zeros((2, 5, 3, features)).swapaxes(1, 2):
        assert rope(cyrt.asarray(x), 6, **options, out=out) is out
        np.testing.assert_array_equal(exact(out), wanted)
    assert not np.any(exact(wide[..., :8]))
    half = cyrt.zeros(x.shape, dtype="float16")
    assert rope(cyrt.asarray(x), 6, **options, out=half) is half
    np.testing.assert_allclose(exact(half), wanted, rtol=1e-3, atol=1e-3)
    a = cyrt.asarray(x)
    assert rope(a, 6, **options, out=a) is a
    np.testing.assert_array_equal(exact(a), wanted)
    room = cyrt.asarray(np.concatenate([x, x[:1]]))  # the result overlaps x elsewhere
    rope(room[:2], 6, **options, out=room[1:])
    np.testing.assert_array_equal(exact(room[1:]), wanted)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: rope(x, 7), ValueError, "an even number from 2 to 8"),
        (lambda x: rope(x, 10), ValueError, "an even number from 2 to 8, .* got 10"),
        (lambda x: rope(x, 0), ValueError, "got 0"),
        (lambda x: rope(x, 8.0), TypeError, "dims: expected an int, got float"),
        (lambda x: rope(x[0, 0, 0], 8), ValueError, r"at least two dimensions, got shape \(8,\)"),
        (lambda x: rope(x.astype(cyrt.int32), 8), TypeError, "no kernel for int32"),
        (lambda x: rope(x.astype(cyrt.float64), 8), TypeError, "no kernel for float64"),
        (lambda x: rope(np.zeros(X, np.float32), 8), TypeError, "expected an Array, got numpy"),
        (lambda x: rope(x, 8, base=0), ValueError, "base: expected a number above 0, got 0"),
        (lambda x: rope(x, 8, base=10**400), ValueError, "base: expected a finite number"),
        (lambda x: rope(x, 8, base="e"), TypeError, "base: expected a number, got str"),
        (lambda x: rope(x, 8, scale=float("nan")), ValueError, "scale: expected a finite number"),
        (lambda x: rope(x, 8, offset=1.5), TypeError, "offset: expected an int or an Array"),
        (lambda x: rope(x, 8, offset=2**63), ValueError, "offset: expected an int of 64 bits"),
        (
            lambda x: rope(x, 8, offset=cyrt.zeros(2, dtype=cyrt.int32)),
            ValueError,
            r"expected shape \(\) or \(3,\), .* got \(2,\)",
        ),
        (
            lambda x: rope(x, 8, offset=cyrt.zeros(3, dtype=cyrt.float32)),
            TypeError,
            "offset: expected integers, got float32",
        ),
        (
            lambda x: rope(x, 8, freqs=cyrt.ones(8, dtype=cyrt.float32)),
            ValueError,
            r"freqs: expected shape \(4,\), half of dims, got \(8,\)",
        ),
        (
            lambda x: rope(x, 8, freqs=cyrt.ones(4, dtype=cyrt.int32)),
            TypeError,
            "freqs: expected a real floating-point type, got int32",
        ),
        (
            lambda x: rope(x, 8, out=cyrt.ones(3)),
            ValueError,
            r"rope: the result has shape .* cannot be written into shape \(3,\)",
        ),
        (lambda x: rope(x, 8, out=1), TypeError, "rope: out: expected an Array, got int"),
        (lambda x: rope_vjp([1.0], 2), TypeError, "rope_vjp: g: expected an Array, got list"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(cyrt.zeros(X, dtype=cyrt.float32))
