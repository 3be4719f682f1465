"""Matrices that do not fit into a block's shared memory; the limit is lowered to factor small ones
by parts."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_matrices import (
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
from cyrt.builtin.linalg import limit_shared_bytes

TYPES = ["float32", "complex128"]


@pytest.fixture
def dtype():
    return "float32"


@pytest.fixture(autouse=True)
def small_limit(dtype):
    """A block has room for 64 columns of a factor, with right-hand sides, and for few more."""
    before = limit_shared_bytes(100_500 if dtype == "complex128" else 1 << 16)
    yield
    limit_shared_bytes(before)


def size_of(dtype):
    return 130 if dtype == "float32" else 80


@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky(rng, dtype):
    n = size_of(dtype)
    x = np.stack([positive(rng, n, 100, dtype) for _ in range(2)])
    for upper in (False, True):
        found = wide(linalg.cholesky(cyrt.asarray(x), upper=upper).numpy())
        product = adjoint(found) @ found if upper else found @ adjoint(found)
        assert error(product, x, dtype) < n
        assert not (np.tril(found, -1) if upper else np.triu(found, 1)).any()


def test_failures(rng):
    x = np.stack([positive(rng, 130, 10, "float32") for _ in range(3)])
    x[1, 100, 100] = -1
    found, info = linalg.cholesky(cyrt.asarray(x), check=False)
    assert info.tolist() == [0, 101, 0]
    assert np.isnan(found.numpy()[1]).all()
    assert np.isfinite(found.numpy()[[0, 2]]).all()
    linalg.cholesky(cyrt.asarray(x))
    with pytest.raises(linalg.LinAlgError, match="cholesky: matrix 1 is not positive definite"):
        cyrt.synchronize()
    x[1] = 1
    for call in (linalg.inv, lambda a, **k: linalg.solve(a, cyrt.ones(130), **k)):
        found, info = call(cyrt.asarray(x), check=False)
        assert info.tolist() == [0, 2, 0]
        assert np.isnan(found.numpy()[1]).all()
        assert np.isfinite(found.numpy()[[0, 2]]).all()
    linalg.inv(cyrt.asarray(x))
    with pytest.raises(linalg.LinAlgError, match="inv: matrix 1 is singular"):
        cyrt.synchronize()


def test_solve_and_inv(rng, dtype):
    n = size_of(dtype)
    x = np.stack([with_condition(rng, n, n, c, dtype) for c in (10, 1e5)])
    b = normal(rng, (2, n, 3), dtype)
    found = linalg.solve(cyrt.asarray(x), cyrt.asarray(b)).numpy()
    assert error(wide(x) @ wide(found), b, dtype, norm(x) * norm(found)) < n
    inverse = linalg.inv(cyrt.asarray(x)).numpy()
    identity = np.broadcast_to(np.eye(n), x.shape)
    assert error(wide(x) @ wide(inverse), identity, dtype, norm(x) * norm(inverse)) < n
    factors = linalg.lu_factor(cyrt.asarray(x))
    for trans, a in enumerate((x, np.swapaxes(x, -1, -2), adjoint(x))):
        found = linalg.lu_solve(factors, cyrt.asarray(b), trans).numpy()
        assert error(wide(a) @ wide(found), b, dtype, norm(a) * norm(found)) < n


@pytest.mark.parametrize("dtype", ["complex128"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 2])
def test_solve_triangular(rng, dtype, lower, trans):
    x = (normal(rng, (2, 70, 70), dtype) + 20 * np.eye(70)) / 20
    b = normal(rng, (70, 40), dtype)
    found = linalg.solve_triangular(cyrt.asarray(x), cyrt.asarray(b), lower=lower, trans=trans)
    a = np.tril(x) if lower else np.triu(x)
    a = adjoint(a) if trans else a
    size = norm(a) * norm(found.numpy())
    assert error(a @ found.numpy(), np.broadcast_to(b, (2, 70, 40)), dtype, size) < 70


def test_determinants(rng, dtype):
    n = size_of(dtype)
    x = np.stack([with_condition(rng, n, n, 10, dtype) for _ in range(2)]) * 2
    sign, logarithm = np.linalg.slogdet(wide(x))
    found = linalg.slogdet(cyrt.asarray(x))
    np.testing.assert_allclose(found.sign.numpy(), sign, atol=1e-3)
    np.testing.assert_allclose(found.logabsdet.numpy(), logarithm, rtol=1e-3)
    expected = np.linalg.det(wide(x))
    np.testing.assert_allclose(linalg.det(cyrt.asarray(x)).numpy(), expected, rtol=1e-3)
    # Products of the first pivots, or of every other one, overflow.
    large = np.finfo(dtype).max ** 0.6
    pivots = np.where(np.arange(n) % 4 < 2, large, 1 / large)
    pivots[n // 4 * 4 :] = 1
    found = linalg.det(cyrt.asarray(np.diag(pivots).astype(dtype)))
    np.testing.assert_allclose(found.numpy(), 1, rtol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *(("float32", (130, 130)), ("float32", (160, 90)), ("float32", (90, 160))),
        ("complex128", (45, 80)),
    ],
)
def test_qr(rng, dtype, shape):
    x = np.stack([normal(rng, shape, dtype), with_condition(rng, *shape, 1e5, dtype)])
    x[0, :, 3] = x[0, :, 2]
    x[0, :, 40] = 0
    for mode in ("reduced", "complete"):
        q, r = (each.numpy() for each in linalg.qr(cyrt.asarray(x), mode=mode))
        k = shape[0] if mode == "complete" else min(shape)
        assert q.shape == (2, shape[0], k)
        assert r.shape == (2, k, shape[1])
        assert error(wide(q) @ wide(r), x, dtype) < max(shape)
        assert off_orthonormal(q, dtype) < 8
        assert not np.tril(r, -1).any()
    only = linalg.qr(cyrt.asarray(x), mode="r").numpy()
    assert error(only, r[:, : min(shape)], dtype) < max(shape)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *(("float32", (20, 20)), ("float32", (200, 20)), ("float32", (20, 200))),
        ("complex128", (20, 70)),
    ],
)
def test_svd(rng, dtype, shape):
    limit_shared_bytes(5_000 if dtype == "float32" else 25_000)
    x = with_condition(rng, *shape, 1e5, dtype)
    k = min(shape)
    for full in (True, False):
        u, s, v = (each.numpy() for each in linalg.svd(cyrt.asarray(x), full_matrices=full))
        assert u.shape == (shape[0], shape[0] if full else k)
        assert v.shape == (shape[1] if full else k, shape[1])
        assert error((wide(u)[:, :k] * wide(s)) @ wide(v)[:k], x, dtype) < 8 + max(shape)
        assert off_orthonormal(u, dtype) < 8
        assert off_orthonormal(adjoint(v), dtype) < 8
    values = linalg.svdvals(cyrt.asarray(x)).numpy()
    np.testing.assert_allclose(values, s, atol=1e-5)


def test_eigenvalues(rng, dtype):
    limit_shared_bytes(1 << 12)
    x = hermitian(rng, (2, 25, 25), dtype)
    values, vectors = (each.numpy() for each in linalg.eigh(cyrt.asarray(x)))
    v = wide(vectors)
    assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 100
    assert off_orthonormal(v, dtype) < 8
    values, vectors = (each.numpy() for each in linalg.eig(cyrt.asarray(x)))
    v = wide(vectors)
    assert error(wide(x) @ v, v * wide(values)[:, None], dtype, norm(x)) < 200
    x[1, 3, 3] = np.nan
    assert linalg.eigvalsh(cyrt.asarray(x), check=False)[1].tolist() == [0, 1]
