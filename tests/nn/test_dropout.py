"""Elements that stay, chosen by a key."""

from __future__ import annotations

import numpy as np
import pytest
from rows_of_numbers import TYPES, assert_close, exact, launches, numbers

import cyrt
from cyrt import nn

KEY = cyrt.random.key(5)


def stays(p, shape):
    return cyrt.random.bernoulli(1 - p, shape, key=KEY).numpy()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("p", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 33), (2, 5, 2048), (0, 4)], ids=str)
def test_results(name, p, shape, rng):
    x = numbers(rng, name, *shape)
    wanted = np.where(stays(p, shape), exact(x) / (1 - p), 0)
    found = nn.dropout(cyrt.asarray(x), p, key=KEY)
    assert found.shape == shape
    assert_close(found, wanted, name)
    found = nn.dropout_vjp(cyrt.asarray(x), cyrt.zeros(shape, dtype=name), p, key=KEY)
    assert_close(found, wanted, name)


def test_all_or_none(rng):
    x = numbers(rng, "float32", 100)
    x[3], x[4] = np.inf, np.nan
    np.testing.assert_array_equal(nn.dropout(cyrt.asarray(x), 0, key=KEY).numpy(), x)
    np.testing.assert_array_equal(nn.dropout(cyrt.asarray(x), 1, key=KEY).numpy(), np.zeros(100))


@pytest.mark.parametrize("name", TYPES)
def test_views(name, rng):
    """Off the alignment of vectors, and transposed; of an element's type no number depends."""
    x = numbers(rng, name, 41, 30)
    a = cyrt.asarray(x)
    wanted = np.where(stays(0.5, 1001), 2 * exact(x).ravel()[1:1002], 0)
    assert_close(nn.dropout(a.ravel()[1:1002], key=KEY), wanted, name)
    wanted = np.where(stays(0.5, (30, 41)), 2 * exact(x).T, 0)
    assert_close(nn.dropout(a.T, key=KEY), wanted, name)


def test_the_share_that_stays():
    found = nn.dropout(cyrt.ones(100_000), 0.3, key=KEY)
    assert abs(float((found > 0).mean()) - 0.7) < 0.01
    assert abs(float(found.mean()) - 1) < 0.02


def test_many_elements():
    """More than a grid's threads take at once."""
    n = (1 << 16) * 256 * 4 // 64 + 5
    found = nn.dropout(cyrt.ones(n), key=KEY)
    np.testing.assert_array_equal(found.numpy() > 0, stays(0.5, n))


def test_one_launch(batched):
    x = cyrt.ones((4, 100))
    assert launches(lambda: nn.dropout(x, key=KEY)) == ["cyrt_dropout_float32"]
    assert launches(lambda: nn.dropout_vjp(x, x, key=KEY)) == ["cyrt_dropout_float32"]


X = cyrt.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.dropout(X, 1.5, key=KEY), ValueError, "p: expected a number from 0 to 1, got"),
        (lambda: nn.dropout(X, "1", key=KEY), TypeError, "p: expected a number, got str"),
        (lambda: nn.dropout(X, key=7), TypeError, "dropout: key: expected a Key, made by"),
        (lambda: nn.dropout(X), TypeError, "key"),
        (lambda: nn.dropout([1.0], key=KEY), TypeError, "dropout: x: expected an Array, got"),
        (lambda: nn.dropout(X.astype("int32"), key=KEY), TypeError, "x: expected a real floating"),
        (lambda: nn.dropout_vjp(X[:2], X, key=KEY), ValueError, r"g: expected shape \(3,\), that"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
