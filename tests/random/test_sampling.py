"""Random orders and choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cyrt
from cyrt import random


def chi_square(counts, wanted):
    """Pearson's, in standard deviations from its mean."""
    counts, wanted = np.asarray(counts, np.float64), np.asarray(wanted, np.float64)
    free = len(counts) - 1
    return (np.sum((counts - wanted) ** 2 / wanted) - free) / math.sqrt(2 * free)


def test_orders_of_integers():
    for n in (0, 1, 2, 1000):
        order = random.permutation(n, key=random.key(3))
        assert order.dtype == "int64"
        assert sorted(order.numpy().tolist()) == list(range(n))
    found = random.permutation(1000, key=random.key(3)).numpy()
    np.testing.assert_array_equal(random.permutation(1000, key=random.key(3)).numpy(), found)
    assert not np.array_equal(random.permutation(1000, key=random.key(4)).numpy(), found)


def test_orders_are_equally_likely():
    orders = [
        tuple(random.permutation(4, key=key).numpy()) for key in random.split(random.key(1), 1200)
    ]
    assert len(set(orders)) == 24
    counts = [orders.count(order) for order in set(orders)]
    assert abs(chi_square(counts, np.full(24, 50))) < 4


def test_an_array_is_put_in_order_along_an_axis(rng):
    x = rng.normal(size=(5, 40)).astype(np.float32)
    array, key = cyrt.asarray(x), random.key(8)
    for axis in (0, 1, -1):
        order = random.permutation(x.shape[axis], key=key).numpy()
        found = random.permutation(array, axis=axis, key=key)
        np.testing.assert_array_equal(found.numpy(), np.take(x, order, axis))
    found = random.permutation(array, key=key)
    assert found.shape == x.shape
    assert found.dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_categories_are_as_likely_as_specified(dtype):
    chances = np.array([0.1, 0.2, 0.0, 0.4, 0.3])
    with np.errstate(divide="ignore"):
        logits = cyrt.asarray(np.log(chances) + 3).astype(dtype)
    found = random.categorical(logits, shape=(20_000,), key=random.key(5))
    assert found.dtype == "int64"
    counts = np.bincount(found.numpy(), minlength=5)
    assert counts[2] == 0
    if dtype != "bfloat16":  # its logits are not quite these
        kept = chances > 0
        assert abs(chi_square(counts[kept], 20_000 * chances[kept])) < 4


def test_categories_along_an_axis():
    certain = np.full((3, 4, 2), -np.inf, np.float32)
    certain[1, :, 0] = certain[2, :, 1] = 0
    logits = cyrt.asarray(certain)
    found = random.categorical(logits, 0, key=random.key(0)).numpy()
    np.testing.assert_array_equal(found, [[1, 2]] * 4)
    found = random.categorical(logits, 0, (5, 4, 2), key=random.key(0)).numpy()
    np.testing.assert_array_equal(found, [[[1, 2]] * 4] * 5)
    middle = cyrt.asarray(np.moveaxis(certain, 0, 1).copy())
    found = random.categorical(middle[:1], 1, (6, 2), key=random.key(0)).numpy()
    np.testing.assert_array_equal(found, [[1, 2]] * 6)
    assert random.categorical(middle[0, 0], shape=6, key=random.key(0)).shape == (6,)


def test_bad_arguments_are_refused():
    logits = cyrt.asarray(np.zeros((2, 3), np.float32))
    for call, error, text in [
        (lambda: random.permutation(-1), ValueError, "expected 0 or more, got -1"),
        (lambda: random.permutation(1.5), TypeError, "expected an Array, got float"),
        (lambda: random.permutation(np.zeros(3)), TypeError, "expected an Array, got numpy"),
        (lambda: random.permutation(3, key=4), TypeError, "expected a Key, made by"),
        (lambda: random.permutation(logits, axis=2), np.exceptions.AxisError, "axis 2"),
        (lambda: random.categorical(logits, 2), np.exceptions.AxisError, "axis 2"),
        (lambda: random.categorical(logits, shape=(3,)), ValueError, "do not broadcast to"),
        (lambda: random.categorical(logits, shape=()), ValueError, "do not broadcast to"),
        (lambda: random.categorical(logits[:, :0]), ValueError, "has no categories"),
        (lambda: random.categorical(logits.astype("complex64")), TypeError, "real type, got"),
    ]:
        with pytest.raises(error, match=text):
            call()
