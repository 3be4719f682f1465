"""Running sums and products, and differences, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from along_rows import LAYOUTS, laid_out, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.dtypes import DTYPES, dtype
from cyrt.ops.scan import cumprod, cumsum, cumulative_prod, cumulative_sum, diff

NAMES = [each.name for each in DTYPES]
NUMERIC = NAMES[1:]
RESULT = {"b": np.int64, "i": np.int64, "u": np.uint64}


def whole(name, shape, rng, low=-3, high=4):
    """Small whole numbers: their sums are exact in any type and order, of 16 bits up to some."""
    each = dtype(name)
    x = rng.integers(0 if each.kind in "bu" else low, high, shape)
    if each.kind == "c":
        x = x + 1j * rng.integers(low, high, shape)
    return x.astype(each.numpy)


def expected(function, x, axis, initial):
    """In the type that is summed up in; 16-bit floats are rounded at the end."""
    kind = dtype(x.dtype).kind
    exact = np.float64 if kind == "f" else np.complex128 if kind == "c" else RESULT[kind]
    name = x.dtype if kind in "fc" else exact
    return function(x.astype(exact), axis=axis, include_initial=initial).astype(name)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    shape=shapes(20_000),
    how=LAYOUTS,
    initial=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_sum_as_numpy(name, shape, how, initial, seed):
    shape, axis = shape
    x = whole(name, shape, np.random.default_rng(seed))
    found = cumulative_sum(laid_out(x, how), axis=axis, include_initial=initial).numpy()
    wanted = expected(np.cumulative_sum, x, axis, initial)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    rows=st.integers(0, 2),
    n=st.one_of(st.integers(0, 20), st.sampled_from([63, 64, 65, 2047, 2048, 2049])),
    columns=st.sampled_from([16, 31, 64, 65, 128, 256, 300]),
    how=LAYOUTS,
    initial=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_columns_as_numpy(name, rows, n, columns, how, initial, seed):
    """Strips of columns: a tile is 64 of their rows."""
    x = whole(name, (rows, n, columns), np.random.default_rng(seed))
    found = cumulative_sum(laid_out(x, how), axis=1, include_initial=initial).numpy()
    np.testing.assert_array_equal(found, expected(np.cumulative_sum, x, 1, initial))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    shape=shapes(20_000),
    how=LAYOUTS,
    initial=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_product_as_numpy(name, shape, how, initial, seed):
    shape, axis = shape
    x = np.random.default_rng(seed).choice([-1, 1, 1], shape).astype(dtype(name).numpy)
    if dtype(name).kind in "iu":  # products go round
        x *= np.asarray(3).astype(x.dtype)
    found = cumulative_prod(laid_out(x, how), axis=axis, include_initial=initial).numpy()
    wanted = expected(np.cumulative_prod, x, axis, initial)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("float32", (2, 300_000, 1)),
        ("int8", (3, 100_000, 1)),
        ("float16", (1, 100_001, 1)),
        ("complex128", (1, 50_001, 1)),
        ("int64", (1, 4096 * 2060, 1)),
        ("float32", (1, 64 * 2100 + 1, 17)),
        ("int8", (1, 64 * 1030, 16)),
        ("float16", (2, 4000, 300)),
    ],
)
def test_many_tiles(name, shape, rng):
    """In groups of 32, in runs of 32 groups; some have more than two runs' 2,048 of them."""
    x = whole(name, shape, rng)
    if name == "float16":  # beyond 2,048 sums are rounded, in one way
        x[:, 300:] = 0
    found = cumulative_sum(cyrt.asarray(x), axis=1, include_initial=True).numpy()
    np.testing.assert_array_equal(found, expected(np.cumulative_sum, x, 1, True))


def test_rounding_does_not_depend_on_timing(rng):
    for shape in ((2, 700_001), (1, 20_000, 32)):
        x = cyrt.asarray(rng.normal(size=shape).astype(np.float32))
        first = cumulative_sum(x, axis=1).numpy()
        for _ in range(5):
            np.testing.assert_array_equal(cumulative_sum(x, axis=1).numpy(), first)
        np.testing.assert_allclose(first, np.cumsum(x.numpy(), 1, np.float64), rtol=1e-4, atol=1e-2)


def test_16_bits_are_summed_up_in_float32():
    for name in ("float16", "bfloat16"):
        x = np.full(5_000, 1, dtype(name).numpy)
        found = cumulative_sum(cyrt.asarray(x)).numpy()
        np.testing.assert_array_equal(found, np.arange(1, 5_001).astype(x.dtype))


def test_infinities_and_nan():
    x = np.array([1, np.inf, 2, -np.inf, 3, np.nan], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cumulative_sum(cyrt.asarray(x)).numpy(), np.cumsum(x))
    assert np.signbit(cumulative_sum(cyrt.asarray(np.array([-0.0, -0.0]))).numpy()).all()


@pytest.mark.parametrize("target", NUMERIC)
@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float32"])
def test_dtype(name, target, rng):
    x = whole(name, 500, rng)
    found = cumulative_sum(cyrt.asarray(x), dtype=target)
    assert found.dtype == target
    with np.errstate(all="ignore"):
        wanted = expected(np.cumulative_sum, x.astype(dtype(target).numpy), 0, False)
    np.testing.assert_array_equal(found.numpy(), wanted.astype(dtype(target).numpy))


def test_numpy_forms(rng):
    x = whole("int32", (30, 40), rng)
    for function, reference in ((cumsum, np.cumsum), (cumprod, np.cumprod)):
        for axis in (None, 0, -1):
            np.testing.assert_array_equal(
                function(cyrt.asarray(x), axis).numpy(), reference(x, axis)
            )


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NUMERIC),
    shape=shapes(300),
    n=st.integers(0, 3),
    how=LAYOUTS,
    beside=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 2**32 - 1),
)
def test_diff_as_numpy(name, shape, n, how, beside, seed):
    shape, axis = shape
    x = whole(name, shape, np.random.default_rng(seed))
    array, options, given = laid_out(x, how), {}, {}
    for each, is_given in zip(("prepend", "append"), beside, strict=True):
        if is_given:
            options[each], given[each] = x, array
    found = diff(array, axis=axis, n=n, **given)
    wanted = np.diff(x, axis=axis, n=n, **options)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_refused():
    x = cyrt.asarray(np.zeros((2, 3), np.float32))
    for function in (cumulative_sum, cumulative_prod):
        with pytest.raises(
            ValueError, match=r"axis: expected an int for an array of shape \(2, 3\)"
        ):
            function(x)
        with pytest.raises(np.exceptions.AxisError):
            function(x, axis=2)
        with pytest.raises(TypeError, match="expected an Array, got list"):
            function([1, 2])
    with pytest.raises(ValueError, match="n: expected 0 or more, got -1"):
        diff(x, n=-1)
    with pytest.raises(ValueError, match=r"append has shape \(3, 3\), x \(2, 3\)"):
        diff(x, append=cyrt.asarray(np.zeros((3, 3), np.float32)))
    with pytest.raises(np.exceptions.AxisError):
        diff(cyrt.asarray(1.0))


def test_no_differences():
    """NumPy gives the array as it is, whatever is beside it."""
    x = cyrt.asarray([1.0, 2, 4])
    assert diff(x, n=0, prepend=1, append=cyrt.ones((7, 7))) is x
    assert diff(x[0], n=0).item() == 1
    with pytest.raises(ValueError, match="n: expected 0 or more, got -1"):
        diff(x, n=-1)


def test_differences_of_bool():
    host = np.array([[True, True, False], [False, True, True]])
    for n, axis in ((1, -1), (2, -1), (1, 0)):
        found = diff(cyrt.asarray(host), n=n, axis=axis)
        assert found.dtype == cyrt.bool
        assert found.tolist() == np.diff(host, n=n, axis=axis).tolist()
