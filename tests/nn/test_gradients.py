"""Gradients of log_softmax and logsumexp, beside NumPy's in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.exceptions import AxisError
from rows_of_numbers import LAYOUTS, LENGTHS, TYPES, as_view, assert_close, exact, numbers, rows_for

import cyrt
from cyrt import nn


def sums(x, axis, keepdims=False):
    return np.log(np.exp(exact(x)).sum(axis, keepdims=keepdims))


def log_softmax_gradient(g, y, axis=-1):
    g, y = exact(g), exact(y)
    return g - np.exp(y) * g.sum(axis, keepdims=True)


def logsumexp_gradient(g, x, axis):
    g, total = exact(g), sums(x, axis, True)
    return np.exp(exact(x) - total) * g.reshape(total.shape)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_results(name, n, rng):
    x, g = (numbers(rng, name, rows_for(n), n) for _ in range(2))
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    y = nn.log_softmax(a)
    assert_close(nn.log_softmax_vjp(d, y), log_softmax_gradient(g, y), name, 4)
    h = numbers(rng, name, len(x))
    wanted = logsumexp_gradient(h, x, 1)
    found = nn.logsumexp_vjp(cyrt.asarray(h), a, 1)
    assert_close(found, wanted, name, 2 * np.abs(wanted).max())


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("how", LAYOUTS)
def test_axes_and_layouts(axis, how, rng):
    x, g = (numbers(rng, "float32", 7, 12) for _ in range(2))
    a, d = as_view(x, how), as_view(g, how)
    y = nn.log_softmax(a, axis)
    assert_close(nn.log_softmax_vjp(d, y, axis), log_softmax_gradient(g, y, axis), "float32", 4)
    found = nn.logsumexp_vjp(d[:, 0] if axis else d[0], a, axis)
    wanted = logsumexp_gradient(g[:, 0] if axis else g[0], x, axis)
    assert_close(found, wanted, "float32", 4)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("axis", [None, (), 0, -1, (0, -1), (1, 0), (2, 0)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_several_axes(shape, axis, keepdims, rng):
    x = rng.normal(size=shape)
    try:
        total = nn.logsumexp(cyrt.asarray(x), axis, keepdims=keepdims)
    except (AxisError, ValueError) as error:
        with pytest.raises(type(error)):
            nn.logsumexp_vjp(cyrt.asarray(x), cyrt.asarray(x), axis, keepdims=keepdims)
        return
    g = rng.normal(size=total.shape)
    found = nn.logsumexp_vjp(cyrt.asarray(g), cyrt.asarray(x), axis, keepdims=keepdims)
    assert found.shape == shape
    np.testing.assert_allclose(found.numpy(), logsumexp_gradient(g, x, axis), rtol=1e-12)


@pytest.mark.parametrize("function", ["log_softmax", "logsumexp"])
def test_they_are_derivatives(function, rng):
    x = rng.normal(size=(3, 5))
    forward = getattr(nn, function)
    result = forward(cyrt.asarray(x), axis=1)
    g, direction = rng.normal(size=result.shape), rng.normal(size=x.shape)
    given = result if function == "log_softmax" else cyrt.asarray(x)
    found = getattr(nn, f"{function}_vjp")(cyrt.asarray(g), given, 1)
    high, low = (
        (forward(cyrt.asarray(x + step * direction), axis=1).numpy() * g).sum()
        for step in (1e-6, -1e-6)
    )
    assert (found.numpy() * direction).sum() == pytest.approx((high - low) / 2e-6, rel=1e-7)


def test_sums_of_gradients_exceed_a_small_type():
    """Their sum, 2**18, is no float16; results are."""
    g = cyrt.ones((1, 1 << 18), dtype="float16")
    y = nn.log_softmax(cyrt.zeros_like(g))
    assert np.abs(exact(nn.log_softmax_vjp(g, y))).max() < 0.02


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(value, rng):
    """NaN along the axis, as the functions or a softmax are; other rows are as they were."""
    x, g = (numbers(rng, "float32", 4, 9) for _ in range(2))
    x[2, 3] = value
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    for found in nn.log_softmax_vjp(d, nn.log_softmax(a)), nn.logsumexp_vjp(d[:, 0], a, 1):
        lost = np.isnan(found.numpy())
        assert lost[2].all()
        assert not np.delete(lost, 2, 0).any()


def test_minus_infinity(rng):
    """An element adds nothing, and has no gradient; where all are, there is no softmax."""
    x = np.array([[0, -np.inf, 0], [-np.inf, -np.inf, -np.inf]], np.float32)
    a, one = cyrt.asarray(x), cyrt.ones((2, 3))
    found = nn.logsumexp_vjp(one[:, 0], a, 1).numpy()
    np.testing.assert_array_equal(found, [[0.5, 0, 0.5], [np.nan] * 3])
    found = nn.log_softmax_vjp(one, nn.log_softmax(a)).numpy()
    np.testing.assert_array_equal(found, [[-0.5, 1, -0.5], [np.nan] * 3])


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)], ids=str)
def test_no_elements(shape):
    x = cyrt.zeros(shape)
    assert nn.log_softmax_vjp(x, x).shape == shape
    assert nn.logsumexp_vjp(cyrt.zeros(shape[0]), x, 1).shape == shape


def test_the_sum_into_an_array(rng):
    x = numbers(rng, "float32", 3, 8)
    out = cyrt.zeros(3, dtype="float64")
    assert nn.logsumexp(cyrt.asarray(x), axis=1, out=out) is out
    np.testing.assert_allclose(out.numpy(), sums(x, 1), rtol=1e-6)


X = cyrt.ones((3, 8))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.log_softmax_vjp(cyrt.ones((3, 7)), X),
            ValueError,
            r"log_softmax_vjp: g: expected shape \(3, 8\), that of the result, got \(3, 7\)",
        ),
        (
            lambda: nn.log_softmax_vjp(X.astype("float16"), X),
            TypeError,
            "log_softmax_vjp: g: expected float32, the type of y, got float16",
        ),
        (
            lambda: nn.log_softmax_vjp(X, X.astype("int32")),
            TypeError,
            "log_softmax_vjp: y: expected a real floating-point type, got int32",
        ),
        (
            lambda: nn.log_softmax_vjp(X[0, 0], X[0, 0]),
            ValueError,
            r"log_softmax_vjp: y: expected at least one dimension, got shape \(\)",
        ),
        (lambda: nn.log_softmax_vjp(X, X, 2), AxisError, "axis 2 is out of bounds"),
        (
            lambda: nn.logsumexp_vjp(X, X, 1),
            ValueError,
            r"logsumexp_vjp: g: expected shape \(3,\), that of the result, got \(3, 8\)",
        ),
        (
            lambda: nn.logsumexp_vjp(X[:, 0], X, 1, keepdims=True),
            ValueError,
            r"expected shape \(3, 1\), that of the result, got \(3,\)",
        ),
        (
            lambda: nn.logsumexp_vjp(X[:, 0], X.astype("complex64"), 1),
            TypeError,
            "logsumexp_vjp: x: expected a real floating-point type, got complex64",
        ),
        (lambda: nn.logsumexp_vjp(X[:, 0], X, (1, 1)), ValueError, "names one of 2 axes twice"),
        (lambda: nn.logsumexp_vjp(X[:, 0], X, 2), AxisError, "axis 2 is out of bounds"),
        (
            lambda: nn.logsumexp_vjp(X[:, 0], X, 1, keepdims=2),
            TypeError,
            "logsumexp_vjp: keepdims: expected a bool, got int",
        ),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
