"""Attention against NumPy in float64: whole, with a cache, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest
from rows_of_numbers import assert_close, exact, launches, numbers

import cyrt
from cyrt.nn import attention, attention_vjp

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


# -- without a cache ------------------------------------------------------------------------------

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
@pytest.mark.parametrize("kind", ["bool", "float32", "own"])
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
    found = attention_vjp(*on_device(q, k, v, g), 0.4, given)
    wanted = gradients(q, k, v, g, 0.4, mask)
    for each, like, expected in zip(found, (q, k, v), wanted, strict=True):
        assert each.shape == like.shape
        assert_close(each, expected, name, scale=max(1, np.abs(expected).max()))


def test_gradients_are_differences(rng):
    q, k, v = operands(rng, "float64", 1, 2, 1, 3, 4, 4)
    g = numbers(rng, "float64", *q.shape)
    arrays = on_device(q, k, v)
    found = attention_vjp(*arrays, cyrt.asarray(g), mask="causal")
    for i, gradient in enumerate(found):
        step = numbers(rng, "float64", *gradient.shape)
        sides = []
        for sign in 1, -1:
            moved = [*arrays]
            moved[i] = arrays[i] + cyrt.asarray(sign * 1e-5 * step)
            sides.append(np.vdot(attention(*moved, mask="causal").numpy(), g))
        slope = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(np.vdot(gradient.numpy(), step), slope, rtol=1e-7)


# -- with a cache ---------------------------------------------------------------------------------


def with_cache(k, v, keys, values, position, rope, name):
    """The cache after new rows, rounded as it is, and what each query sees of it."""
    new = turned(exact(k), rope, position).astype(k.dtype)
    keys, values = keys.copy(), values.copy()
    rows = k.shape[2]
    for batch, at in enumerate(np.broadcast_to(position, k.shape[:1])):
        keys[batch, :, at : at + rows] = new[batch]
        values[batch, :, at : at + rows] = v[batch]
    at = np.asarray(position).reshape(-1, 1, 1, 1)
    seen = np.arange(keys.shape[2]) <= at + np.arange(rows)[:, None]
    return keys, values, seen


def check_cache(rng, name, shape, capacity, position, rope, as_array=None, sinks=None):
    batches, heads, shared, rows, features = shape
    q, k, v = operands(rng, name, batches, heads, shared, rows, rows, features)
    old = [numbers(rng, name, batches, shared, capacity, features) for _ in range(2)]
    cache = tuple(on_device(*old))
    given = position if as_array is None else as_array
    found = attention(*on_device(q, k, v), sinks=sinks, cache=cache, position=given, rope=rope)
    keys, values, seen = with_cache(k, v, *old, position, rope, name)
    assert_close(cache[0], exact(keys), name)
    before = ~seen[:, :, 0] | (np.arange(capacity) < np.asarray(position).reshape(-1, 1, 1))
    before = np.broadcast_to(
        before & ~(seen[:, :, -1] & ~seen[:, :, 0]), (batches, shared, capacity)
    )
    np.testing.assert_array_equal(cache[0].numpy()[before], old[0][before])
    np.testing.assert_array_equal(cache[1].numpy(), values)
    wanted = reference(
        turned(exact(q), rope, position),
        keys,
        values,
        mask=seen,
        sinks=None if sinks is None else exact(sinks),
    )
    assert_close(found, wanted, name, scale=2)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
@pytest.mark.parametrize(
    ("shape", "capacity", "positions"),
    [
        # batches, heads, heads of keys, rows, features
        ((1, 4, 1, 1, 64), 160, (0, 1, 100, 159)),
        ((2, 2, 2, 1, 16), 40, (0, 39)),
        ((1, 2, 1, 2, 24), 33, (31,)),
        ((1, 4, 2, 5, 32), 50, (0, 44)),
        ((1, 2, 1, 16, 16), 16, (0,)),
        ((1, 8, 1, 16, 8), 90, (70,)),
        ((1, 2, 1, 17, 16), 40, (0, 23)),
        ((2, 3, 3, 2, 34), 20, (7,)),
    ],
)
def test_cache(rng, name, rope, shape, capacity, positions):
    for position in positions:
        check_cache(rng, name, shape, capacity, position, rope)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("position", [0, 3, 64, 300, 599])
def test_cache_in_parts(rng, name, position):
    """Parts that have no keys yet, one that has new ones alone, and all."""
    sinks = cyrt.asarray(numbers(rng, name, 2))
    told = cyrt.kernels.explain("attention", name, (1, 2, 1, 128), (1, 2, 600, 128))
    assert told.launches == 2
    check_cache(rng, name, (1, 2, 2, 1, 128), 600, position, ROPES["halves"], sinks=sinks)


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("features", [200, 256])
def test_cache_of_wide_heads(rng, rows, features):
    for name in "bfloat16", "float32":
        check_cache(rng, name, (1, 2, 1, rows, features), 150, 150 - rows, ROPES["halves"])


@pytest.mark.parametrize("rows", [1, 4, 17, 40])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_positions_on_the_device(rng, rows, kind):
    to = cyrt.dtype(kind).numpy
    shape = (2, 4, 2, rows, 16)
    one = cyrt.asarray(np.array([9], to))
    for given in one, one.reshape(()):
        check_cache(rng, "float32", shape, 70, 9, ROPES["halves"], given)
    each = np.array([30, 5], to)
    check_cache(rng, "float32", shape, 70, each.astype(int), ROPES["halves"], cyrt.asarray(each))
    spaced = cyrt.asarray(np.repeat(each, 2))[::2]
    check_cache(rng, "bfloat16", shape, 70, each.astype(int), ROPES["neighbours"], spaced)


@pytest.mark.parametrize("rows", [2, 20])
def test_positions_on_the_device_are_clipped(rng, setting, rows):
    setting(CYRT_CHECK="0")
    q, k, v = operands(rng, "float32", 1, 2, 1, rows, rows, 8)
    for position, at in ((-3, 0), (1000, 8), (9, 8)):
        results = []
        for each in cyrt.asarray([position]), at:
            cache = cyrt.ones((1, 1, 8 + rows, 8)), cyrt.ones((1, 1, 8 + rows, 8))
            results.append(attention(*on_device(q, k, v), cache=cache, position=each).numpy())
        np.testing.assert_allclose(*results, atol=1e-6)


def test_positions_on_the_device_are_checked(setting):
    setting(CYRT_CHECK="1")
    x = cyrt.ones((1, 1, 2, 8))
    cache = cyrt.ones((1, 1, 10, 8)), cyrt.ones((1, 1, 10, 8))
    with pytest.raises(IndexError, match="2 rows at 9 do not fit in a cache of 10"):
        attention(x, x, x, cache=cache, position=cyrt.asarray([9]))


@pytest.mark.parametrize("rows", [1, 20])
def test_cache_that_is_a_part_of_an_array(rng, rows):
    """All layers' keys and values in one array; positions before heads."""
    q, k, v = operands(rng, "float32", 2, 4, 2, rows, rows, 16)
    old = numbers(rng, "float32", 2, 3, 2, 50, 2, 16)
    room = cyrt.asarray(old)
    cache = tuple(room[i, 1].swapaxes(1, 2) for i in range(2))
    found = attention(*on_device(q, k, v), cache=cache, position=30)
    keys, values, seen = with_cache(
        k, v, *(each[1].swapaxes(1, 2) for each in old), 30, None, "float32"
    )
    assert_close(found, reference(q, keys, values, mask=seen), "float32")
    old[0, 1], old[1, 1] = keys.swapaxes(1, 2), values.swapaxes(1, 2)
    np.testing.assert_array_equal(room.numpy(), old)


def test_rope_with_frequencies(rng):
    freqs = np.sort(rng.uniform(1, 500, 8)).astype(np.float32)
    rope = {"freqs": cyrt.asarray(freqs)}
    for rows in 1, 20:
        check_cache(rng, "float32", (1, 4, 2, rows, 16), 60, 33, rope)


def test_float64_has_a_cache_too(rng):
    check_cache(rng, "float64", (1, 4, 2, 3, 16), 20, 11, None)


def test_token_after_token_is_all_at_once(rng):
    """A cache that fills up row by row gives what all rows give together."""
    q, k, v = operands(rng, "float32", 1, 4, 2, 24, 24, 16)
    rope = ROPES["halves"]
    whole = attention(*on_device(q, k, v), mask="causal", rope=rope).numpy()
    cache = cyrt.zeros((1, 2, 24, 16)), cyrt.zeros((1, 2, 24, 16))
    position = cyrt.zeros((), dtype=cyrt.int32)
    at, found = 0, []
    for count in 17, 1, 1, 4, 1:
        rows = on_device(*(each[:, :, at : at + count] for each in (q, k, v)))
        found.append(attention(*rows, cache=cache, position=position, rope=rope).numpy())
        position += count
        at += count
    np.testing.assert_allclose(np.concatenate(found, 2), whole, atol=2e-6)


def test_results_repeat(rng):
    """Equal inputs give equal bits, in parts too."""
    q, k, v = on_device(*operands(rng, "bfloat16", 1, 4, 2, 1, 1, 128))
    old = on_device(*(numbers(rng, "bfloat16", 1, 2, 700, 128) for _ in range(2)))
    found = [
        attention(q, k, v, cache=(old[0].copy(), old[1].copy()), position=650).numpy()
        for _ in range(3)
    ]
    np.testing.assert_array_equal(found[0].view(np.uint16), found[1].view(np.uint16))
    np.testing.assert_array_equal(found[0].view(np.uint16), found[2].view(np.uint16))


# -- launches -------------------------------------------------------------------------------------


def decoding(capacity, features=64):
    q = cyrt.ones((1, 4, 1, features), dtype=cyrt.float32)
    k = cyrt.ones((1, 2, 1, features), dtype=cyrt.float32)
    cache = tuple(cyrt.zeros((1, 2, capacity, features), dtype=cyrt.float32) for _ in range(2))
    return lambda position: attention(q, k, k, cache=cache, position=position, rope={})


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize(("capacity", "names"), [(64, ["_4"]), (400, ["_4", "_parts"])])
def test_few_rows_are_a_launch_or_two(capacity, names):
    step = decoding(capacity)
    wanted = [f"cyrt_attention_float32{end}" for end in names]
    assert launches(lambda: step(5)) == wanted
    assert launches(lambda: step(cyrt.asarray([5], copy=True)))[-len(wanted) :] == wanted


@pytest.mark.usefixtures("batched", "pooled")
@pytest.mark.parametrize(("capacity", "nodes"), [(64, 1), (400, 2)])
def test_a_growing_position_patches_numbers_alone(capacity, nodes):
    """The graph and its geometry stay, however full the cache is."""
    step = decoding(capacity)
    encoder = cyrt.current_encoder()
    cyrt.commit()
    patched, grids = [], set()
    for position in range(20):
        before = encoder.stats()
        y = step(position)
        cyrt.commit()
        after = encoder.stats()
        patched.append(after["patched"] - before["patched"])
        assert after["misses"] == before["misses"] or position < 8
        grids.add(tuple(node.grid for node in encoder.last_plan().nodes))
        del y
    assert patched[-8:] == [nodes] * 8
    assert len(grids) == 1


@pytest.mark.usefixtures("batched", "pooled")
def test_a_position_on_the_device_patches_nothing():
    step = decoding(400)
    encoder = cyrt.current_encoder()
    position = cyrt.zeros((), dtype=cyrt.int32)
    patched = []
    for _ in range(20):
        before = encoder.stats()["patched"]
        y = step(position)
        position += 1
        cyrt.commit()
        patched.append(encoder.stats()["patched"] - before)
        del y
    assert patched[-8:] == [0] * 8


# -- bad input ------------------------------------------------------------------------------------

Q, K = (2, 4, 3, 8), (2, 2, 5, 8)
NEW, CACHE = (2, 2, 3, 8), (2, 2, 10, 8)


def full(shape, name="float32"):
    return cyrt.ones(shape, dtype=name)


def cached(position=0, q=Q, new=NEW, cache=CACHE, name="float32", **options):
    arrays = [full(q), full(new), full(new)]
    return attention(*arrays, cache=(full(cache, name), full(cache)), position=position, **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: attention(full(Q), full(Q), full(K)), ValueError, r"got \(2, 4, 3, 8\), \(2, 4"),
        (lambda: attention(full((4, 3, 8)), full(K), full(K)), ValueError, r"q \(B, H, T, D\)"),
        (
            lambda: attention(full((2, 3, 3, 8)), full(K), full(K)),
            ValueError,
            r"3 heads of q are no multiple of the 2 heads of k and v: shapes \(2, 3, 3, 8\)",
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
        (lambda: cached(rope={"dims": 7}), ValueError, "rope: dims: .* from 2 to 8, .* got 7"),
        (lambda: cached(None), ValueError, "position: a cache needs that of the first new row"),
        (lambda: cached(8), ValueError, "3 rows at 8 do not fit in a cache of 10"),
        (lambda: cached(10), ValueError, "3 rows at 10 do not fit in a cache of 10"),
        (lambda: cached(-1), ValueError, "3 rows at -1 do not fit"),
        (lambda: cached(cache=(2, 2, 2, 8)), ValueError, "3 rows do not fit in a cache of 2"),
        (lambda: cached(1.5), TypeError, "position: expected an int or an Array .* got float"),
        (lambda: cached(True), TypeError, "position: .* got bool"),
        (lambda: cached(full(1)), TypeError, "position: expected integers, got float32"),
        (
            lambda: cached(cyrt.zeros(3, dtype=cyrt.int32)),
            ValueError,
            r"one number, or shape \(2,\), for q .* got \(3,\)",
        ),
        (lambda: cached(new=K), ValueError, r"as many new keys as queries: q \(2, 4, 3, 8\), k"),
        (
            lambda: cached(cache=(2, 4, 10, 8)),
            ValueError,
            r"keys: expected shape \(2, 2, capacity, 8\), got \(2, 4, 10, 8\)",
        ),
        (lambda: cached(name="float16"), TypeError, "keys: expected float32, .* got float16"),
        (lambda: cached(mask=full((3, 10), bool)), ValueError, "mask: with a cache it is None or"),
        (
            lambda: attention(full(Q), full(NEW), full(NEW), cache=full(CACHE), position=0),
            TypeError,
            "cache: expected a tuple of keys and values, got Array",
        ),
        (
            lambda: attention(
                full(Q), full(NEW), full(NEW), cache=(full(CACHE), full((2, 2, 11, 8))), position=0
            ),
            ValueError,
            r"of one shape, .* got \(2, 2, 10, 8\) and \(2, 2, 11, 8\)",
        ),
        (
            lambda: attention(
                full(Q),
                full(NEW),
                full(NEW),
                cache=(cyrt.broadcast_to(full(8), CACHE), full(CACHE)),
                position=0,
            ),
            ValueError,
            r"elements share no memory, .* got strides \(0, 0, 0, 4\)",
        ),
        (
            lambda: attention(
                *[cyrt.ones((1, 1, 1, 300))] * 3,
                cache=(cyrt.ones((1, 1, 9, 300)), cyrt.ones((1, 1, 9, 300))),
                position=cyrt.asarray([3]),
            ),
            ValueError,
            "at most 256 features, got 300",
        ),
        (
            lambda: attention_vjp(full(Q), full(K), full(K), full(K)),
            ValueError,
            r"attention_vjp: g: expected shape \(2, 4, 3, 8\), that of q, got \(2, 2, 5, 8\)",
        ),
        (
            lambda: attention_vjp(full(Q), full(K), full(K), full(Q, "float16")),
            TypeError,
            "g: expected float32, the type of q, got float16",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
