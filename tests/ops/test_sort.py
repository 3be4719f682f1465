"""Sorting against NumPy: every real type, any axis and layout, bit for bit and stable."""

from __future__ import annotations

import numpy as np
import pytest
from along_rows import LAYOUTS, REAL, bits, bools_of, laid_out, shapes, values, wide
from explaining import explain
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.ops.sort import argsort, sort


def places(x, axis, descending):
    """NumPy's stable order; descending, equal elements keep their order as well."""
    x = wide(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def check(x, array, axis=-1, descending=False):
    expected = places(x, axis, descending)
    found = argsort(array, axis=axis, descending=descending)
    assert found.dtype == "int64"
    assert found.shape == x.shape
    np.testing.assert_array_equal(found.numpy(), expected)
    found = sort(array, axis=axis, descending=descending)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(bits(found.numpy()), bits(np.take_along_axis(x, expected, axis)))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(REAL),
    shape=shapes(9000),
    how=LAYOUTS,
    descending=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_as_numpy(name, shape, how, descending, seed):
    shape, axis = shape
    x = values(name, shape, np.random.default_rng(seed))
    check(x, laid_out(x, how), axis - len(shape) if seed % 2 else axis, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_several_long_rows(name, descending, rng):
    """Each is many tiles, that look back no further than to its first."""
    x = values(name, (3, 21_000), rng)
    check(x, cyrt.asarray(x), -1, descending)


@pytest.mark.parametrize("name", REAL)
def test_whole_tiles(name, rng):
    """The longest row that a block sorts, and one more."""
    for n in (4096, 8192):
        for x in (values(name, n, rng), values(name, n + 1, rng)):
            check(x, cyrt.asarray(x))


@pytest.mark.parametrize("name", ["float32", "int64"])
def test_many_tiles(name, rng):
    x = values(name, 300_001, rng)
    check(x, cyrt.asarray(x))


@pytest.mark.parametrize("n", [100, 5_000, 50_000])
def test_what_is_in_order(n):
    """Equal, ascending, descending: every element of a tile may have one digit."""
    for x in (
        np.full(n, 7, np.int32),
        np.arange(n, dtype=np.int32),
        np.arange(n, dtype=np.int32)[::-1],
    ):
        check(x, cyrt.asarray(x))


def test_many_short_rows(rng):
    x = values("float32", (5_000, 3), rng)
    check(x, cyrt.asarray(x))


def test_the_input_stays(rng):
    x = values("float32", 20_000, rng)
    array = cyrt.asarray(x)
    sort(array)
    argsort(array)
    np.testing.assert_array_equal(bits(array.numpy()), bits(x))


def test_any_byte_is_true():
    """All bools but 0 are equal, and keep their order."""
    x = bools_of([2, 0, 255, 1, 0, 3])
    assert argsort(x).tolist() == [1, 4, 0, 2, 3, 5]
    assert argsort(x, descending=True).tolist() == [0, 2, 3, 5, 1, 4]


def test_refused():
    x = cyrt.asarray(np.zeros(3, np.float32))
    for function in (sort, argsort):
        with pytest.raises(np.exceptions.AxisError):
            function(x, axis=1)
        with pytest.raises(np.exceptions.AxisError):
            function(cyrt.asarray(1.0))
        with pytest.raises(TypeError, match="complex64 has no order"):
            function(cyrt.asarray(np.zeros(3, np.complex64)))
        with pytest.raises(TypeError, match=r"expected an Array, got numpy\.ndarray"):
            function(np.zeros(3))


@pytest.mark.parametrize("name", ["int32", "float32", "bfloat16", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((50,), 0), ((7, 40), -1), ((40, 7), 0), ((4, 9, 5), 1)]
)
def test_top_k(rng, name, shape, axis):
    """Descending; of equal elements, of which there are many, the lower index first."""
    x = rng.integers(0, 9, shape).astype(cyrt.dtype(name).numpy)
    for k in 0, 1, 3, shape[axis]:
        values, indices = cyrt.top_k(cyrt.asarray(x), k, axis=axis)
        order = np.argsort(-x.astype(np.float64), axis=axis, kind="stable")
        wanted = np.take(order, np.arange(k), axis=axis)
        np.testing.assert_array_equal(indices.numpy(), wanted)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, wanted, axis))
        assert (str(values.dtype), indices.dtype) == (name, cyrt.int64)


@pytest.mark.parametrize("k", [1, 128, 129])
@pytest.mark.parametrize("name", REAL)
def test_top_k_is_what_a_descending_sort_puts_first(name, k, rng):
    """Rows of one tile and of several, with NaN, both zeros and many equal elements."""
    for n in 129, 4_096, 4_097, 9_001:
        x = values(name, (3, n), rng)
        order = places(x, -1, True)[:, :k]
        found, indices = cyrt.top_k(cyrt.asarray(x), k)
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(bits(found.numpy()), bits(np.take_along_axis(x, order, -1)))


@pytest.mark.parametrize("name", ["bfloat16", "float32", "int64"])
def test_top_k_of_a_vocabulary(name, rng):
    """What the tiles of a row leave is selected from again, twice where it is more than a tile."""
    for n, k, launches in ((128_256, 50, 2), (140_000, 128, 3)):
        assert explain("top_k", name, (2, n), k=k).launches == launches
        x = values(name, (2, n), rng)
        order = places(x, -1, True)[:, :k]
        np.testing.assert_array_equal(cyrt.top_k(cyrt.asarray(x), k)[1].numpy(), order)


def test_top_k_of_what_is_in_order():
    """Equal, ascending, descending: the elements of a tile may differ in their position alone; also
    of every second element, and with the order reversed."""
    n, k = 20_000, 100
    for x, first in (
        (np.full(n, 7, np.int32), np.arange(k)),
        (np.arange(n, dtype=np.int32), n - 1 - np.arange(k)),
        (-np.arange(n, dtype=np.int32), np.arange(k)),
    ):
        backwards = cyrt.asarray(np.repeat(x[::-1], 2))[::-2]
        for array in cyrt.asarray(x), backwards:
            assert cyrt.top_k(array, k)[1].tolist() == first.tolist()


def test_top_k_of_all_and_of_nan():
    values, indices = cyrt.top_k(cyrt.asarray([[1.0, np.nan], [np.inf, -1.0]]), 3, axis=None)
    np.testing.assert_array_equal(values.numpy(), [np.nan, np.inf, 1.0])
    assert indices.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3,), ValueError, r"an int from 0 to 2, the size of axis 0 of \(2,\), got 3"),
        ((-1,), ValueError, "got -1"),
        ((1.0,), TypeError, "k: expected an int, got float"),
        ((1, 1), np.exceptions.AxisError, "axis 1 is out of bounds"),
    ],
)
def test_top_k_of_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        cyrt.top_k(cyrt.asarray([1, 2]), *arguments)
