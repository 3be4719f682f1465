"""``reduceat`` of functions of two operands."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

NAMES = ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"]
TYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", TYPES)
def test_results(rng, name, dtype):
    for shape, axis in (((17,), 0), ((5, 9), -1), ((6, 1, 4), 0), ((1,), 0)):
        x = (rng.normal(size=shape) * 3).astype(dtype)
        size = shape[axis]
        for indices in (
            np.arange(0, size, 3),
            rng.integers(0, size, 8),
            np.zeros(3, np.int64),
            np.array([], np.int64),
        ):
            wanted = getattr(np, name).reduceat(x, indices, axis)
            found = getattr(cyrt, name).reduceat(cyrt.asarray(x), cyrt.asarray(indices), axis)
            assert (found.dtype, found.shape) == (str(wanted.dtype), wanted.shape)
            tolerance = {"float16": 1e-2, "float32": 1e-5}.get(dtype, 1e-12)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


def test_numpys_function_calls_it():
    x = cyrt.arange(8)
    found = np.add.reduceat(x, [0, 4, 1, 5])
    assert isinstance(found, cyrt.Array)
    assert found.tolist() == [6, 4, 10, 18]
    out = cyrt.zeros(2, dtype="float32")
    assert np.add.reduceat(x, [0, 3], out=out) is out
    assert out.tolist() == [3, 25]
    assert np.add.reduceat(x, [0, 3], dtype="float64").dtype == "float64"


def test_parts_do_not_spoil_each_other():
    x = cyrt.asarray([1.0, np.inf, np.nan, 2.0, 3.0])
    assert cyrt.add.reduceat(x, [0, 1, 3]).tolist()[::2] == [1, 5]


@pytest.mark.parametrize(
    ("indices", "options", "error", "message"),
    [
        ([0, 8], {}, IndexError, "indices: 8 is out of bounds for axis 0 of 8 elements"),
        ([-1], {}, IndexError, "indices: -1 is out of bounds"),
        ([0.5], {}, TypeError, "expected one dimension of integers, got float64"),
        ([[0]], {}, TypeError, r"got int64 of shape \(1, 1\)"),
        ([0], {"axis": 1}, ValueError, "axis 1 is out of bounds"),
        ([0, 1], {"out": 1.0}, ValueError, r"out: expected an Array of shape \(2,\), got float"),
        ([0, 1], {"out": "zeros"}, ValueError, r"out: expected .* \(2,\), got \(3,\)"),
    ],
)
def test_refusals(indices, options, error, message):
    if options.get("out") == "zeros":  # not at import
        options = {"out": cyrt.zeros(3)}
    with pytest.raises(error, match=message):
        cyrt.add.reduceat(cyrt.arange(8), indices, **options)
    with pytest.raises(TypeError, match="array: expected an Array, got numpy.ndarray"):
        cyrt.add.reduceat(np.arange(8), [0])
