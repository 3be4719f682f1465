"""Matrices for tests, and errors of factorizations in units of the type's epsilon."""

from __future__ import annotations

import numpy as np

TYPES = ["float32", "float64", "complex64", "complex128"]


def wide(x):
    """A copy in float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def normal(rng, shape, dtype="float64"):
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def hermitian(rng, shape, dtype="float64"):
    x = normal(rng, shape, dtype)
    return (x + adjoint(x)) / 2


def orthonormal(rng, n, dtype="float64"):
    return np.linalg.qr(wide(normal(rng, (n, n), dtype)))[0]


def with_condition(rng, m, n, condition, dtype):
    """A matrix whose singular values are spaced evenly, by their logarithms, from 1 down."""
    k = min(m, n)
    values = np.geomspace(1, 1 / condition, k) if k > 1 else np.ones(k)
    u, v = orthonormal(rng, m, dtype)[:, :k], orthonormal(rng, n, dtype)[:k]
    return ((u * values) @ v).astype(dtype)


def positive(rng, n, condition, dtype):
    u = orthonormal(rng, n, dtype)
    values = np.geomspace(1, 1 / condition, n) if n > 1 else np.ones(n)
    x = (u * values) @ adjoint(u)
    return ((x + adjoint(x)) / 2).astype(dtype)


def norm(x):
    """The greatest norm of the matrices."""
    x = wide(x)
    return np.sqrt((np.abs(x) ** 2).sum((-1, -2))).max(initial=0)


def error(found, expected, dtype, size=None):
    """The distance of two arrays of matrices, relative to a size, in units of the epsilon."""
    size = max(norm(expected) if size is None else size, np.finfo(dtype).tiny)
    return norm(wide(found) - wide(expected)) / size / np.finfo(dtype).eps


def off_orthonormal(q, dtype):
    """How far the columns are from being orthonormal, per column."""
    q = wide(q)
    return norm(adjoint(q) @ q - np.eye(q.shape[-1])) / np.finfo(dtype).eps / max(1, q.shape[-1])
