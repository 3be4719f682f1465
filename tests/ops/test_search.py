"""Binary search, and where elements are not zero, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from along_rows import LAYOUTS, REAL, bools_of, laid_out, lengths, shapes, values, wide
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.dtypes import DTYPES
from cyrt.ops.compact import positions, select
from cyrt.ops.search import flatnonzero, nonzero, searchsorted

SIDES = st.sampled_from(["left", "right"])


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(REAL),
    n=lengths(5_000),
    shape=shapes(600),
    side=SIDES,
    how=LAYOUTS,
    sorted_before=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_searchsorted_as_numpy(name, n, shape, side, how, sorted_before, seed):
    rng = np.random.default_rng(seed)
    x, v = values(name, n, rng), values(name, shape[0], rng)
    order = np.argsort(wide(x), kind="stable")
    sorter = laid_out(order.astype("int32" if seed % 2 else "int64"), how)
    found = searchsorted(
        laid_out(x[order] if sorted_before else x, how),
        laid_out(v, how),
        side=side,
        sorter=None if sorted_before else sorter,
    )
    assert found.dtype == "int64"
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(wide(x[order]), wide(v), side))


def test_searchsorted_promotes():
    x = cyrt.asarray(np.array([1, 2, 2, 3], np.int16))
    assert searchsorted(x, cyrt.asarray(np.array([1.5, 2, 9]))).tolist() == [1, 1, 4]
    assert searchsorted(x, 2.5).item() == 3
    assert searchsorted(x, 2, side="right").item() == 3
    with pytest.raises(TypeError, match="int64.*uint64|uint64.*int64"):
        searchsorted(cyrt.asarray(np.zeros(1, np.int64)), cyrt.asarray(np.zeros(1, np.uint64)))


def test_a_sorter_out_of_range_counts_as_the_nearest():
    x, v = cyrt.asarray(np.array([1.0, 2.0, 3.0])), cyrt.asarray(np.array([0.5, 2.5, 9]))
    assert searchsorted(x, v, sorter=cyrt.asarray(np.array([-7, 1, 99]))).tolist() == [0, 2, 3]


def test_searchsorted_refused():
    x = cyrt.asarray(np.zeros(3))
    with pytest.raises(ValueError, match=r"x1: expected one dimension, got shape \(1, 3\)"):
        searchsorted(x[None], x)
    with pytest.raises(ValueError, match="'left' or 'right', got 'middle'"):
        searchsorted(x, x, side="middle")
    with pytest.raises(ValueError, match=r"integers of shape \(3,\), got float64 of shape \(3,\)"):
        searchsorted(x, x, sorter=x)
    with pytest.raises(TypeError, match="complex128 has no order"):
        searchsorted(x.astype("complex128"), x)
    with pytest.raises(TypeError, match="expected an Array, got str"):
        searchsorted(x, "12")


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from([each.name for each in DTYPES]),
    shape=shapes(20_000),
    how=LAYOUTS,
    density=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_nonzero_and_select_as_numpy(name, shape, how, density, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape[0]) < density
    x = mask.astype(cyrt.asarray([0]).astype(name).dtype.numpy)
    array = laid_out(x, how)
    found, wanted = nonzero(array), np.nonzero(x)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == "int64"
        np.testing.assert_array_equal(one.numpy(), other)
    np.testing.assert_array_equal(flatnonzero(array).numpy(), np.flatnonzero(x))
    y = rng.integers(0, 100, shape[0]).astype(x.dtype)
    np.testing.assert_array_equal(select(laid_out(y, how), laid_out(mask, how)).numpy(), y[mask])


def test_a_large_mask(rng):
    """Its tiles' counts are more than a tile of the scan."""
    mask = rng.random(8192 * 4100 + 5) < 0.001
    np.testing.assert_array_equal(positions(cyrt.asarray(mask)).numpy(), np.flatnonzero(mask))


def test_nan_and_signed_zero():
    x = np.array([0.0, -0.0, np.nan, 1e-45, -np.inf], np.float32)
    assert flatnonzero(cyrt.asarray(x)).tolist() == [2, 3, 4]
    assert flatnonzero(cyrt.asarray(np.array([0, 1j, 1, complex(0, np.nan)]))).tolist() == [1, 2, 3]


def test_any_byte_is_true():
    mask = bools_of([2, 0, 255, 1, 0, 128])
    assert positions(mask).tolist() == [0, 2, 3, 5]
    assert select(cyrt.asarray(np.arange(6)), mask).tolist() == [0, 2, 3, 5]


def test_refused():
    mask = cyrt.asarray(np.zeros(3, bool))
    with pytest.raises(ValueError, match="at least one dimension, got a 0-dimensional"):
        nonzero(cyrt.asarray(1))
    with pytest.raises(TypeError, match="mask: expected a bool array, got float64"):
        positions(cyrt.asarray(np.zeros(3)))
    with pytest.raises(ValueError, match=r"x has shape \(2,\), the mask \(3,\)"):
        select(mask[:2], mask)
