"""Gradients of linear algebra that do not exist, or that have a convention."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt import linalg


@pytest.mark.parametrize(
    ("function", "shape", "text"),
    [
        (lambda x: linalg.svd(x).U, (3, 2), r"svd: U and Vh .* \(3, 2\)"),
        (lambda x: linalg.svd(x).Vh, (2, 3), r"svd: U and Vh .* \(2, 3\)"),
        (lambda x: linalg.qr(x, mode="complete").Q, (3, 2), r"qr: Q has .* \(3, 2\)"),
        (lambda x: linalg.lu_factor(x).lu, (2, 2), "lu_factor: the factors have no gradient"),
        (
            lambda x: linalg.lu_solve((x, cyrt.asarray([0, 1], dtype="int32")), cyrt.ones(2)),
            (2, 2),
            "lu_solve: lu_and_pivots: there is no gradient of this argument",
        ),
    ],
)
def test_what_has_no_gradient_is_refused(function, shape, text):
    x = cyrt.asarray(np.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape) ** 2)
    with pytest.raises(TypeError, match=text):
        cyrt.grad(lambda x: cyrt.sum(function(x)))(x)


@pytest.mark.parametrize(
    "function",
    [linalg.cholesky, lambda x: linalg.eigvalsh(x) ** 2, lambda x: linalg.eigh(x, "U")[0] ** 2],
)
def test_gradients_of_hermitian_matrices_are_hermitian(function):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    x = cyrt.asarray(x @ np.conj(x.T) + np.eye(3))
    gradient = cyrt.grad(lambda x: cyrt.sum(function(x).real))(x).numpy()
    np.testing.assert_allclose(gradient, np.conj(gradient.T), atol=1e-12)
    assert np.abs(gradient.imag).max() > 1e-3


def test_vectors_of_equal_values_have_no_gradient():
    for function in (lambda x: linalg.eigh(x).eigenvectors, lambda x: linalg.svd(x).U):
        gradient = cyrt.grad(lambda x, f=function: cyrt.sum(f(x)[:, 0]))(cyrt.eye(3))
        assert not np.isfinite(gradient.numpy()).all()
    # The values themselves have one.
    for function in (linalg.eigvalsh, linalg.svdvals):
        np.testing.assert_allclose(
            cyrt.grad(lambda x, f=function: cyrt.sum(f(x)))(cyrt.eye(3)).numpy(), np.eye(3)
        )


def test_a_singular_matrix_has_no_inverse_for_the_gradient_of_its_determinant():
    gradient = cyrt.grad(linalg.det)(cyrt.ones((2, 2)))
    with pytest.raises(linalg.LinAlgError, match="gradient of det: matrix 0 is singular"):
        gradient.numpy()
    assert np.isnan(gradient.numpy()).all()


def test_a_failure_is_reported_once():
    x = cyrt.asarray(np.stack([np.eye(2), np.zeros((2, 2))]))
    gradient = cyrt.grad(lambda x: cyrt.sum(linalg.inv(x)))(x)
    with pytest.raises(linalg.LinAlgError, match="inv: matrix 1 is singular"):
        gradient.numpy()
    assert np.isfinite(gradient.numpy()[0]).all()
    found, info = cyrt.value_and_grad(
        lambda x: (cyrt.sum(linalg.solve(x, cyrt.ones((2, 1)), check=False)[0][0]), None), 0, True
    )(x)
    cyrt.synchronize()
    assert found[0].item() == 2
    assert np.isfinite(info.numpy()[0]).all()


def test_results_with_info_are_followed():
    x = cyrt.asarray(np.diag([3.0, 1.0]))
    for function, place in ((linalg.svd, 1), (linalg.eigh, 0)):
        found = cyrt.grad(lambda x, f=function, i=place: cyrt.sum(f(x, check=False)[0][i]))(x)
        np.testing.assert_allclose(found.numpy(), np.eye(2), atol=1e-12)


def test_fits_have_gradients_for_equal_singular_values():
    x = cyrt.asarray([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]], dtype="float64")
    y = cyrt.asarray([1.0, 2.0, 3.0, 5.0], dtype="float64")

    def fit(x):
        return cyrt.linalg.lstsq(x, y)[0].sum()

    step = 1e-6
    slopes = np.zeros((4, 2))
    for at in np.ndindex(4, 2):
        moved = np.zeros((4, 2))
        moved[at] = step
        slopes[at] = (fit(x + cyrt.asarray(moved)) - fit(x - cyrt.asarray(moved))).item() / 2 / step
    np.testing.assert_allclose(cyrt.grad(fit)(x).numpy(), slopes, rtol=1e-6, atol=1e-8)


def test_zeros_at_the_ends_of_a_polynomial_have_no_gradient():
    p = cyrt.asarray([0.0, 1.0, -3.0, 2.0, 0.0], dtype="float64")
    found = cyrt.grad(lambda p: cyrt.sum(cyrt.linalg.roots(p).real))(p)
    np.testing.assert_allclose(found.numpy(), [0.0, -3.0, -1.0, 0.0, 0.0], atol=1e-12)
