"""Factorizations of matrices by cuSOLVER.

Each function returns None, and has computed nothing, if the library is not used for the matrices.
The library stores matrices by columns, so it takes a row-major matrix for its transpose.
"""

from __future__ import annotations

import math
from typing import Any

from cyrt.linalg.factorizations import (
    NO_CONVERGENCE,
    SINGULAR,
    SVDResult,
    check_lu,
    finite_copy,
    lower_factor,
    mark_failed,
)
from cyrt.linalg.library_calls import call, is_preferred
from cyrt.ndarray import Array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import empty
from cyrt.ops.functions import conj, maximum, sign, sqrt
from cyrt.ops.grids import eye, triu
from cyrt.ops.matmul import matmul, matrix_transpose
from cyrt.ops.shapes import flip, reshape
from cyrt.ops.ternary import where
from cyrt.ops.views import diagonal

# For matrices whose shorter side has up to so many rows: the most matrices of a batch that the
# library factors one after the other in no more time than own kernels take for all at once.
# Measured on an H200 with 1 to 8 square matrices of 128 to 1,024 rows. Matrices that fit into a
# block's shared memory are left to own kernels before, except for the eigenvalues and singular
# values of those with many rows.
_MOST = {
    "cholesky": ((255, 1), (math.inf, 4)),
    "lu": ((400, 2), (800, 4), (math.inf, 8)),
    "qr": ((191, 0), (math.inf, 1)),
    "hermitian": ((191, 1), (400, 7), (math.inf, 11)),
    "singular": ((191, 1), (400, 5), (math.inf, 8)),
    "singular in double precision": ((600, 0), (math.inf, 1)),
    "general": ((191, 0), (255, 1), (400, 2), (math.inf, 64)),
}
# The most elements of a matrix: numbers are counted in 32 bits.
_MOST_ELEMENTS = 1 << 30
_WIDER = {"float32": "float64", "complex64": "complex128"}


def _serves(function: str, x: Array, elements: int = 0) -> bool:
    """Return whether the library factors the matrices, with results of so many elements."""
    m, n = x.shape[-2:]
    if max(m * n, elements) > _MOST_ELEMENTS:
        return False
    most = next(batch for rows, batch in _MOST[function] if min(m, n) <= rows)
    return is_preferred(x.device.index, most, _batch(x) if min(m, n) else 0)


def _batch(x: Array) -> int:
    return math.prod(x.shape[:-2])


def _empty(x: Array, *shape: int, dtype: Any = None) -> Array:
    return empty((*x.shape[:-2], *shape), dtype=dtype or x.dtype, device=x.device)


def _status(x: Array) -> Array:
    return _empty(x, 1, 1, dtype="int32")


def _adjoint(x: Array) -> Array:
    return conj(matrix_transpose(x)) if x.dtype.kind == "c" else matrix_transpose(x)


def cholesky(name: str, x: Array, check: bool) -> tuple[Array, Array | None] | None:
    """The lower factor, and where matrices failed, unless errors are raised."""
    if not _serves("cholesky", x):
        return None
    # The lower triangle of a matrix that is stored by columns is factored fastest.
    a, status = copy(matrix_transpose(x)), _status(x)
    if not call("cholesky", (x.shape[-1],), _batch(x), (a, status)):
        return None
    return lower_factor(name, a, status, check)


def _lu(a: Array, infinite: Array) -> tuple[Array, Array] | None:
    """The pivots, from 1 on, and the status of matrices stored by columns, which become L and U,
    and NaN where `infinite` is not 0."""
    n, m = a.shape[-2:]
    pivots, status = _empty(a, min(m, n), dtype="int64"), _status(a)
    if not call("lu", (m, n), _batch(a), (a, pivots, status)):
        return None
    check_lu(a, pivots, status, infinite)
    return pivots, status


def lu(x: Array) -> tuple[Array, Array] | None:
    """L and U in one matrix, and the pivots."""
    if not _serves("lu", x):
        return None
    a, infinite = finite_copy(matrix_transpose(x))
    found = _lu(a, infinite)
    return None if found is None else (copy(matrix_transpose(a)), astype(found[0] - 1, "int32"))


def solve(name: str, a: Array, b: Array | None, check: bool) -> tuple[Array, Array | None] | None:
    """Solve with matrices; b is None for the identity."""
    n = a.shape[-1]
    k = n if b is None else b.shape[-1]
    if not _serves("lu", a, n * k):
        return None
    factors, infinite = finite_copy(a)  # the library factors the transpose
    found = _lu(factors, infinite)
    if found is None:
        return None
    pivots, status = found
    # The inverse of the transpose, stored by columns, is the inverse.
    x = _identity(a) if b is None else copy(matrix_transpose(b))
    operands = factors, pivots, x, _status(a)
    if k and not call("lu_solve", (n, k, b is not None), _batch(a), operands):
        return None
    if b is not None:
        x = reshape(x, b.shape) if k == 1 else copy(matrix_transpose(x))
    return x, mark_failed(name, SINGULAR, status, (x,), check)


def _identity(a: Array) -> Array:
    """An identity matrix for each matrix, to be overwritten."""
    identity = eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return reshape(identity, a.shape) if _batch(a) == 1 else copy(broadcast_to(identity, a.shape))


def qr(x: Array, columns: int) -> tuple[Array | None, Array] | None:
    """Q with so many columns, or None for 0; and R."""
    if not _serves("qr", x, x.shape[-2] * columns):
        return None
    return _qr(x, columns)


def _qr(x: Array, columns: int) -> tuple[Array | None, Array] | None:
    m, n = x.shape[-2:]
    steps = min(m, n)
    a, factors, status = copy(matrix_transpose(x)), _empty(x, steps), _status(x)
    if not call("qr", (m, n), _batch(x), (a, factors, status)):
        return None
    r = triu(matrix_transpose(a)[..., : max(columns, steps), :])
    if not columns:
        return None, r
    q = a
    if columns != n:
        q = _empty(x, columns, m)
        q[..., :steps, :] = a[..., :steps, :]
    if not call("q", (m, columns, steps), _batch(x), (q, factors, status)):
        return None
    return matrix_transpose(q), r


def _hermitian(a: Array, upper: bool, vectors: bool) -> tuple[Array, Array] | None:
    """The eigenvalues, and the status, of finite matrices of which one triangle is read. They
    become the conjugate eigenvectors, in rows."""
    n = a.shape[-1]
    values, status = _empty(a, n, dtype=a.real.dtype), _status(a)
    # The library sees the transpose, which is the conjugate: so are its eigenvectors.
    if not call("hermitian", (n, not upper, vectors), _batch(a), (a, values, status)):
        return None
    return values, status


def hermitian(
    name: str, x: Array, upper: bool, vectors: bool, check: bool
) -> tuple[Array, Array | None, Array | None] | None:
    """The eigenvalues, the eigenvectors, and where matrices failed, unless errors are raised."""
    if not _serves("hermitian", x):
        return None
    a, infinite = finite_copy(x, "U" if upper else "L")
    found = _hermitian(a, upper, vectors)
    if found is None:
        return None
    values, status = found
    columns = copy(_adjoint(a)) if vectors else None
    results = (values,) if columns is None else (values, columns)
    info = mark_failed(name, NO_CONVERGENCE, status, results, check, infinite)
    return values, columns, info


def singular(name: str, x: Array, full: bool, vectors: bool, check: bool) -> Any:
    """The singular value decomposition, as cyrt.linalg.blocked.singular returns it."""
    m, n = x.shape[-2:]
    wider = _WIDER.get(x.dtype.name)
    function = "singular" if wider else "singular in double precision"
    if not _serves(function, x, max(m, n) * (max(m, n) if full and vectors else min(m, n))):
        return None
    a, infinite = finite_copy(x)
    if wider:
        found = _singular_by_eigenvalues(astype(a, wider), full, vectors)
    else:
        found = _singular(a, full, vectors)
    if found is None:
        return None
    *parts, status = found
    results = tuple(astype(each, of.dtype) for each, of in zip(parts, (x.real, x, x), strict=False))
    info = mark_failed(name, NO_CONVERGENCE, status, results, check, infinite)
    result = SVDResult(results[1], results[0], results[2]) if vectors else results[0]
    return result if check else (result, info)


def _singular_by_eigenvalues(x: Array, full: bool, vectors: bool) -> tuple[Array, ...] | None:
    """The singular values, U and Vh if they are wanted, and the status, of matrices whose numbers
    have half of the type's precision.

    With the eigenvectors V of x^H x, the R of x V = Q R is diagonal up to errors of the size of
    sqrt(epsilon) |x|, as R^H R is up to epsilon |x|^2. This is less than the rounding errors of the
    type with half of the precision.
    """
    m, n = x.shape[-2:]
    tall = copy(_adjoint(x)) if m < n else x
    a = matmul(_adjoint(tall), tall)
    found = _hermitian(a, False, vectors)
    if found is None:
        return None
    values, status = found
    s = flip(sqrt(maximum(values, 0)), axis=-1)
    if not vectors:
        return s, status
    v = copy(flip(_adjoint(a), axis=-1))
    q, r = _qr(matmul(tall, v), max(m, n) if full else min(m, n)) or (None, None)
    if q is None or r is None:
        return None
    steps = diagonal(r, 0, -2, -1)
    u = copy(q)
    u[..., : min(m, n)] *= where(steps == 0, 1, sign(steps))[..., None, :]
    return (s, v, _adjoint(u), status) if m < n else (s, u, _adjoint(v), status)


def _singular(x: Array, full: bool, vectors: bool) -> tuple[Array, ...] | None:
    """Return what `_singular_by_eigenvalues` does, of matrices of any type, by the library's own
    function."""
    m, n = x.shape[-2:]
    tall, wide = max(m, n), min(m, n)
    a = copy(matrix_transpose(x) if m > n else x)
    values, status = _empty(x, wide, dtype=x.real.dtype), _status(x)
    columns = tall if full else wide
    left = _empty(x, columns if vectors else 1, tall)
    right = _empty(x, wide if vectors else 1, wide)
    options = tall, wide, full, vectors
    if not call("singular", options, _batch(x), (a, values, left, right, status)):
        return None
    if not vectors:
        return values, status
    u, vh = (matrix_transpose(left), matrix_transpose(right)) if m > n else (right, left)
    return values, u, vh, status


def general(
    name: str, x: Array, vectors: bool, check: bool
) -> tuple[Array, Array | None, Array | None] | None:
    """The eigenvalues and the eigenvectors of complex matrices, and where matrices failed, unless
    errors are raised."""
    if not _serves("general", x):
        return None
    n = x.shape[-1]
    a, infinite = finite_copy(matrix_transpose(x))
    values, right, status = _empty(x, n), _empty(x, n if vectors else 1, n), _status(x)
    if not call("general", (n, vectors), _batch(x), (a, values, right, status)):
        return None
    columns = copy(matrix_transpose(right)) if vectors else None
    results = (values,) if columns is None else (values, columns)
    info = mark_failed(name, NO_CONVERGENCE, status, results, check, infinite)
    return values, columns, info
