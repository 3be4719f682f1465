"""Norms, least squares, polynomials and products, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_matrices import normal

import cyrt
from cyrt import linalg


def close(found, expected, tolerance=1e-10):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype.itemsize == 4:
        tolerance = 1e-5
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(
    "order", [None, 0, 1, -1, 2, 3, 0.5, np.inf, -np.inf, np.int64(2), np.float32(3)]
)
def test_norms_of_vectors(rng, dtype, order):
    x = normal(rng, (3, 4, 5), dtype)
    for axis, keepdims in ((0, False), (-1, True)):
        expected = np.linalg.norm(x, order, axis, keepdims)
        close(linalg.norm(cyrt.asarray(x), order, axis, keepdims), expected)
    ord = 2 if order is None else order
    expected = np.linalg.vector_norm(x, axis=(0, 2), ord=ord, keepdims=True)
    close(linalg.vector_norm(cyrt.asarray(x), axis=(0, 2), ord=ord, keepdims=True), expected)
    close(linalg.vector_norm(cyrt.asarray(x), ord=ord), np.linalg.vector_norm(x, ord=ord))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_norms_of_16_bit_floats_do_not_overflow(dtype):
    x = cyrt.asarray([[300, -400], [1e-4, 0]], dtype=dtype)
    for order in (None, "fro"):
        assert linalg.norm(x, order).dtype == dtype
        assert linalg.norm(x, order).item() == 500
    found = linalg.vector_norm(x, axis=1, ord=3).numpy().astype("float32")
    np.testing.assert_allclose(found, [449.79, 1e-4], 1e-2)
    np.testing.assert_allclose(
        cyrt.grad(lambda x: linalg.norm(x))(x).numpy().astype("float32"),
        [[0.6, -0.8], [0, 0]],
        atol=5e-3,
    )


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(rng, dtype, order):
    x = normal(rng, (3, 4, 5), dtype)
    for keepdims in (False, True):
        expected = np.linalg.norm(x, order, (2, 0), keepdims)
        close(linalg.norm(cyrt.asarray(x), order, (2, 0), keepdims), expected)
    expected = np.linalg.norm(x, order, (1, 2))
    close(linalg.matrix_norm(cyrt.asarray(x), ord=order), expected)
    close(linalg.norm(cyrt.asarray(x[0]), order), expected[0])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, 2, np.inf])
def test_norms_of_nothing(shape, order):
    assert linalg.norm(cyrt.zeros(shape), order).item() == 0
    assert linalg.matrix_norm(cyrt.zeros((2, *shape)), ord=order).tolist() == [0, 0]
    if order not in ("fro", "nuc"):
        ord = 2 if order is None else order
        assert linalg.vector_norm(cyrt.zeros((2, 0)), axis=1, ord=ord).tolist() == [0, 0]


@pytest.mark.parametrize("order", [np.int64(1), np.float32(3), np.float64(np.inf)])
def test_orders_that_are_numbers_of_numpy(order):
    x = cyrt.asarray([3.0, -4.0])
    assert linalg.norm(x, order) == linalg.norm(x, float(order))
    assert linalg.vector_norm(x, ord=order) == linalg.norm(x, float(order))


@pytest.mark.parametrize("order", [None, "fro", 1, -1, 2, -2, np.inf])
def test_condition_numbers(rng, order):
    x = normal(rng, (3, 4, 4))
    close(linalg.cond(cyrt.asarray(x), order), np.linalg.cond(x, order), 1e-8)
    assert linalg.cond(cyrt.zeros((2, 2)), order).item() == np.inf


def test_ranks(rng):
    x = np.stack([normal(rng, (6, r)) @ normal(rng, (r, 4)) for r in (0, 1, 3, 4)])
    a = cyrt.asarray(x)
    assert linalg.matrix_rank(a).tolist() == [0, 1, 3, 4]
    assert linalg.matrix_rank(a, rtol=2.0).tolist() == [0, 0, 0, 0]
    assert linalg.matrix_rank(a, rtol=cyrt.asarray([0.0, 2.0, 2.0, 0.0])).tolist() == [0, 0, 0, 4]
    assert linalg.matrix_rank(a, 1e-9).tolist() == [0, 1, 3, 4]
    gram = cyrt.asarray(np.swapaxes(x, -1, -2) @ x)
    assert linalg.matrix_rank(gram, hermitian=True).tolist() == [0, 1, 3, 4]
    assert linalg.matrix_rank(cyrt.zeros((2, 0, 3))).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_pinv(rng, dtype):
    for shape in ((2, 5, 3), (2, 3, 5)):
        x = normal(rng, shape, dtype)
        close(linalg.pinv(cyrt.asarray(x)), np.linalg.pinv(x), 1e-9)
        x[1] = x[1][:, :1] @ x[1][:1]
        close(linalg.pinv(cyrt.asarray(x)), np.linalg.pinv(x), 1e-9)
    x = normal(rng, (4, 2), dtype)
    gram = x @ np.conj(x.T)
    close(
        linalg.pinv(cyrt.asarray(gram), hermitian=True, rtol=1e-9), np.linalg.pinv(gram, 1e-9), 1e-8
    )
    assert linalg.pinv(cyrt.zeros((0, 3))).shape == (3, 0)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (3, 0), (0, 3)])
def test_lstsq(rng, shape):
    a, b = normal(rng, shape), normal(rng, (shape[0], 2))
    deficient = a.copy()
    deficient[:, 1:2] = deficient[:, :1]
    for matrix in (a, deficient):
        for rcond in (None, -1, 0.1):
            for side in (b, b[:, 0]):
                expected = np.linalg.lstsq(matrix, side, rcond=rcond)
                found = linalg.lstsq(cyrt.asarray(matrix), cyrt.asarray(side), rcond)
                assert isinstance(found[1], cyrt.Array)
                for mine, wanted in zip(found, expected, strict=True):
                    close(mine, wanted)


def test_lstsq_of_a_batch(rng):
    a, b = normal(rng, (2, 5, 3)), normal(rng, (2, 5, 1))
    a[1, :, 1] = a[1, :, 0]
    x, sums, rank, _ = linalg.lstsq(cyrt.asarray(a), cyrt.asarray(b))
    for i in range(2):
        close(x[i], np.linalg.lstsq(a[i], b[i], rcond=None)[0])
        close(sums[i], ((b[i] - a[i] @ x[i].numpy()) ** 2).sum(0))
    assert rank.tolist() == [3, 2]


def test_polyfit(rng):
    x, y = np.linspace(-1, 2, 20), normal(rng, (20, 2))
    close(linalg.polyfit(cyrt.asarray(x), cyrt.asarray(y), 3), np.polyfit(x, y, 3))
    close(linalg.polyfit(cyrt.asarray(x), cyrt.asarray(y[:, 0]), 0), np.polyfit(x, y[:, 0], 0))


@pytest.mark.parametrize(
    "p", [[1, -6, 11, -6], [0, 0, 2, 0, 8, 0], [3], [0, 0], [5, 0, 0], [1j, 2, 3]]
)
def test_roots(p):
    found = np.sort_complex(linalg.roots(cyrt.asarray(np.array(p) * 1.0)).numpy())
    np.testing.assert_allclose(found, np.sort_complex(np.roots(p)), atol=1e-10)


def test_eigenvalues_of_real_matrices_are_real_or_conjugates(rng):
    p = np.array([1.0, -6, 11, -6])
    found = linalg.roots(cyrt.asarray(p)).numpy()
    np.testing.assert_allclose(sorted(found[found.imag == 0].real), [1, 2, 3], rtol=1e-12)
    for n in (2, 3, 5, 8, 40):
        x = normal(rng, (4, n, n))
        for values, expected in zip(
            linalg.eigvals(cyrt.asarray(x)).numpy(), np.linalg.eigvals(x), strict=True
        ):
            assert (values.imag == 0).sum() == (expected.imag == 0).sum()
            assert set(values) == set(values.conj())
    rotation = np.array([[0, -1e-18], [1e-18, 0]])
    found = np.sort_complex(linalg.eigvals(cyrt.asarray(rotation)).numpy())
    np.testing.assert_allclose(found, [-1e-18j, 1e-18j], rtol=1e-15)


def test_powers_and_products(rng):
    x = normal(rng, (3, 4, 4))
    for n in (-3, -1, 0, 1, 2, 5):
        close(linalg.matrix_power(cyrt.asarray(x), n), np.linalg.matrix_power(x, n), 1e-7)
    integers = rng.integers(0, 3, (2, 2))
    assert (
        linalg.matrix_power(cyrt.asarray(integers), 7).tolist()
        == np.linalg.matrix_power(integers, 7).tolist()
    )
    chain = [normal(rng, shape) for shape in ((4,), (4, 9), (9, 2), (2, 6), (6,))]
    for first, last in ((0, 5), (1, 5), (0, 4), (1, 4), (1, 3)):
        part = chain[first:last]
        close(linalg.multi_dot([cyrt.asarray(each) for each in part]), np.linalg.multi_dot(part))


def test_tensors(rng):
    a, b = normal(rng, (2, 3, 6)), normal(rng, (2, 3))
    close(linalg.tensorsolve(cyrt.asarray(a), cyrt.asarray(b)), np.linalg.tensorsolve(a, b), 1e-8)
    a = normal(rng, (2, 6, 3))
    found = linalg.tensorsolve(cyrt.asarray(a), cyrt.asarray(b), axes=(1,))
    close(found, np.linalg.tensorsolve(a, b, axes=(1,)), 1e-8)
    a = normal(rng, (4, 6, 8, 3))
    close(linalg.tensorinv(cyrt.asarray(a)), np.linalg.tensorinv(a), 1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_expm(rng, dtype):
    x = normal(rng, (3, 5, 5), dtype)
    x[1] *= 20
    x[2] = np.triu(x[2], 1)
    values, vectors = np.linalg.eig(x.astype(np.complex128)[:2])
    expected = (vectors * np.exp(values)[:, None]) @ np.linalg.inv(vectors)
    found = linalg.expm(cyrt.asarray(x)).numpy()
    for i in range(2):
        size = np.abs(expected[i]).max() * (1 + np.abs(x[i]).sum())
        assert np.abs(found[i] - expected[i]).max() < 1e3 * np.finfo(dtype).eps * size
    series = sum(
        np.linalg.matrix_power(x[2].astype(np.complex128), k) / float(np.prod(range(1, k + 1)))
        for k in range(6)
    )
    np.testing.assert_allclose(found[2], series, rtol=1e-3, atol=1e-4)
    assert np.isnan(linalg.expm(cyrt.asarray(np.eye(2) * 1e9)).numpy()).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("corner", [1e3, 1e6, 2e7, 1e12])
def test_expm_of_matrices_that_are_not_normal(dtype, corner):
    """Only the powers of these matrices tell how large their exponentials are."""
    found = linalg.expm(cyrt.asarray(np.array([[-1, corner], [0, -2]], dtype))).numpy()
    expected = [[np.exp(-1), corner * (np.exp(-1) - np.exp(-2))], [0, np.exp(-2)]]
    np.testing.assert_allclose(found, expected, rtol=10 * np.finfo(dtype).eps)
    found = linalg.expm(cyrt.asarray(np.array([[0, corner], [0, 0]], dtype))).numpy()
    np.testing.assert_array_equal(found, np.array([[1, corner], [0, 1]], dtype))
    assert (linalg.expm(cyrt.zeros((2, 3, 3), dtype)).numpy() == np.eye(3)).all()


def test_names_of_the_standard_whose_arguments_differ(rng):
    x = normal(rng, (2, 3, 4))
    a = cyrt.asarray(x)
    close(linalg.diagonal(a, offset=1), np.linalg.diagonal(x, offset=1))
    close(linalg.trace(a, offset=-1), np.linalg.trace(x, offset=-1))
    y = normal(rng, (5, 3))
    close(linalg.cross(cyrt.asarray(y), cyrt.asarray(y[::-1])), np.linalg.cross(y, y[::-1]))
    with pytest.raises(ValueError, match="outer: x1: expected one dimension"):
        linalg.outer(a, a)


def test_refusals():
    square = cyrt.ones((2, 2))
    with pytest.raises(ValueError, match="matrix_norm: ord: expected 'fro'"):
        linalg.matrix_norm(square, ord=3)
    with pytest.raises(ValueError, match="norm: ord 1: expected one or two axes, got 3"):
        linalg.norm(cyrt.ones((2, 2, 2)), 1)
    with pytest.raises(TypeError, match="^norm: ord: expected a number, got 'nuc'"):
        linalg.norm(square, "nuc", axis=0)
    with pytest.raises(ValueError, match=r"^norm: axis: \(0, 0\) names one of 2 axes twice"):
        linalg.norm(square, axis=(0, 0))
    with pytest.raises(TypeError, match="^tensorsolve: axes: expected an int, got float"):
        linalg.tensorsolve(square, cyrt.ones(2), axes=1.0)
    with pytest.raises(ValueError, match="matrix_rank: expected tol or rtol"):
        linalg.matrix_rank(square, 1.0, rtol=1.0)
    with pytest.raises(TypeError, match="norm: ord: expected a number, got 'fro'"):
        linalg.norm(cyrt.ones(3), "fro")
    for what, function in (
        ("matrix_rank: tol", lambda tolerance: linalg.matrix_rank(square, tolerance)),
        ("matrix_rank: rtol", lambda tolerance: linalg.matrix_rank(square, rtol=tolerance)),
        ("pinv: rtol", lambda tolerance: linalg.pinv(square, rtol=tolerance)),
        ("lstsq: rcond", lambda tolerance: linalg.lstsq(square, square, tolerance)),
        ("polyfit: rcond", lambda tolerance: linalg.polyfit(square[0], square[0], 1, tolerance)),
    ):
        for tolerance in ("warn", np.ones(1), True):
            with pytest.raises(TypeError, match=f"^{what}: expected a number or an Array, got "):
                function(tolerance)
    with pytest.raises(ValueError, match="lstsq: expected shapes"):
        linalg.lstsq(square, cyrt.ones(3))
    with pytest.raises(ValueError, match="polyfit: deg"):
        linalg.polyfit(cyrt.ones(3), cyrt.ones(3), -1)
    with pytest.raises(ValueError, match="multi_dot: expected at least two arrays"):
        linalg.multi_dot([square])
    with pytest.raises(ValueError, match="multi_dot: arrays.0. .* cannot be multiplied"):
        linalg.multi_dot([square, cyrt.ones((3, 2))])
    with pytest.raises(TypeError, match="matrix_power: n: expected an int"):
        linalg.matrix_power(square, 1.5)
