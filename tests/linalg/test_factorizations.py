"""Factorizations: backward errors over sizes, conditions, types and batches."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_matrices import (
    TYPES,
    adjoint,
    error,
    hermitian,
    norm,
    normal,
    off_orthonormal,
    positive,
    wide,
    with_condition,
)

import cyrt
from cyrt import linalg

SIZES = {
    "float32": [1, 2, 3, 8, 17, 32, 33, 63, 64, 65],
    "float64": [2, 17],
    "complex64": [3, 17],
    "complex128": [1, 2, 16, 33],
}


def condition_of(dtype):
    return 1e13 if np.finfo(dtype).eps < 1e-10 else 1e6


CASES = [(dtype, n) for dtype in TYPES for n in SIZES[dtype]]
SHAPES = [(1, 1), (5, 2), (2, 5), (7, 7), (40, 3), (3, 40), (33, 20), (1, 4), (4, 1)]


@pytest.mark.parametrize(("dtype", "n"), CASES)
def test_cholesky(rng, dtype, n):
    x = np.stack([positive(rng, n, c, dtype) for c in (1, 100)])
    lower = linalg.cholesky(cyrt.asarray(x)).numpy()
    assert error(wide(lower) @ adjoint(wide(lower)), x, dtype) < 2 + n
    assert not np.triu(lower, 1).any()
    # The other triangle is not read.
    upper = linalg.cholesky(cyrt.asarray(np.triu(x)), upper=True).numpy()
    assert error(adjoint(wide(upper)) @ wide(upper), x, dtype) < 2 + n
    assert not np.tril(upper, -1).any()


@pytest.mark.parametrize(("dtype", "n"), CASES)
def test_solve_and_inv(rng, dtype, n):
    x = np.stack([with_condition(rng, n, n, c, dtype) for c in (1, condition_of(dtype))])
    for k in (1, 3):
        b = normal(rng, (2, n, k), dtype)
        found = linalg.solve(cyrt.asarray(x), cyrt.asarray(b)).numpy()
        size = norm(x) * norm(found) + norm(b)
        assert error(wide(x) @ wide(found), b, dtype, size) < 4 + 2 * n
    inverse = linalg.inv(cyrt.asarray(x)).numpy()
    size = norm(x) * norm(inverse)
    assert (
        error(wide(x) @ wide(inverse), np.broadcast_to(np.eye(n), x.shape), dtype, size) < 4 + 2 * n
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_inverse_of_a_subnormal_number(dtype):
    """It is infinite; the rest of the matrix is inverted all the same."""
    x = np.diag([2, np.finfo(dtype).smallest_subnormal, 4]).astype(dtype)
    expected = np.diag([0.5, np.inf, 0.25])
    np.testing.assert_array_equal(linalg.inv(cyrt.asarray(x)).numpy().real, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_subnormal_pivots(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.diag([2, 8 * tiny, 4]).astype(dtype)
    x[2, 1] = 4 * tiny
    factors = linalg.lu_factor(cyrt.asarray(x)).lu.numpy()
    assert factors[2, 1] == 0.5
    assert factors[0, 2] == factors[1, 2] == 0
    assert linalg.det(cyrt.asarray(x)).numpy() == 64 * tiny
    assert linalg.slogdet(cyrt.asarray(x)).sign.numpy() == 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (33, 33)])
def test_lu(rng, dtype, shape):
    x = normal(rng, (2, *shape), dtype)
    lu, pivots = (each.numpy() for each in linalg.lu_factor(cyrt.asarray(x)))
    k = min(shape)
    lower = np.tril(wide(lu)[..., :k], -1) + np.eye(shape[0], k)
    upper = np.triu(wide(lu)[..., :k, :])
    product = lower @ upper
    assert np.abs(lower).max() < (1.01 if np.dtype(dtype).kind == "f" else 1.5)
    for each, rows in zip(product, pivots, strict=True):
        for j in range(k)[::-1]:
            each[[j, rows[j]]] = each[[rows[j], j]]
    assert error(product, x, dtype) < 4 + max(shape)


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_lu_solve(rng, dtype, trans):
    x, b = normal(rng, (3, 20, 20), dtype), normal(rng, (20, 2), dtype)
    found = linalg.lu_solve(linalg.lu_factor(cyrt.asarray(x)), cyrt.asarray(b), trans).numpy()
    a = [x, np.swapaxes(x, -1, -2), adjoint(x)][trans]
    assert (
        error(wide(a) @ wide(found), np.broadcast_to(b, found.shape), dtype, norm(x) * norm(found))
        < 60
    )
    vector = linalg.lu_solve(linalg.lu_factor(cyrt.asarray(x)), cyrt.asarray(b[:, 0]), trans)
    np.testing.assert_array_equal(vector.numpy(), found[..., 0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 20])
def test_determinants(rng, dtype, n):
    x = normal(rng, (4, n, n), dtype)
    expected = np.linalg.slogdet(wide(x))
    tolerance = 50 * (n + 1) * np.finfo(dtype).eps
    found = linalg.slogdet(cyrt.asarray(x))
    np.testing.assert_allclose(found.sign.numpy(), expected[0], atol=tolerance)
    np.testing.assert_allclose(found.logabsdet.numpy(), expected[1], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        linalg.det(cyrt.asarray(x)).numpy(), np.linalg.det(wide(x)), rtol=10 * tolerance
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [4, 33, 64])
def test_products_of_pivots_do_not_overflow(rng, dtype, n):
    large = np.sqrt(np.finfo(dtype).max) * 1e3
    pivots = np.ones(n)
    pivots[: n // 2 * 2 : 2], pivots[1::2] = large, 2 / large
    signs = 1j ** np.arange(n) if np.dtype(dtype).kind == "c" else 1
    for each in (pivots, pivots[::-1], np.sort(pivots), rng.permutation(pivots)):
        x = np.diag(each * signs).astype(dtype)
        expected = 2.0 ** (n // 2) * np.prod(np.ones(n) * signs)
        np.testing.assert_allclose(linalg.det(cyrt.asarray(x)).numpy(), expected, rtol=1e-5)
    assert linalg.det(cyrt.asarray(np.diag([large, large]).astype(dtype))).item().real == np.inf


def test_determinants_of_singular_matrices():
    x = cyrt.asarray(np.ones((2, 3, 3), np.float32))
    assert linalg.det(x).tolist() == [0, 0]
    sign, logarithm = linalg.slogdet(x)
    assert sign.tolist() == [0, 0]
    assert logarithm.tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, "T", "C"])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular(rng, dtype, lower, trans, unit):
    for n, k in ((1, 1), (5, 2), (33, 40)):
        x = normal(rng, (2, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
        b = normal(rng, (n, k), dtype)
        found = linalg.solve_triangular(
            cyrt.asarray(x), cyrt.asarray(b), lower=lower, trans=trans, unit_diagonal=unit
        ).numpy()
        a = wide(np.tril(x) if lower else np.triu(x))
        if unit:
            a[..., range(n), range(n)] = 1
        a = {0: a, "T": np.swapaxes(a, -1, -2), "C": adjoint(a)}[trans]
        size = norm(a) * norm(found)
        assert error(a @ wide(found), np.broadcast_to(b, found.shape), dtype, size) < 4 + n


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (16, 16), (32, 35), (33, 33), (65, 64)])
def test_qr(rng, dtype, shape):
    x = np.stack(
        [normal(rng, shape, dtype), with_condition(rng, *shape, condition_of(dtype), dtype)]
    )
    for mode in ("reduced", "complete"):
        q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(x), mode=mode))
        k = shape[0] if mode == "complete" else min(shape)
        assert q.shape == (2, shape[0], k)
        assert r.shape == (2, k, shape[1])
        assert error(wide(q) @ wide(r), x, dtype) < 4 + max(shape)
        assert off_orthonormal(q, dtype) < 8
        assert not np.tril(r, -1).any()
    np.testing.assert_array_equal(
        linalg.qr(cyrt.asarray(x), mode="r").numpy(), linalg.qr(cyrt.asarray(x)).R.numpy()
    )


def test_qr_of_columns_near_the_axes(rng):
    """Their reflections would lose all digits with the other sign, which LAPACK avoids, too."""
    x = (np.eye(9, 6) + 1e-4 * normal(rng, (9, 6))).astype(np.float32)
    q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(x)))
    assert error(wide(q) @ wide(r), x, "float32") < 20
    assert off_orthonormal(q, "float32") < 8
    np.testing.assert_array_equal(np.sign(np.diag(r)), np.sign(np.diag(np.linalg.qr(x).R)))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *((dtype, shape) for dtype in TYPES for shape in SHAPES),
        *(("float32", (33, 33)), ("float32", (65, 30)), ("complex128", (33, 33))),
    ],
)
def test_svd(rng, dtype, shape):
    x = np.stack(
        [normal(rng, shape, dtype), with_condition(rng, *shape, condition_of(dtype), dtype)]
    )
    k = min(shape)
    for full in (True, False) if shape[0] != shape[1] else (True,):
        u, s, v = (each.numpy() for each in linalg.svd(cyrt.asarray(x), full_matrices=full))
        assert u.shape == (2, shape[0], shape[0] if full else k)
        assert v.shape == (2, shape[1] if full else k, shape[1])
        product = (wide(u)[..., :k] * wide(s)[:, None]) @ wide(v)[..., :k, :]
        assert error(product, x, dtype) < 8 + max(shape)
        assert off_orthonormal(u, dtype) < 8
        assert off_orthonormal(adjoint(v), dtype) < 8
        assert (s >= 0).all()
        assert (np.diff(s) <= 0).all()
    expected = np.linalg.svd(wide(x), compute_uv=False)
    tolerance = (8 + 2 * max(shape)) * np.finfo(dtype).eps
    assert (np.abs(s - expected) < tolerance * expected[:, :1]).all()
    values = linalg.svdvals(cyrt.asarray(x)).numpy()
    assert (np.abs(values - expected) < tolerance * expected[:, :1]).all()


def test_svd_that_takes_many_sweeps():
    x = with_condition(np.random.default_rng(0), 63, 63, 1e13, "float64")
    expected = np.linalg.svd(x, compute_uv=False)
    found = linalg.svdvals(cyrt.asarray(x)).numpy()
    assert np.abs(found - expected).max() < 100 * np.finfo("float64").eps


@pytest.mark.parametrize("dtype", TYPES)
def test_svd_of_matrices_without_full_rank(rng, dtype):
    for shape in ((5, 5), (12, 5), (5, 12)):
        x = np.stack(
            [
                np.zeros(shape, dtype),
                np.ones(shape, dtype),
                (normal(rng, (shape[0], 2), dtype) @ normal(rng, (2, shape[1]), dtype)),
            ]
        )
        u, s, v = (each.numpy() for each in linalg.svd(cyrt.asarray(x)))
        k = min(shape)
        assert error((wide(u)[..., :k] * wide(s)[:, None]) @ wide(v)[..., :k, :], x, dtype) < 40
        assert off_orthonormal(u, dtype) < 8
        assert off_orthonormal(adjoint(v), dtype) < 8
        assert (s[0] == 0).all()


@pytest.mark.parametrize(("dtype", "n"), CASES)
def test_eigh(rng, dtype, n):
    x = np.stack([hermitian(rng, (n, n), dtype), positive(rng, n, condition_of(dtype), dtype)])
    both = (("L", np.tril), ("U", np.triu))
    for UPLO, triangle in both if n < 60 else (both[n % 2],):
        values, vectors = (each.numpy() for each in linalg.eigh(cyrt.asarray(triangle(x)), UPLO))
        v = wide(vectors)
        assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 8 + 2 * n
        assert off_orthonormal(v, dtype) < 8
        assert (np.diff(values) >= 0).all()
    expected = np.linalg.eigvalsh(wide(x))
    tolerance = (8 + 2 * n) * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(values, expected, atol=tolerance)
    found = linalg.eigvalsh(cyrt.asarray(x)).numpy()
    np.testing.assert_allclose(found, expected, atol=2 * tolerance)


def test_eigh_of_equal_and_opposite_eigenvalues():
    x = np.stack(
        [np.eye(4), -np.eye(4), np.zeros((4, 4)), np.eye(4)[::-1], np.diag([1, -1, 1, -1])]
    )
    values, vectors = (each.numpy() for each in linalg.eigh(cyrt.asarray(x)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), atol=1e-14)
    assert off_orthonormal(vectors, "float64") < 8
    assert error(x @ vectors, vectors * values[:, None], "float64", 1) < 20


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 20])
def test_eig(rng, dtype, n):
    x = np.stack(
        [normal(rng, (n, n), dtype), hermitian(rng, (n, n), dtype), np.eye(n, dtype=dtype)]
    )
    values, vectors = (each.numpy() for each in linalg.eig(cyrt.asarray(x)))
    v = wide(vectors)
    assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 20 + 4 * n
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-5)
    for found in (values, linalg.eigvals(cyrt.asarray(x)).numpy()):
        for mine, each in zip(found, x, strict=True):
            rest = list(np.linalg.eigvals(wide(each)))
            for value in mine:
                nearest = min(rest, key=lambda other: abs(other - value))
                assert abs(nearest - value) < 3e3 * n * np.finfo(dtype).eps * max(1, norm(each))
                rest.remove(nearest)


def test_eig_of_a_defective_matrix():
    x = np.diag(np.ones(7), 1) + 2 * np.eye(8)
    values, vectors = (each.numpy() for each in linalg.eig(cyrt.asarray(x)))
    np.testing.assert_allclose(values, 2, atol=1e-12)
    assert np.isfinite(vectors).all()
    assert norm(x @ vectors - vectors * values) < 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_eig_of_matrices_of_low_rank(rng, dtype):
    """Below the first rows, Hessenberg's form has rounding errors of rounding errors."""
    n = 33
    columns = [rng.integers(-4, 5, (n, k)) @ rng.integers(-4, 5, (k, n)) for k in (1, 1, 2, 16)]
    graded = np.geomspace(1, 1e-35, n) * normal(rng, (n, n), "float64")
    x = np.stack([np.ones((n, n)), np.tri(n, k=-1), *columns, graded, graded.T]).astype(dtype)
    values, vectors = (each.numpy() for each in linalg.eig(cyrt.asarray(x)))
    v = wide(vectors)
    assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 20 + 4 * n
    sums = wide(values).sum(-1) - wide(x).trace(axis1=-2, axis2=-1)
    assert (abs(sums) < 4 * n * np.finfo(dtype).eps * norm(x)).all()
    for n in (63, 64, 65):  # those of more rows do not fit into a block
        found = np.sort(abs(linalg.eigvals(cyrt.ones((n, n), dtype)).numpy()))
        np.testing.assert_allclose(found, [0] * (n - 1) + [n], atol=1e3 * np.finfo(dtype).eps)


# -- batches, strides, sizes of zero ---------------------------------------------------------------

FUNCTIONS = [
    linalg.cholesky,
    linalg.inv,
    linalg.det,
    linalg.slogdet,
    linalg.lu_factor,
    linalg.qr,
    linalg.svd,
    linalg.svdvals,
    linalg.eigh,
    linalg.eigvalsh,
]


def flat(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("function", [linalg.qr, linalg.svd], ids=lambda f: f.__name__)
def test_results_with_names_are_tuples(function):
    """Their constructor is not called, but they are what it returns."""
    found = function(cyrt.eye(3))
    other = type(found)(*found)
    assert isinstance(found, tuple)
    assert found == other
    with pytest.raises(TypeError, match="unhashable type"):
        hash(found)
    assert hash(found._replace(**dict.fromkeys(found._fields, 1))) == hash((1,) * len(found))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_batch_equals_its_matrices(rng, function):
    x = np.stack([positive(rng, 6, 50, "float32") for _ in range(12)])
    single = [flat(function(cyrt.asarray(each))) for each in x]
    for batch in (
        cyrt.asarray(x.reshape(3, 4, 6, 6)),
        cyrt.asarray(x.reshape(4, 3, 6, 6).swapaxes(0, 1)).swapaxes(0, 1).reshape(3, 4, 6, 6),
        cyrt.asarray(np.repeat(x.reshape(3, 4, 6, 6), 2, -1))[..., ::2],
    ):
        for i, each in enumerate(flat(function(batch))):
            found = each.numpy().reshape(12, *each.shape[2:])
            np.testing.assert_array_equal(found, [one[i].numpy() for one in single])


def test_memory_is_flat(rng):
    x = cyrt.asarray(positive(rng, 6, 10, "float32"))

    def use():
        for _ in range(10):
            for function in (*FUNCTIONS, linalg.eig, linalg.pinv):
                function(x)
            linalg.lu_solve(linalg.lu_factor(x), linalg.solve(x, x))
        cyrt.synchronize()
        return cyrt.memory_stats()["in_use"]

    use()
    assert use() == use()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_empty_batches_and_matrices(function):
    for shape in ((0, 3, 3), (2, 0, 3, 3)):
        for each in flat(function(cyrt.zeros(shape))):
            assert each.shape[: len(shape) - 2] == shape[:-2]
            assert each.size == 0
    for each in flat(function(cyrt.zeros((2, 0, 0)))):
        assert each.shape[0] == 2
        each.numpy()


def test_matrices_without_rows_or_columns():
    q, r = linalg.qr(cyrt.zeros((3, 0)), mode="complete")
    assert r.shape == (3, 0)
    np.testing.assert_array_equal(q.numpy(), np.eye(3))
    u, s, v = linalg.svd(cyrt.zeros((0, 4)))
    assert u.shape == (0, 0)
    assert s.shape == (0,)
    assert off_orthonormal(v.numpy(), "float32") == 0
    assert linalg.solve(cyrt.zeros((0, 0)), cyrt.zeros((0, 2))).shape == (0, 2)
    assert linalg.solve(cyrt.eye(2), cyrt.zeros((2, 0))).shape == (2, 0)


def test_many_small_matrices(rng):
    x = normal(rng, (65_537, 2, 2), "float32") + 4 * np.eye(2, dtype=np.float32)
    expected = np.linalg.inv(wide(x))
    np.testing.assert_allclose(linalg.inv(cyrt.asarray(x)).numpy(), expected, atol=1e-4, rtol=1e-4)


def test_right_hand_sides_broadcast(rng):
    x, b = normal(rng, (3, 1, 4, 4)), normal(rng, (2, 4, 5))
    np.testing.assert_allclose(
        linalg.solve(cyrt.asarray(x), cyrt.asarray(b)).numpy(), np.linalg.solve(x, b), rtol=1e-9
    )
    vector = normal(rng, 4)
    np.testing.assert_allclose(
        linalg.solve(cyrt.asarray(x), cyrt.asarray(vector)).numpy(),
        np.linalg.solve(x, np.broadcast_to(vector[:, None], (3, 1, 4, 1)))[..., 0],
        rtol=1e-9,
    )


def test_columns_of_very_different_sizes(rng):
    """The squares of the smallest ones vanish."""
    x = (normal(rng, (24, 20)) * np.geomspace(1, 1e-24, 20)).astype(np.float32)
    for dtype, each in (("float32", x), ("complex64", x[:, ::-1] * np.complex64(1 + 1j))):
        q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(each)))
        distances = np.linalg.norm(wide(q) @ wide(r) - wide(each), axis=0)
        sizes = np.linalg.norm(wide(each), axis=0)
        assert (distances < 24 * np.finfo(dtype).eps * sizes).all()
        assert off_orthonormal(q, dtype) < 8
    x = x[:20] * 1e2
    h = np.tril(x) + np.tril(x, -1).T
    values, vectors = (each.numpy() for each in linalg.eigh(cyrt.asarray(h)))
    v = wide(vectors)
    assert error(wide(h) @ v, v * wide(values), "float32", norm(h)) < 48
    assert off_orthonormal(v, "float32") < 8


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_that_would_overflow_or_vanish(rng, scale):
    x = (normal(rng, (6, 6)) * scale).astype(np.float32)
    q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(x)))
    assert error(wide(q) @ wide(r), x, "float32") < 20
    assert off_orthonormal(q, "float32") < 8
    u, s, v = (each.numpy() for each in linalg.svd(cyrt.asarray(x)))
    assert error((wide(u) * wide(s)) @ wide(v), x, "float32") < 20
    values, vectors = (each.numpy() for each in linalg.eigh(cyrt.asarray((x + x.T) / 2)))
    v = wide(vectors)
    assert error(wide((x + x.T) / 2) @ v, v * wide(values), "float32", norm(x)) < 20
