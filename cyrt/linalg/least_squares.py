"""Least squares, pseudoinverses and polynomials."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from cyrt.linalg.blocked import adjoint
from cyrt.linalg.factorizations import (
    eigenvalues_of,
    hermitian_of,
    in_own_type,
    joined_batch,
    svd_of,
)
from cyrt.linalg.norms import greatest_or_zero, relative_tolerance
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array, check_bool, int_of
from cyrt.ops.copy import astype, check_devices
from cyrt.ops.creation import asarray, empty, zeros
from cyrt.ops.functions import abs as magnitude
from cyrt.ops.functions import sqrt
from cyrt.ops.inspection import finfo
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.promotion import result_type
from cyrt.ops.reduce import count_nonzero
from cyrt.ops.reduce import sum as total
from cyrt.ops.ternary import where
from cyrt.tape import detach, differentiable, follows


def _checked(x: Any, name: str, argument: str) -> Array:
    return in_own_type(name, check_array(x, f"{name}: {argument}"))


@differentiable
def pinv(x: Array, /, *, rtol: Any = None, hermitian: bool = False) -> Array:
    """Compute the pseudoinverses of matrices, as Moore and Penrose define them.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N); integers are converted to float32.
    rtol : float or Array, optional
        Singular values of at most this part of the greatest one count as 0. Default:
        ``max(M, N) * finfo(x.dtype).eps``.
    hermitian : bool
        Whether the matrices are Hermitian, so that eigenvalues replace singular values.

    Returns
    -------
    Array
        Shape (..., N, M).

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or its type is float16 or bfloat16.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite.

    Notes
    -----
    The method is the singular value decomposition. The arguments are those of the array API
    standard; `hermitian` is NumPy's.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.pinv(cyrt.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    array = _checked(x, "pinv", "x")
    if check_bool(hermitian, "pinv: hermitian"):
        values, vectors = hermitian_of("pinv", array, True)
        sizes, left, right = magnitude(values), vectors, adjoint(vectors)
    else:
        left, values, right = svd_of("pinv", array)
        sizes = values
    tolerance = relative_tolerance("pinv: rtol", array, rtol)
    kept = sizes > tolerance * greatest_or_zero(sizes, (-1,), True)
    inverse = where(kept, 1 / where(kept, values, 1.0), 0.0)
    return matmul(adjoint(right) * inverse[..., None, :], adjoint(left))


def lstsq(a: Array, b: Array, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    """Find the x of least norm that minimises the norm of ``b - a @ x``, for each right-hand side.

    Parameters
    ----------
    a : Array
        A matrix of shape (M, N), or a batch (..., M, N); integers are converted to float32.
    b : Array
        Right-hand sides of shape (M,) or (..., M, K).
    rcond : float, optional
        Singular values of at most this part of the greatest one count as 0. Default:
        ``max(M, N) * finfo(a.dtype).eps``; a negative number stands for ``finfo(a.dtype).eps``.

    Returns
    -------
    tuple of Array
        The solutions, of shape (N,) or (..., N, K); the sums of squared residuals, real; the ranks,
        int64; and the singular values of a. As in NumPy, the sums of one matrix have shape (1,) or
        (K,), or (0,) if M <= N or the rank is less than N; those of a batch have shape (..., K).

    Raises
    ------
    TypeError, ValueError
        The operands are not Arrays of fitting shapes.
    cyrt.linalg.LinAlgError
        When a value is waited for: a was not finite.

    Notes
    -----
    For one matrix with M > N the call waits for its rank, which decides the shape of a result. The
    arguments and results are those of NumPy's ``numpy.linalg.lstsq``.

    Examples
    --------
    >>> import cyrt
    >>> a = cyrt.asarray([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> cyrt.linalg.lstsq(a, cyrt.asarray([1.0, 2.0, 3.0]))[1]
    Array([9.], dtype=float32)
    """
    a, b = _checked(a, "lstsq", "a"), _checked(b, "lstsq", "b")
    check_devices("lstsq", a=a, b=b)
    vector = b.ndim == 1
    if a.ndim < 2 or b.ndim == 0 or a.shape[-2] != b.shape[0 if vector else -2]:
        raise ValueError(
            f"lstsq: expected shapes (..., M, N) and (M,) or (..., M, K), got {a.shape} and "
            f"{b.shape}"
        )
    both = result_type(a, b)
    a, b = astype(a, both, copy=False), astype(b, both, copy=False)
    columns = b[:, None] if vector else b
    joined_batch("lstsq", a, columns)
    x, rank, values = _solution("lstsq", a, columns, rcond)
    (m, n), single = a.shape[-2:], a.ndim == 2 and columns.ndim == 2
    if single and (m <= n or int(rank) < n):
        sums = empty(0, dtype=values.dtype, device=a.device)
    else:
        rest = columns - matmul(a, x)
        squares = rest.real * rest.real + rest.imag * rest.imag if both.kind == "c" else rest * rest
        sums = total(squares, axis=-2)
    return x[..., 0] if vector else x, sums, rank, values


def _solution(name: str, a: Array, b: Array, rcond: float | None) -> tuple[Array, Array, Array]:
    """Return the solutions, the ranks and the singular values."""
    if isinstance(rcond, Real) and rcond < 0:
        rcond = float(finfo(a.dtype).eps)
    tolerance = relative_tolerance(f"{name}: rcond", a, rcond)
    left, values, right = svd_of(name, a)
    kept = values > tolerance * greatest_or_zero(values, (-1,), True)
    inverse = where(kept, 1 / where(kept, values, 1.0), 0.0)
    # The gradient of the pseudoinverse, unlike that of the vectors, is finite for equal singular
    # values.
    if follows([a]):
        x = matmul(pinv(a, rtol=rcond), b)
    else:
        x = matmul(adjoint(right), inverse[..., :, None] * matmul(adjoint(left), b))
    return x, count_nonzero(kept, axis=-1), values


def polyfit(x: Array, y: Array, deg: int, rcond: float | None = None) -> Array:
    """Fit a polynomial to points by least squares.

    Parameters
    ----------
    x : Array
        The points, of shape (M,).
    y : Array
        Their values, of shape (M,), or (M, K) for K polynomials.
    deg : int
        The degree.
    rcond : float, optional
        As for :func:`lstsq`. Default: ``M * finfo(x.dtype).eps``.

    Returns
    -------
    Array
        The coefficients, from the highest power to the constant, of shape (deg + 1,) or
        (deg + 1, K).

    Raises
    ------
    TypeError, ValueError
        x or y is not an Array of such a shape, or the degree is negative.

    Notes
    -----
    The arguments are the first ones of NumPy's ``numpy.polyfit``.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([0.0, 1.0, 2.0])
    >>> bool(cyrt.max(abs(cyrt.linalg.polyfit(x, 2 * x + 1, 1) - cyrt.asarray([2.0, 1.0]))) < 1e-5)
    True
    """
    x, y = _checked(x, "polyfit", "x"), _checked(y, "polyfit", "y")
    degree = int_of(deg, "polyfit: deg")
    if degree < 0:
        raise ValueError(f"polyfit: deg: expected at least 0, got {degree}")
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or x.shape[0] == 0:
        raise ValueError(
            f"polyfit: expected shapes (M,) and (M,) or (M, K), got {x.shape} and {y.shape}"
        )
    limit = x.shape[0] * float(finfo(x.dtype).eps) if rcond is None else rcond
    both = result_type(x, y)
    x, y = astype(x, both, copy=False), astype(y, both, copy=False)
    exponents = asarray(np.arange(degree, -1, -1), device=x.device)
    powers = x[:, None] ** astype(exponents, x.dtype)
    # Columns of norm 1 make the system better conditioned.
    sizes = sqrt(total(magnitude(powers) ** 2, axis=0))
    sizes = where(sizes == 0, 1.0, sizes)
    found = _solution("polyfit", powers / sizes, y if y.ndim == 2 else y[:, None], limit)[0]
    found = found / sizes[:, None]
    return found[:, 0] if y.ndim == 1 else found


def roots(p: Array) -> Array:
    """Compute the roots of a polynomial.

    Parameters
    ----------
    p : Array
        The coefficients, from the highest power to the constant, of shape (N,); integers are
        converted to float32.

    Returns
    -------
    Array
        The complex roots, in no order. Leading zeros of p lower the degree.

    Raises
    ------
    TypeError, ValueError
        p is not an Array of one dimension.

    Notes
    -----
    The number of roots depends on the values of p, so the call waits for them. The roots are the
    eigenvalues of the companion matrix, as in NumPy's ``numpy.roots``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.sort(cyrt.linalg.roots(cyrt.asarray([1.0, -3.0, 2.0])).real).round(3)
    Array([1., 2.], dtype=float32)
    """
    p = _checked(p, "roots", "p")
    if p.ndim != 1:
        raise ValueError(f"roots: p: expected one dimension, got shape {p.shape}")
    kind = "complex64" if p.dtype in ("float32", "complex64") else "complex128"
    (filled,) = detach(p).numpy().nonzero()
    if not len(filled):
        return empty(0, dtype=kind, device=p.device)
    first, last = int(filled[0]), int(filled[-1])
    degree, zeros_at_0 = last - first, p.shape[0] - 1 - last
    found = empty(0, dtype=kind, device=p.device)
    if degree:
        companion = zeros((degree, degree), dtype=p.dtype, device=p.device)
        companion[0] = -p[first + 1 : last + 1] / p[first]
        if degree > 1:
            companion[1:, :-1] += asarray(np.eye(degree - 1), dtype=p.dtype, device=p.device)
        found = eigenvalues_of("roots", companion)
    return concat([found, zeros(zeros_at_0, dtype=kind, device=p.device)])
