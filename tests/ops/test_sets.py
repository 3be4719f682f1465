"""Unique elements and membership against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from along_rows import LAYOUTS, REAL, laid_out, shapes, values, wide
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.ops.sets import isin, unique_all, unique_counts, unique_inverse, unique_values


@settings(max_examples=80, deadline=None)
@given(name=st.sampled_from(REAL), shape=shapes(5_000), how=LAYOUTS, seed=st.integers(0, 2**32 - 1))
def test_unique_as_numpy(name, shape, how, seed):
    x = values(name, shape[0], np.random.default_rng(seed))
    array = laid_out(x, how)
    found = unique_all(array)
    wanted, *others = np.unique(
        wide(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    others[1] = others[1].reshape(x.shape)
    assert found.values.dtype == name
    np.testing.assert_array_equal(wide(found.values.numpy()), wanted)
    for one, other in zip(found[1:], others, strict=True):
        assert one.dtype == "int64"
        np.testing.assert_array_equal(one.numpy(), other)
    np.testing.assert_array_equal(wide(unique_values(array).numpy()), wanted)
    for function, other in ((unique_counts, others[2]), (unique_inverse, others[1])):
        each, more = function(array)
        np.testing.assert_array_equal(wide(each.numpy()), wanted)
        np.testing.assert_array_equal(more.numpy(), other)


def test_names_of_the_results():
    x = cyrt.asarray([3, 1, 3])
    assert unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert unique_counts(x)._fields == ("values", "counts")
    assert unique_inverse(x)._fields == ("values", "inverse_indices")


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex(name, rng):
    parts = np.array([0.0, -0.0, 1, 2, np.nan], np.float64)
    x = np.empty(400, name)
    x.real, x.imag = parts[rng.integers(0, 5, (2, 400))]
    found = unique_all(cyrt.asarray(x))
    known = x[~np.isnan(x)]
    count = len(set(known.tolist())) + np.isnan(x).sum()
    chosen = found.values.numpy()
    assert len(chosen) == count
    np.testing.assert_array_equal(x[found.indices.numpy()], chosen)
    np.testing.assert_array_equal(chosen[found.inverse_indices.numpy()], x)
    np.testing.assert_array_equal(
        found.counts.numpy(), np.bincount(found.inverse_indices.numpy(), minlength=count)
    )
    np.testing.assert_array_equal(unique_values(cyrt.asarray(x)).numpy(), chosen)
    for invert in (False, True):
        np.testing.assert_array_equal(
            isin(cyrt.asarray(x), cyrt.asarray(x[:9]), invert=invert).numpy(),
            (x[:, None] == x[:9]).any(1) != invert,
        )


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(REAL),
    shape=shapes(2_000),
    count=st.integers(0, 300),
    how=LAYOUTS,
    invert=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_isin_as_numpy(name, shape, count, how, invert, seed):
    rng = np.random.default_rng(seed)
    x, others = values(name, shape[0], rng), values(name, count, rng)
    found = isin(laid_out(x, how), laid_out(others, how), invert=invert)
    assert found.dtype == "bool"
    np.testing.assert_array_equal(found.numpy(), np.isin(wide(x), wide(others), invert=invert))


def test_isin_of_numbers_and_types():
    x = cyrt.asarray(np.array([[1, 2], [3, 300]], np.int32))
    assert isin(x, 3).tolist() == [[False, False], [True, False]]
    found = isin(300, x)
    assert found.shape == ()
    assert found.item() is True
    assert isin(x, cyrt.asarray(np.array([2.0, 2.5]))).tolist() == [[False, True], [False, False]]
    with pytest.raises(TypeError, match="test_elements: expected an Array, got int"):
        isin(1, 2)
    with pytest.raises(TypeError, match="x1: expected an Array, got numpy.ndarray"):
        isin(np.zeros(2), x)
