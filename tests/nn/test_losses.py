"""Losses and their gradients against NumPy in float64, from PyTorch's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from differences import check_gradient
from rows_of_numbers import TYPES, assert_close, exact, numbers

import cyrt
from cyrt import nn


def entropy(x, t):
    with np.errstate(divide="ignore"):
        return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log(1 - x), -100))


def huber(x, t, delta=1.0):
    d = np.abs(x - t)
    return np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


LOSSES = {
    "mse_loss": lambda x, t: (x - t) ** 2,
    "l1_loss": lambda x, t: np.abs(x - t),
    "huber_loss": huber,
    "binary_cross_entropy": entropy,
}
REDUCTIONS = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


def operands(rng, loss, name, *shape):
    x, t = (numbers(rng, name, *shape) for _ in range(2))
    if loss == "binary_cross_entropy":
        x, t = ((0.02 + 0.96 * rng.random(shape)).astype(x.dtype) for _ in range(2))
    return x, t


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_values(name, loss, reduction, rng):
    for shape in [(), (7,), (5, 40), (3, 2, 1000)]:
        x, t = operands(rng, loss, name, *shape)
        found = getattr(nn, loss)(cyrt.asarray(x), cyrt.asarray(t), reduction)
        wanted = REDUCTIONS[reduction](LOSSES[loss](exact(x), exact(t)))
        assert_close(found, wanted, name, 4)
        assert found.shape == np.shape(wanted)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_are_derivatives(loss, reduction, rng):
    for shape in [(), (40,), (5, 8)]:
        x, t = operands(rng, loss, "float64", *shape)
        targets = cyrt.asarray(t)
        check_gradient(
            lambda x, targets=targets: getattr(nn, loss)(x, targets, reduction),
            lambda g, x, targets=targets: getattr(nn, f"{loss}_vjp")(g, x, targets, reduction),
            x,
            rng,
        )


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_by_type(name, loss, rng):
    x, t = operands(rng, loss, name, 4, 100)
    g = numbers(rng, name)
    vjp = getattr(nn, f"{loss}_vjp")
    wanted = vjp(*(cyrt.asarray(exact(each)) for each in (g, x, t)), "sum").numpy()
    found = vjp(*map(cyrt.asarray, (g, x, t)), "sum")
    assert_close(found, wanted, name, np.abs(wanted).max())


@pytest.mark.parametrize("delta", [0.3, 1, 2.5])
def test_the_delta_of_huber_s(delta, rng):
    x, t = (rng.normal(size=300) * 2 for _ in range(2))
    a, targets = cyrt.asarray(x), cyrt.asarray(t)
    found = nn.huber_loss(a, targets, "none", delta)
    np.testing.assert_allclose(found.numpy(), huber(x, t, delta), rtol=1e-12)
    check_gradient(
        lambda x: nn.huber_loss(x, targets, delta=delta),
        lambda g, x: nn.huber_loss_vjp(g, x, targets, delta=delta),
        x,
        rng,
    )


def test_logits(rng):
    x, t = rng.normal(size=200) * 3, rng.random(200)
    targets = cyrt.asarray(t)
    found = nn.binary_cross_entropy(cyrt.asarray(x), targets, "none", with_logits=True)
    np.testing.assert_allclose(found.numpy(), entropy(1 / (1 + np.exp(-x)), t), rtol=1e-10)
    check_gradient(
        lambda x: nn.binary_cross_entropy(x, targets, with_logits=True),
        lambda g, x: nn.binary_cross_entropy_vjp(g, x, targets, with_logits=True),
        x,
        rng,
    )
    x, t = cyrt.asarray([1000.0, -1000.0]), cyrt.asarray([0.0, 1.0])
    found = nn.binary_cross_entropy(x, t, "none", with_logits=True)
    np.testing.assert_array_equal(found.numpy(), [1000, 1000])


def test_infinite_logits():
    x, targets = cyrt.asarray([cyrt.inf, cyrt.inf, -cyrt.inf]), cyrt.asarray([0.0, 0.5, 1.0])
    found = nn.binary_cross_entropy(x, targets, "none", with_logits=True)
    assert found.tolist() == [cyrt.inf] * 3


def test_the_gradient_of_probabilities_near_1():
    x = cyrt.asarray([0.9998274])
    expected = 1 / (1 - float(x[0]))
    found = nn.binary_cross_entropy_vjp(cyrt.ones(1), x, cyrt.zeros(1), "none")
    assert abs(float(found[0]) / expected - 1) < 1e-6


def test_small_losses_keep_their_digits():
    x, t = cyrt.asarray([20.0, -20.0]), cyrt.asarray([1.0, 0.0])
    found = nn.binary_cross_entropy(x, t, "none", with_logits=True)
    np.testing.assert_allclose(found.numpy(), [np.exp(-20.0)] * 2, rtol=1e-5)
    x = cyrt.asarray([1 - 2.0**-20, 2.0**-20])
    found = nn.binary_cross_entropy(x, t, "none")
    np.testing.assert_allclose(found.numpy(), [2.0**-20] * 2, rtol=1e-5)


def test_certain_probabilities():
    """Logarithms are at least -100, and divisors at least 1e-12, as PyTorch's."""
    x, t = cyrt.asarray([0.0, 1.0, 0.0, 1.0]), cyrt.asarray([0.0, 1.0, 1.0, 0.0])
    found = nn.binary_cross_entropy(x, t, "none")
    np.testing.assert_array_equal(found.numpy(), [0, 0, 100, 100])
    found = nn.binary_cross_entropy_vjp(cyrt.ones(4), x, t, "none")
    np.testing.assert_allclose(found.numpy(), [0, 0, -1e12, 1e12], rtol=1e-6)


def test_squares_and_sums_that_are_no_float16():
    x = cyrt.full((1 << 17,), 300, dtype="float16")
    assert float(nn.mse_loss(x, x - 100)) == 10_000
    assert float(nn.l1_loss(x, x - 1)) == 1
    found = nn.mse_loss_vjp(cyrt.ones((), dtype="float16"), x, x - 1)
    assert exact(found).max() == np.float16(2 / (1 << 17))


def test_no_elements():
    x = cyrt.zeros((0, 3))
    assert float(nn.mse_loss(x, x, "sum")) == 0
    assert np.isnan(float(nn.mse_loss(x, x)))
    assert nn.mse_loss_vjp(cyrt.ones(()), x, x).shape == (0, 3)


def test_views(rng):
    x, t = rng.normal(size=(6, 5)), rng.normal(size=(5, 6))
    found = nn.mse_loss(cyrt.asarray(x).T, cyrt.asarray(t)[:, ::-1], "none")
    np.testing.assert_allclose(found.numpy(), (x.T - t[:, ::-1]) ** 2, rtol=1e-12)


X = cyrt.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.mse_loss(X, X[0]),
            ValueError,
            r"mse_loss: targets: expected shape \(2, 3\), that of x, got \(3,\)",
        ),
        (
            lambda: nn.l1_loss(X, X.astype("float64")),
            TypeError,
            "l1_loss: targets: expected float32, the type of x, got float64",
        ),
        (
            lambda: nn.mse_loss(X, X, "max"),
            ValueError,
            "mse_loss: reduction: expected 'mean', 'sum' or 'none', got 'max'",
        ),
        (lambda: nn.huber_loss(X, X, delta=0), ValueError, "delta: expected a number above 0, got"),
        (lambda: nn.mse_loss_vjp(X, X, X), ValueError, r"g: expected shape \(\), that of the res"),
        (lambda: nn.mse_loss(X.astype("int32"), X), TypeError, "x: expected a real floating-point"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
