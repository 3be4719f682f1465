"""Calls as programs for NumPy make them: the same code run on NumPy and on arrays."""

import numpy as np
import pytest

import cyrt

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7
WHOLE = np.arange(24).reshape(2, 3, 4) % 5
LINE = np.array([3.0, 1.0, 2.0, 2.0], np.float32)


def same(found, wanted):
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for each, other in zip(found, wanted, strict=True):
            same(each, other)
        return
    found = found.numpy() if isinstance(found, cyrt.Array) else np.asarray(found)
    assert found.shape == np.shape(wanted)
    assert found.dtype.kind == np.asarray(wanted).dtype.kind
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def into(np, shape, call, dtype="float32"):
    """What a call writes into `out`, which it returns, too."""
    out = np.zeros(shape, dtype=dtype)
    assert call(out) is out
    return out


CALLS = {
    "sum": lambda np, x, i: [
        np.sum(x, 0),
        np.sum(i, (0, 2), np.float64),
        x.sum(1),
        i.sum(-1, int),
        np.sum(x, 1, None, None, True),
    ],
    "prod": lambda np, x, i: [np.prod(x, 2), i.prod(0, np.float32)],
    "mean": lambda np, x, i: [np.mean(x, 1), x.mean(0), np.mean(i, 0, np.float64), i.mean((0, 1))],
    "var": lambda np, x, i: [
        np.var(x, 0),
        np.var(x, ddof=1),
        np.std(x, 1, ddof=1),
        x.std(ddof=1),
        x.var(2),
        np.std(i, 0, np.float64),
        np.var(x, correction=1),
        np.var(x, ddof=np.int64(1)),
    ],
    "without NaN": lambda np, x, i: [
        np.nanmean(np.where(x == 3, np.nan, x), 0, np.float64),
        np.nanstd(i, 1, dtype=np.float64, ddof=1),
        np.nanvar(np.where(x == 3, np.nan, x), dtype=np.float64),
    ],
    "extremes": lambda np, x, i: [
        np.max(x, 0),
        x.min(1),
        np.argmax(x, 1),
        x.argmin(2),
        np.any(i > 3, 0),
        (i > 3).all(1),
        np.count_nonzero(i, 0),
    ],
    "out of reductions": lambda np, x, i: [
        into(np, (3, 4), lambda out: np.sum(x, 0, out=out)),
        into(np, 4, lambda out: x.mean((0, 1), None, out)),
        into(np, (2, 4), lambda out: np.max(x, axis=1, out=out), "float64"),
        into(np, (2, 3), lambda out: (x > 2).any(2, out=out), bool),
        into(np, (2, 3), lambda out: np.argmin(x, 2, out), int),
        into(np, (2, 3), lambda out: np.std(x, 2, out=out, ddof=1)),
        into(np, 24, lambda out: np.cumsum(x, out=out)),
    ],
    "creation": lambda np, x, i: [
        np.zeros(2, int),
        np.ones((2, 3), np.float32),
        np.full(3, 7, np.float64),
        np.arange(0, 3, 1, np.float32),
        np.eye(3, 4, 1, int),
        np.asarray([1, 2], float),
        np.zeros_like(x, int),
        np.ones_like(i, float),
        np.full_like(i, 2.5, float),
        np.empty(2, np.int8).itemsize,
        np.empty_like(i, np.int8).itemsize,
    ],
    "linspace": lambda np, x, i: [
        np.linspace(0, 1),
        np.linspace(0, 1, 4, False),
        np.linspace(0, 3, 4, retstep=True),
        np.linspace(0, 3, 1, retstep=True),
    ],
    "triangles": lambda np, x, i: [np.tril(x[0], -1), np.triu(x, 1)],
    "joining sequences": lambda np, x, i: [
        np.concatenate(([0], x[0, 0])),
        np.concatenate([i[0, 0], (0.5,)]),
        np.hstack([[1, 2], [3]]),
        np.vstack((x[0], [1, 2, 3, 4])),
        np.stack([[1, 2], [3, 4]], 1),
        np.stack((x[0, 0], [1] * 4)),
    ],
    "joining": lambda np, x, i: [
        np.stack((x, x), -1),
        np.concat([x, x], 1),
        np.roll(x, 1, 0),
        np.repeat(x, 2, 1),
        np.flip(x, 1),
        *np.unstack(x),
    ],
    "sorting": lambda np, x, i: [
        np.sort(x, 0),
        np.argsort(x[0], 0),
        np.take_along_axis(x, np.argsort(x, 1), 1),
        np.searchsorted(np.arange(4), np.asarray([1, 2]), "right"),
        np.searchsorted(np.asarray([0, 1, 3], np.uint8), [0.5, 1, 9]),
    ],
    "take": lambda np, x, i: [
        np.take(x, [0, -1], 1),
        np.take(x, 5),
        np.take(x, [[1, 2]]),
        np.take(x, np.asarray([1, 1]), 0),
        np.take(x, range(2), -1),
    ],
    "range as an index": lambda np, x, i: x[0][range(3), [1, 0, 2]],
    "diff": lambda np, x, i: [
        np.diff(x, 2),
        np.diff(x, 1, 0),
        np.diff(i, prepend=0),
        np.diff(x, append=7, axis=1),
    ],
    "where": lambda np, x, i: [np.where(i > 2), np.where(i, x, -1), np.where(x, 1, 0)],
    "clip": lambda np, x, i: [
        np.clip(i, 0.5, 2.5),
        np.clip(x, a_min=1, a_max=3),
        i.clip(1.5),
        np.clip(i, 1, 3),
        np.clip(np.asarray(i, np.uint8), -1, 3),
        np.clip(np.asarray(i, np.int8), 2, 300),
        into(np, x.shape, lambda out: x.clip(1, 2, out)),
    ],
    "tensordot": lambda np, x, i: [np.tensordot(x[0], x[1], (0, 0)), np.tensordot(x, x.T, 1)],
    "products with bool": lambda np, x, i: [(x[0] > 2) @ x[1].T, np.dot(x[0], x[1, 0] > 2)],
    "isin": lambda np, x, i: np.isin(i, [1, 3]),
    "out by position": lambda np, x, i: [
        into(np, x.shape, lambda out: np.add(x, 1, out)),
        into(np, x.shape, lambda out: np.sqrt(x, out)),
    ],
    "numbers": lambda np, x, i: [
        np.sqrt(2),
        np.exp(-0.5) * x,
        np.maximum(3, 4),
        np.log(1),
        np.power(2, 3),
        np.isnan(1.5),
        np.round(2.567, 2),
        np.round(-3.5),
        x / np.sqrt(x.shape[-1]),
    ],
    "sequences": lambda np, x, i: [
        x * [1, 2, 3, 4],
        (1, 2, 3, 4) - x,
        [2] / (1 + x),
        np.maximum([1, 2, 3, 4], x),
        x == [3.0],
        i * [0.5] + i,
        2**i % [5],
        np.asarray(2) * [3, 4],
        x - [x[0, 0, 0], 1, 2, 0.5],
        i > (2,),
    ],
    "sequences beside arrays": lambda np, x, i: [
        np.fmax(x[0, 0], [1, np.nan, 3.5, 0]),
        np.fmod((7, 8, 9, 10), i[0, 0] + 1),
        np.isclose(x[0, 0], [0, 1, 2, 9.5]),
        np.gradient(x[0, 0], [0, 1, 3, 4]),
    ],
    "where of functions": lambda np, x, i: [
        into(np, x.shape, lambda out: np.divide(1, x, out=out, where=x != 0)),
        into(np, x.shape, lambda out: np.sqrt(x, out, where=i[:1, :, :1] > 2), "float64"),
        np.negative(i, i, where=i > 2),
        i,
    ],
    "kind": lambda np, x, i: [np.sort(x, kind="stable"), np.argsort(x, 1, "mergesort")],
    "out of products": lambda np, x, i: [
        into(np, (3, 3), lambda out: np.dot(x[0], x[1].T, out=out)),
        into(np, (3, 3), lambda out: np.matmul(x[0], x[1].T, out), "float64"),
        into(np, (2, 3, 3), lambda out: np.matmul(x, x[1].T, out)),
    ],
    "order": lambda np, x, i: [
        np.reshape(x, (4, -1), order="F"),
        x.reshape(6, 4, order="F"),
        np.ravel(x, "F"),
        x.T.flatten("F"),
        x.ravel(order="C"),
        np.reshape(x.T, (2, 12), "C"),
        x.reshape((2, -1)),
    ],
    "grids": lambda np, x, i: [
        *np.meshgrid([1, 2], range(3)),
        *np.meshgrid(np.arange(2), np.arange(3), [1.5], sparse=True),
        np.arange(start=1, stop=4),
        np.linspace(start=0, stop=1, num=3),
    ],
    "types": lambda np, x, i: [
        np.float32(2) * x,
        x * np.int32(3),
        np.float64(2.5),
        x.astype(x.dtype.type),
        np.int64(7),
        x.astype(np.int32),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_they_run_unchanged(name):
    same(
        CALLS[name](cyrt, cyrt.asarray(HOST), cyrt.asarray(WHOLE)),
        CALLS[name](np, HOST.copy(), WHOLE.copy()),
    )


def test_a_number_stays_weak():
    """NumPy's results of numbers do not widen an array."""
    x = cyrt.asarray(LINE)
    assert (x * cyrt.sqrt(2)).dtype == cyrt.float32
    assert (cyrt.asarray(LINE, dtype="float16") / cyrt.float32(2)).dtype == cyrt.float16
    assert (cyrt.asarray(LINE, dtype="float16") * [1, 2.5, 3, 4]).dtype == cyrt.float16
    assert cyrt.concat([[1.5], cyrt.asarray(LINE, dtype="float16")]).dtype == cyrt.float16
    wide = cyrt.asarray([1.0], dtype="float64") * [0.1, x[:1].item()]
    assert wide.dtype == cyrt.float64
    assert wide[0].item() == 0.1


def test_element_types_are_numpys_to_numpy():
    for each in (cyrt.bool, cyrt.int8, cyrt.uint64, cyrt.float16, cyrt.complex128):
        assert np.dtype(each) == each.numpy
        assert np.zeros(2, dtype=each).dtype == each.numpy
        assert issubclass(each.type, np.generic)
    assert np.issubdtype(cyrt.float32, np.floating)
    assert cyrt.float32(cyrt.asarray([1, 2])).dtype == cyrt.float32
    assert type(cyrt.float32(1)) is np.float32


def test_numpys_reductions_of_an_array():
    x = cyrt.asarray(HOST)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "all", "any"):
        found = getattr(np, name)(x, axis=1)
        assert isinstance(found, cyrt.Array)
        same(found, getattr(np, name)(HOST, axis=1))


def test_an_array_is_an_ndarray():
    assert isinstance(cyrt.zeros(2), cyrt.ndarray)
    assert cyrt.ndarray is cyrt.Array


def test_round_and_get():
    x = cyrt.asarray(LINE)
    assert round(x.std(), 1) == 0.7
    assert type(round(x.sum())) is int
    with pytest.raises(TypeError, match=r"only an array of one element is rounded .* \(4,\)"):
        round(x)
    assert isinstance(x.get(), np.ndarray)
    assert x.get().tolist() == LINE.tolist()


def test_bad_calls():
    x = cyrt.asarray(HOST)
    with pytest.raises(ValueError, match="sort: kind: expected one of quicksort, .*, got 'quick'"):
        cyrt.sort(x, kind="quick")
    with pytest.raises(TypeError, match="hstack: expected an Array, got float"):
        cyrt.hstack([x, 1.5])
    with pytest.raises(ValueError, match="ravel: order: expected 'C', 'F', 'A' or 'K', got 'B'"):
        x.ravel("B")
    with pytest.raises(ValueError, match=r"dot: .* shape \(2, 3, 2, 3\)"):
        cyrt.dot(x, cyrt.permute_dims(x, (0, 2, 1)), out=cyrt.zeros(3))
    with pytest.raises(TypeError, match="nanvar: dtype: expected a floating-point type, got int64"):
        cyrt.nanvar(x, dtype=int)
    with pytest.raises(TypeError, match=r"got list; cyrt.asarray\(\) copies it"):
        cyrt.sum([1, 2])


def test_a_view_by_take_is_a_copy():
    x = cyrt.asarray(LINE)
    cyrt.take(x, 1)[...] = 9
    assert x.tolist() == LINE.tolist()


def test_means_without_nan_of_many_16_bit_floats():
    """Their sums are out of the type's range."""
    host = np.tile(np.array([200, np.nan, 0], np.float16), 4000)
    assert cyrt.nanmean(cyrt.asarray(host)).item() == 100
    assert cyrt.nanvar(cyrt.asarray(host)).item() == 10_000
    assert cyrt.nanstd(cyrt.asarray(host)).dtype == cyrt.float16


def test_block_of_an_array_is_a_copy():
    x = cyrt.asarray(HOST)
    cyrt.block(x)[...] = 0
    np.testing.assert_array_equal(x.numpy(), HOST)
