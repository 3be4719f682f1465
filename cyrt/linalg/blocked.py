"""Factorizations of matrices that do not fit into a block's shared memory.

A library computes those that it factors faster. The others are divided into parts that fit, which
are factored one after the other and combined by products of matrices (Golub and Van Loan, Matrix
Computations, 3.2, 4.2 and 5.2).
"""

from __future__ import annotations

from typing import Any

from cyrt.linalg import by_library
from cyrt.linalg.factorizations import (
    SVDResult,
    cholesky_of,
    exchange_rows,
    factor_panel,
    first_zero,
    lu_of,
    triangular_of,
)
from cyrt.linalg.factorizations import singular as singular_of
from cyrt.ndarray import Array
from cyrt.ops.arange import arange
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import empty, zeros
from cyrt.ops.functions import abs as magnitude
from cyrt.ops.functions import conj, exp, isnan, log, sign
from cyrt.ops.grids import eye, tril, triu
from cyrt.ops.matmul import matmul, matrix_transpose
from cyrt.ops.reduce import any as any_of
from cyrt.ops.reduce import prod
from cyrt.ops.reduce import sum as total
from cyrt.ops.ternary import where
from cyrt.ops.views import diagonal

# The columns that one kernel factors. A panel of LU or QR has all rows below its diagonal.
BLOCK = 64
PANEL = 32


def adjoint(x: Array) -> Array:
    return conj(matrix_transpose(x)) if x.dtype.kind == "c" else matrix_transpose(x)


def _nan_where(failed: Array, x: Array) -> Array:
    return where(failed[..., None, None], float("nan"), x)


def cholesky(name: str, x: Array, check: bool) -> tuple[Array, Array | None]:
    """The lower factor, and where matrices failed, unless errors are raised."""
    found = by_library.cholesky(name, x, check)
    if found is not None:
        return found
    a, n = copy(x), x.shape[-1]
    info = None if check else zeros(x.shape[:-2], dtype="int32", device=x.device)
    for j in range(0, n, BLOCK):
        end = min(j + BLOCK, n)
        factor, failed = cholesky_of(name, a[..., j:end, j:end], check)
        a[..., j:end, j:end] = factor
        if info is not None and failed is not None:
            info = where((info == 0) & (failed != 0), failed + j, info)
        if end < n:
            identity = broadcast_to(eye(end - j, dtype=x.dtype, device=x.device), factor.shape)
            inverse, _ = triangular_of(name, factor, identity, True, 0, False, False)
            below = matmul(a[..., end:, j:end], adjoint(inverse))
            a[..., end:, j:end] = below
            a[..., end:, end:] -= matmul(below, adjoint(below))
    # A failure spreads to the last element, but not to the columns before it.
    return _nan_where(isnan(a[..., -1, -1].real), tril(a)), info


def lu(x: Array) -> tuple[Array, Array]:
    """L and U in one matrix, and the pivots."""
    found = by_library.lu(x)
    if found is not None:
        return found
    a, (m, n) = copy(x), x.shape[-2:]
    steps = min(m, n)
    pivots = empty((*x.shape[:-2], steps), dtype="int32", device=x.device)
    for j in range(0, steps, PANEL):
        end = min(j + PANEL, steps)
        panel, rows = lu_of(a[..., j:, j:end])
        pivots[..., j:end] = rows + j
        a[..., j:, :], _ = exchange_rows(a[..., j:, :], rows, False, True)
        a[..., j:, j:end] = panel
        if end < n:
            right, _ = triangular_of(
                "lu", panel[..., : end - j, :], a[..., j:end, end:], True, 0, True, True
            )
            a[..., j:end, end:] = right
            if end < m:
                a[..., end:, end:] -= matmul(panel[..., end - j :, :], right)
    return a, pivots


def determinant(x: Array, logarithm: bool) -> Any:
    """The determinants; or their signs, and the logarithms of their magnitudes."""
    a, pivots = lu(x)
    found = diagonal(a, 0, -2, -1)
    swaps = total(pivots != arange(x.shape[-1], dtype="int32", device=x.device), axis=-1)
    parity = 1 - 2 * astype(swaps % 2, found.real.dtype)
    signs = prod(sign(found), axis=-1) * parity
    logarithms = total(log(magnitude(found)), axis=-1)
    # A product of the elements may overflow on the way to a determinant that does not.
    return (signs, logarithms) if logarithm else signs * exp(logarithms)


def triangular(
    name: str, a: Array, b: Array, lower: bool, trans: Any, unit: bool, check: bool
) -> tuple[Array, Array | None]:
    """Solve with triangular matrices; see :func:`cyrt.linalg.solve_triangular`."""
    if trans not in (0, "N"):
        a = adjoint(a) if trans in (2, "C") else matrix_transpose(a)
        lower = not lower
    x, n = copy(b), a.shape[-1]
    starts = range(0, n, BLOCK)
    for j in starts if lower else reversed(starts):
        end = min(j + BLOCK, n)
        part, _ = triangular_of(name, a[..., j:end, j:end], x[..., j:end, :], lower, 0, unit, check)
        x[..., j:end, :] = part
        if lower and end < n:
            x[..., end:, :] -= matmul(a[..., end:, j:end], part)
        elif not lower and j:
            x[..., :j, :] -= matmul(a[..., :j, j:end], part)
    if unit:
        return x, None if check else zeros(x.shape[:-2], dtype="int32", device=x.device)
    failed = any_of(diagonal(a, 0, -2, -1) == 0, axis=-1)
    return _nan_where(failed, x), None if check else astype(failed, "int32")


def solve(name: str, a: Array, b: Array | None, check: bool) -> tuple[Array, Array | None]:
    """Solve with matrices; b is None for the identity."""
    found = by_library.solve(name, a, b, check)
    if found is not None:
        return found
    factors, pivots = lu(a)
    if b is None:
        b = broadcast_to(eye(a.shape[-1], dtype=a.dtype, device=a.device), a.shape)
    right, _ = exchange_rows(b, pivots, False, True)
    right, _ = triangular("lu", factors, right, True, 0, True, True)
    x, _ = triangular(name, factors, right, False, 0, False, check)
    if check:
        return x, None
    return x, first_zero(factors)


def qr(x: Array, columns: int) -> tuple[Array | None, Array]:
    """Q with so many columns, or None for 0; and R, by panels of reflections: their product is
    I - U T U^H, where T^-1 has the diagonal 1 / tau, and above it U^H U (Joffrain et al., ACM
    Trans. Math. Softw. 32, 2006)."""
    found = by_library.qr(x, columns)
    if found is not None:
        return found
    a, (m, n) = copy(x), x.shape[-2:]
    steps = min(m, n)
    panels = []
    for j in range(0, steps, PANEL):
        end = min(j + PANEL, steps)
        u, r, inverse_taus = factor_panel(a[..., j:, j:end])
        a[..., j:end, j:end] = r
        inverse_t = triu(matmul(adjoint(u), u), k=1)
        inverse_t = inverse_t + inverse_taus[..., None, :] * eye(
            end - j, dtype=x.dtype, device=x.device
        )
        panels.append((j, u, inverse_t))
        if end < n:
            right = a[..., j:, end:]
            product, _ = triangular_of(
                "qr", inverse_t, matmul(adjoint(u), right), False, 2, False, True
            )
            a[..., j:, end:] = right - matmul(u, product)
    r = triu(a[..., : max(columns, steps), :])
    if not columns:
        return None, r
    q = copy(
        broadcast_to(eye(m, columns, dtype=x.dtype, device=x.device), (*x.shape[:-2], m, columns))
    )
    for j, u, inverse_t in reversed(panels):
        right = q[..., j:, j:]
        product, _ = triangular_of(
            "qr", inverse_t, matmul(adjoint(u), right), False, 0, False, True
        )
        q[..., j:, j:] = right - matmul(u, product)
    return q, r


def singular(name: str, x: Array, full: bool, vectors: bool, check: bool) -> Any:
    """The singular value decomposition by that of the adjoint of R of QR, for which Jacobi's method
    needs a third of the sweeps (Drmac and Veselic, SIAM J. Matrix Anal. Appl. 29, 2008)."""
    m, n = x.shape[-2:]
    tall = adjoint(x) if m < n else x
    short = min(m, n)
    q, r = qr(tall, (max(m, n) if full else short) if vectors else 0)
    found = singular_of(name, adjoint(r[..., :short, :]), False, vectors, check, True)
    if q is None:
        return found
    (right, s, left), info = (found, None) if check else found
    q[..., :short] = matmul(q[..., :short], adjoint(left))
    result = SVDResult(right, s, adjoint(q)) if m < n else SVDResult(q, s, adjoint(right))
    return result if check else (result, info)
