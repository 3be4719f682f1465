"""Attention to a cache of keys and values against NumPy in float64, and its launches."""

from __future__ import annotations

import numpy as np
import pytest
from attention_reference import ROPES, TYPES, on_device, operands, reference, turned
from explaining import explain
from rows_of_numbers import assert_close, exact, launches, numbers

import cyrt
from cyrt.nn import attention


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


def check_cache(rng, name, shape, capacity, position, rope, as_array=None, sinks=None, rest=None):
    """Rows from the position on hold `rest`, or random numbers."""
    batches, heads, shared, rows, features = shape
    q, k, v = operands(rng, name, batches, heads, shared, rows, rows, features)
    old = [numbers(rng, name, batches, shared, capacity, features) for _ in range(2)]
    if rest is not None:
        for each in old:
            each[:, :, position:] = rest
    cache = tuple(on_device(*old))
    given = position if as_array is None else as_array
    found = attention(*on_device(q, k, v), sinks=sinks, cache=cache, position=given, rope=rope)
    keys, values, seen = with_cache(k, v, *old, position, rope, name)
    assert_close(cache[0], exact(keys), name)
    before = ~seen[:, :, 0] | (np.arange(capacity) < np.asarray(position).reshape(-1, 1, 1))
    before = np.broadcast_to(
        before & ~(seen[:, :, -1] & ~seen[:, :, 0]), (batches, shared, capacity)
    )
    np.testing.assert_array_equal(exact(cache[0])[before], exact(old[0])[before])
    np.testing.assert_array_equal(exact(cache[1]), exact(values))
    wanted = reference(
        turned(exact(q), rope, position),
        np.nan_to_num(exact(keys)),
        np.nan_to_num(exact(values)),
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
    explained = explain("attention", name, (1, 2, 1, 128), (1, 2, 600, 128))
    assert explained.launches == 2
    check_cache(rng, name, (1, 2, 2, 1, 128), 600, position, ROPES["halves"], sinks=sinks)


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    ("shape", "capacity", "positions"),
    [
        ((1, 4, 1, 1, 64), 160, (0, 30, 63, 64, 127, 128, 159)),  # a block for each row
        ((3, 4, 1, 1, 64), 160, (64, 127, 128)),  # a block for up to 4
        ((2, 3, 1, 2, 64), 160, (62, 63, 126, 127)),  # a block for up to 8
        ((1, 2, 1, 3, 66), 20, (0, 7, 8, 15)),  # not aligned
        ((1, 2, 2, 3, 128), 600, (62, 63, 64, 400, 597)),  # several parts
        ((1, 4, 2, 2, 64), 5, (0, 3)),  # a cache of less than a chunk
        ((3, 4, 1, 1, 64), 5, (0, 4)),
    ],
)
def test_rows_behind_the_position_hold_anything(rng, name, shape, capacity, positions):
    """At the borders of chunks, and with new rows in two of them."""
    for position in positions:
        given = cyrt.asarray(position, dtype="int32")
        check_cache(rng, name, shape, capacity, position, ROPES["halves"], given, rest=np.nan)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "capacity", "position", "kernel"),
    [
        # batches, heads, heads of keys, rows, features
        ((1, 4, 1, 1, 64), 300, 299, "_64"),
        ((1, 8, 2, 1, 64), 700, 513, "_64"),
        ((2, 3, 1, 5, 64), 530, 0, "_64"),  # two tiles of rows
        ((1, 8, 2, 16, 16), 2100, 2084, "_64"),
        ((1, 8, 1, 1, 32), 3000, 2990, "_64"),  # many parts
        ((1, 4, 2, 2, 72), 300, 127, "_128"),
        ((1, 8, 1, 1, 128), 600, 16, "_128"),
        ((40, 4, 1, 1, 40), 50, 31, "_64"),  # many heads, each in a block
        ((1, 8, 1, 2, 136), 300, 70, "_256"),
        ((1, 2, 1, 3, 256), 200, 130, "_256"),
    ],
)
def test_tensor_cores(rng, name, shape, capacity, position, kernel):
    """Rows of queries that share keys, behind which memory holds anything."""
    batches, heads, shared, rows, features = shape
    explained = explain(
        "attention", name, (batches, heads, rows, features), (batches, shared, capacity, features)
    )
    assert explained.kernels[0][0] == f"cyrt_attention_{name}{kernel}"
    sinks = cyrt.asarray(numbers(rng, name, heads))
    given = cyrt.asarray(position, dtype="int32")
    check_cache(
        rng, name, shape, capacity, position, ROPES["halves"], given, sinks=sinks, rest=np.nan
    )


@pytest.mark.parametrize("scale", [0.0, -1.5])
def test_scales_of_tensor_cores(rng, scale):
    q, k, v = operands(rng, "float16", 1, 4, 1, 2, 300, 24)
    found = attention(*on_device(q, k, v), scale, "causal")
    assert_close(found, reference(q, k, v, scale=scale, mask="causal"), "float16", scale=2)


def test_tensor_cores_repeat_results(rng):
    arrays = on_device(*operands(rng, "bfloat16", 2, 8, 2, 2, 400, 64))
    found = {attention(*arrays, mask="causal").numpy().tobytes() for _ in range(3)}
    assert len(found) == 1


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


def test_positions_of_small_types_do_not_wrap(rng):
    for kind, at in (("int8", 100), ("uint8", 240)):
        position = cyrt.asarray(at, dtype=kind)
        check_cache(rng, "float32", (1, 2, 1, 40, 16), at + 40, at, ROPES["halves"], position)
    q, k, v = on_device(*operands(rng, "float32", 1, 2, 1, 5, 3, 8))
    for kind in "uint8", "uint32":
        found = attention(q, k, v, position=cyrt.asarray(7, dtype=kind), rope={})
        wanted = attention(q, k, v, position=7, rope={})
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-6)


@pytest.mark.parametrize("rope", [None, {}])
def test_new_rows_that_lie_in_the_cache(rng, rope):
    """Blocks of other heads and rows write the cache while it is read."""
    rooms = [numbers(rng, "float32", 1, 2, 32, 8) for _ in range(2)]
    q = numbers(rng, "float32", 1, 32, 2, 8)
    results = []
    for copied in True, False:
        keys, values = on_device(*rooms)
        k, v = keys[:, :, 4:6], values[:, :, 4:6]
        if copied:
            k, v = k.copy(), v.copy()
        found = attention(cyrt.asarray(q), k, v, cache=(keys, values), position=5, rope=rope)
        results.append([each.numpy() for each in (found, keys, values)])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(found, wanted)


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
@pytest.mark.parametrize(("capacity", "names"), [(64, [""]), (400, ["_4", "_parts"])])
def test_few_rows_are_a_launch_or_two(capacity, names):
    step = decoding(capacity)
    wanted = [f"cyrt_attention_float32{end}" for end in names]
    assert launches(lambda: step(5)) == wanted
    assert launches(lambda: step(cyrt.asarray([5], copy=True)))[-len(wanted) :] == wanted


@pytest.mark.usefixtures("batched", "pooled", "fresh_stream")
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


@pytest.mark.usefixtures("batched", "pooled", "fresh_stream")
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
        (lambda: cached(rope={"dims": 7}), ValueError, "rope: dims: .* from 2 to 8, .* got 7"),
        (
            lambda: cached(None),
            ValueError,
            "position: expected the number of rows that the cache holds",
        ),
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
        (lambda: cached(new=K), ValueError, r"as many new keys as queries"),
        (
            lambda: cached(cache=(2, 4, 10, 8)),
            ValueError,
            r"keys: expected shape \(2, 2, capacity, 8\), got \(2, 4, 10, 8\)",
        ),
        (lambda: cached(name="float16"), TypeError, "keys: expected float32, .* got float16"),
        (
            lambda: cached(mask=full((3, 10), bool)),
            ValueError,
            "mask: expected None or .*beside a cache",
        ),
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
            lambda: attention(full(Q), full(NEW), full(NEW), cache=(full(CACHE),) * 2, position=0),
            ValueError,
            "cache: expected keys and values that share no memory",
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
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def overlapping_caches():
    room, rows = cyrt.zeros((2, 2, 15, 8)), cyrt.zeros((2, 2, 10, 8))
    windows = cyrt.sliding_window_view(cyrt.zeros(100), (8,))[None, None, :10]
    yield room[:, :, :10], room[:, :, 5:]
    yield rows, rows[:, :, ::-1]
    yield rows, rows[::-1]
    yield rows, rows[:, ::-1]
    yield cyrt.broadcast_to(windows, (2, 2, 10, 8)), rows
    yield rows, cyrt.sliding_window_view(cyrt.zeros((2, 2, 17)), (8,), axis=2)
    wide = cyrt.zeros((2, 2, 10, 12))
    yield wide[..., :8], wide[..., 4:]


def test_caches_that_overlap_are_refused():
    for cache in overlapping_caches():
        for each in (cache, cache[::-1]):
            with pytest.raises(ValueError, match="attention: cache: .* share no memory"):
                attention(full(Q), full(NEW), full(NEW), cache=each, position=0)


def caches_side_by_side():
    pair = cyrt.zeros((2, 2, 10, 2, 8))
    yield pair[:, :, :, 0], pair[:, :, :, 1]
    wide = cyrt.zeros((2, 2, 10, 16))
    yield wide[..., :8], wide[..., 8:]
    heads = cyrt.zeros((2, 10, 4, 8))
    turned = cyrt.permute_dims(heads, (0, 2, 1, 3))
    yield turned[:, ::2], turned[:, 1::2]
    twice = cyrt.zeros((2, 2, 2, 10, 8))
    yield twice[:, 0], twice[:, 1, :, ::-1]


def test_caches_of_the_same_strides(rng):
    """Those that share an element are refused, by NumPy's judgement, and no others."""
    shape, refused = (2, 2, 3, 4), 0
    new = [full((2, 2, 1, 4))] * 3
    for _ in range(300):
        order, steps = rng.permutation(3), rng.choice([1, 1, 2, 3], 3)
        sizes = [int(rng.integers(4, 9)) for _ in order]
        host = np.empty((*sizes, 7), np.float32)
        whole = cyrt.zeros(host.shape)
        views, cache = [], []
        for _ in range(2):
            at = rng.integers(0, 4, 4)
            key = (*[slice(first, None, step) for first, step in zip(at, steps, strict=False)],)
            key += (slice(at[3], at[3] + 4),)
            there = tuple(slice(n) for n in shape)
            views.append(host[key].transpose(*order, 3)[there])
            cache.append(cyrt.permute_dims(whole[key], (*order, 3))[there])
        if any(each.shape != shape for each in views):
            continue
        if rng.random() < 0.3:
            views, cache = ([each[:, ::-1] for each in pair] for pair in (views, cache))
        if np.shares_memory(*views):
            refused += 1
            with pytest.raises(ValueError, match="expected keys and values that share no memory"):
                attention(*new, cache=cache, position=0)
        else:
            attention(*new, cache=cache, position=0)
    assert refused > 20


def test_caches_of_the_same_strides_need_no_search(monkeypatch):
    monkeypatch.setattr(np, "shares_memory", None)
    room = cyrt.zeros((6, 32, 4104, 2 * 16 + 3))
    keys, values = room[:, :, :4096, :16], room[:, :, :4096, 16:32]
    attention(full((6, 32, 1, 16)), *[full((6, 32, 1, 16))] * 2, cache=(keys, values), position=0)


def test_caches_that_lie_between_each_other(rng):
    """Their address ranges overlap, their elements do not."""
    q, k, v = (cyrt.asarray(numbers(rng, "float32", *each)) for each in (Q, NEW, NEW))
    wanted = attention(q, k, v, mask="causal").numpy()
    for keys, values in caches_side_by_side():
        found = attention(q, k, v, cache=(keys, values), position=0)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(keys[:, :, :3].numpy(), k.numpy())
        np.testing.assert_array_equal(values[:, :, :3].numpy(), v.numpy())
        assert not values[:, :, 3:].numpy().any()


@pytest.mark.parametrize("rows", [1, 3, 16, 20])
@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
@pytest.mark.parametrize("capacity", [32, 2000])
def test_what_is_behind_the_position_has_no_effect(name, rows, capacity, rng):
    q, k, v = (cyrt.asarray(numbers(rng, name, 2, heads, rows, 16)) for heads in (4, 2, 2))
    places = [5] if name == "float64" else [5, cyrt.asarray([5, 5])]
    for position in places:
        found = []
        for filler in (0, np.nan, np.inf):
            cache = [cyrt.full((2, 2, capacity, 16), filler, dtype=name) for _ in range(2)]
            for each in cache:
                each[:, :, :5] = 1
            found.append(attention(q, k, v, cache=cache, position=position).numpy())
        assert np.isfinite(found[0]).all()
        for each in found[1:]:
            np.testing.assert_array_equal(each, found[0])


def test_the_page_says_what_hidden_numbers_do():
    assert "NaN" in attention.__doc__.partition("mask : Array")[2].partition("sinks :")[0]
