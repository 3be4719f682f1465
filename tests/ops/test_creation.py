"""Identities, triangles, grids, evenly spaced numbers: against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.ops import grids

quick = settings(max_examples=50, deadline=None)
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")


def same(found, wanted):
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


@quick
@given(
    st.integers(0, 5), st.none() | st.integers(0, 5), st.integers(-6, 6), st.sampled_from(DTYPES)
)
def test_eye(rows, columns, k, dtype):
    same(grids.eye(rows, columns, k=k, dtype=dtype), np.eye(rows, columns, k, dtype=dtype))


@quick
@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=4).map(tuple),
    st.integers(-6, 6),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_triangles(shape, k, dtype, turned):
    host = (np.arange(math.prod(shape)).reshape(shape) + 1).astype(dtype)
    x = cyrt.asarray(host)
    if turned:
        host, x = host.T, x.T
    same(grids.tril(x, k=k), np.tril(host, k))
    same(grids.triu(x, k=k), np.triu(host, k))


def test_triangles_keep_neither_nan_nor_infinity():
    x = cyrt.full((3, 3), math.nan)
    assert (grids.tril(x, k=-1).numpy()[np.triu_indices(3)] == 0).all()
    assert (grids.triu(x, k=5).numpy() == 0).all()
    assert np.isnan(grids.triu(x, k=-(1 << 70)).numpy()).all()


@quick
@given(st.lists(st.integers(0, 4), max_size=4), st.sampled_from(["xy", "ij"]))
def test_meshgrid(sizes, indexing):
    hosts = [np.arange(n, dtype=np.float32) + 10 * i for i, n in enumerate(sizes)]
    found = grids.meshgrid(*map(cyrt.asarray, hosts), indexing=indexing)
    assert type(found) is tuple
    for each, wanted in zip(found, np.meshgrid(*hosts, indexing=indexing), strict=True):
        same(each, wanted)


@quick
@given(
    st.floats(-6e4, 6e4),
    st.floats(-6e4, 6e4),
    st.integers(0, 20),
    st.booleans(),
    st.sampled_from(["float16", "float32", "float64"]),
)
def test_linspace(start, stop, num, endpoint, dtype):
    wanted = np.linspace(start, stop, num, endpoint).astype(dtype)
    x = cyrt.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
    assert x.dtype == dtype
    assert x.shape == (num,)
    found = x.numpy()
    if num:
        assert found[0] == np.asarray(start, dtype)
    if endpoint and num > 1:
        assert found[-1] == np.asarray(stop, dtype)
    unit = np.abs(wanted).max(initial=0) * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=unit)
    if not endpoint:
        longer = cyrt.linspace(start, stop, num + 1, dtype=dtype)
        np.testing.assert_array_equal(found, longer.numpy()[:-1])


@quick
@example(18, -80, 11)
@given(st.integers(-100, 100), st.integers(-100, 100), st.integers(0, 20))
def test_linspace_of_integers_is_rounded_down(start, stop, num):
    same(
        cyrt.linspace(start, stop, num, dtype="int32"), np.linspace(start, stop, num, dtype="int32")
    )


def test_linspace_far_apart_and_exact():
    big = 2**62 + 1
    assert cyrt.linspace(-big, big, 3, dtype="int64").tolist() == [-big, 0, big]
    most = np.finfo(np.float64).max
    np.testing.assert_array_equal(
        cyrt.linspace(-most, most, 3, dtype="float64").numpy(), [-most, 0, most]
    )
    same(cyrt.linspace(0, 1j, 3), np.linspace(0, 1j, 3).astype("complex64"))
    assert cyrt.linspace(cyrt.asarray(1.0), cyrt.asarray(2.0), 2).tolist() == [1, 2]


WHOLE = [
    (7,),
    (0, 7, 3),
    (0, 6, 3),
    (7, -1, -3),
    (0, -6, -3),
    (3, 0),
    (0, 3, -1),
    (2**61 - 5, 2**61 + 5, 3),
    (1 - 2**61, 2**61 - 1, 2**61 - 1),
    (1 - 2**62, 2**62 - 1, 2**62 - 1),
    (2**62 - 1, 1 - 2**62, 1 - 2**62),
    (2**63 - 5, 2**63 - 1, 2),
    (-(2**63), 2**63 - 1, 2**62),
    (0, 2**63 - 1, 2**63 - 2),
]


@pytest.mark.parametrize("given", WHOLE)
def test_arange_of_ints(given):
    x = cyrt.arange(*given)
    assert x.dtype == "int64"
    assert x.tolist() == list(range(*given))


def test_arange_of_nothing():
    assert cyrt.arange(5, 0, math.inf, dtype="int32").shape == (0,)


@pytest.mark.parametrize(
    "given",
    [
        (0, 10, math.inf),
        (10, 0, -math.inf),
        (10, 0, math.inf),
        (0, 10, -math.inf),
        (3, 3, math.inf),
        (0, 1e-200, 1e200),
        (1.5, 2, 1e308),
    ],
    ids=str,
)
def test_arange_by_steps_beyond_the_end(given):
    found = cyrt.arange(*given)
    assert found.tolist() == np.arange(*given).tolist()
    assert cyrt.arange(*given, dtype="int32").tolist() == [int(each) for each in found.tolist()]


@quick
@given(
    st.integers(-50, 50),
    st.integers(-50, 50),
    st.integers(-7, 7).filter(bool),
    st.sampled_from([1, 0.5]),
    st.sampled_from(["int32", "int64", "float32", "float16"]),
)
def test_arange(start, stop, step, unit, dtype):
    if unit != 1 and dtype.startswith("int"):
        dtype = "float64"
    same(
        cyrt.arange(start * unit, stop * unit, step * unit, dtype=dtype),
        np.arange(start * unit, stop * unit, step * unit).astype(dtype),
    )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: grids.eye(-1), ValueError, "0 or more"),
        (lambda: grids.eye(2.0), TypeError, "float"),
        (lambda: grids.tril(cyrt.zeros(3)), ValueError, r"two dimensions, got shape \(3,\)"),
        (lambda: grids.triu(np.zeros((3, 3))), TypeError, r"got numpy\.ndarray"),
        (lambda: grids.meshgrid(cyrt.zeros((2, 2))), ValueError, "one dimension"),
        (
            lambda: grids.meshgrid(cyrt.zeros(2), indexing="yx"),
            ValueError,
            "'xy' or 'ij', got 'yx'",
        ),
        (lambda: cyrt.linspace(0, 1, -1), ValueError, "num: expected 0 or more, got -1"),
        (lambda: cyrt.linspace(0, 1, 2.0), TypeError, "num: expected an int, got float"),
        (lambda: cyrt.linspace("0", 1, 2), TypeError, "start: expected a number, got str"),
        (
            lambda: cyrt.linspace(0, 1j, 2, dtype="float32"),
            TypeError,
            "expected a complex type for complex ends, got float32",
        ),
        (lambda: cyrt.linspace(0, 300, 2, dtype="uint8"), OverflowError, "300 is out of range"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
