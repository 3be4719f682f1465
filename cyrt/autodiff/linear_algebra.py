"""The gradients of factorizations of matrices, systems of equations, eigenvalues and norms.

The gradients of complex matrices are JAX's: nothing is conjugated. Where a function is not
holomorphic, the formula is written in the other convention (Giles, "Collected Matrix Derivative
Results", 2008): it takes the conjugates `_conj(g)` of gradients, and its result is conjugated. The
matrices of `cholesky` and `eigh` are Hermitian, and so are their gradients.

Failed matrices are reported by the functions themselves, and their gradients are NaN. Only the
gradients of `det` and `slogdet` report something: a singular matrix, which has no inverse.
"""

from __future__ import annotations

from typing import Any

from cyrt import tape
from cyrt.autodiff.adapting import sum_to
from cyrt.linalg import factorizations, least_squares, norms
from cyrt.linalg.blocked import adjoint
from cyrt.linalg.factorizations import inv, inverse_of, solve, solve_triangular
from cyrt.ndarray import Array
from cyrt.ops.creation import zeros
from cyrt.ops.functions import abs as magnitude
from cyrt.ops.functions import conj, equal, imag, real, sign
from cyrt.ops.grids import eye, tril, triu
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.shapes import expand_dims
from cyrt.ops.ternary import where
from cyrt.ops.views import diagonal

_Shape = tuple[int, ...]
_Several = list[Array | None]


def _conj(x: Array) -> Array:
    return conj(x) if x.dtype.kind == "c" else x


def _hermitian(x: Array) -> Array:
    return (x + adjoint(x)) * 0.5


def _identity(n: int, like: Array) -> Array:
    return eye(n, device=like.device)


def _without_info(value: Any, check: bool) -> Any:
    """Return a result, or its gradient, without `info`, which a call without check has, too."""
    return value if check else value[0]


# -- systems of equations --------------------------------------------------------------------------


def _inv(g: Any, check: bool, result: Any) -> Array:
    y = _without_info(result, check).mT
    return -matmul(y, matmul(_without_info(g, check), y))


def _solve(
    g: Any, x1: Array, x2_shape: _Shape, check: bool, result: Any, wanted: tuple[bool, bool]
) -> tuple[Array | None, Array | None]:
    g, x = _without_info(g, check), _without_info(result, check)
    if len(x2_shape) == 1:
        g, x = g[..., None], x[..., None]
    right = solve(x1.mT, g, check=False)[0]
    return (
        sum_to(-matmul(right, x.mT), x1.shape) if wanted[0] else None,
        _as_right_side(right, x2_shape) if wanted[1] else None,
    )


def _as_right_side(g: Array, shape: _Shape) -> Array:
    return sum_to(g[..., 0] if len(shape) == 1 else g, shape)


def _solve_triangular(
    g: Any,
    x1: Array,
    x2_shape: _Shape,
    lower: bool,
    trans: Any,
    unit_diagonal: bool,
    check: bool,
    result: Any,
    wanted: tuple[bool, bool],
) -> tuple[Array | None, Array | None]:
    g, x = _without_info(g, check), _without_info(result, check)
    if len(x2_shape) == 1:
        g, x = g[..., None], x[..., None]
    transposed, conjugated = trans not in (0, "N"), trans in (2, "C")
    right, _ = solve_triangular(
        x1,
        _conj(g) if conjugated else g,
        lower=lower,
        trans=0 if transposed else 1,
        unit_diagonal=unit_diagonal,
        check=False,
    )
    if conjugated:
        right = _conj(right)
    first = None
    if wanted[0]:
        first = matmul(x, right.mT) if transposed else matmul(right, x.mT)
        first = -(_conj(first) if conjugated else first)
        first = tril(first, -int(unit_diagonal)) if lower else triu(first, int(unit_diagonal))
        first = sum_to(first, x1.shape)
    return first, _as_right_side(right, x2_shape) if wanted[1] else None


def _lu_solve(g: Any, lu_and_pivots: Any, b_shape: _Shape, trans: int, check: bool) -> Array:
    g = _without_info(g, check)
    if len(b_shape) == 1:
        g = g[..., None]
    if trans == 2:
        right = _conj(factorizations.lu_solve(lu_and_pivots, _conj(g), 0, check=False)[0])
    else:
        right = factorizations.lu_solve(lu_and_pivots, g, 1 - trans, check=False)[0]
    return _as_right_side(right, b_shape)


tape.register(inv, "x", _inv)
tape.register(solve, ("x1", "x2"), _solve)
tape.register(solve_triangular, ("x1", "x2"), _solve_triangular)
tape.register(factorizations.lu_solve, "b", _lu_solve)
tape.refuse(
    factorizations.lu_factor, "the factors have no gradient; solve(), inv() and det() have one"
)


# -- determinants ----------------------------------------------------------------------------------


def _det(g: Array, x: Array, result: Array) -> Array:
    return (g * result)[..., None, None] * inverse_of("gradient of det", x).mT


def _slogdet(g: _Several, x: Array, result: Any) -> Array | None:
    factor = g[1]
    if x.dtype.kind == "c" and g[0] is not None:
        turned = imag(g[0] * result[0]) * 1j
        factor = turned if factor is None else factor + turned
    if factor is None:
        return None
    return factor[..., None, None] * inverse_of("gradient of slogdet", x).mT


tape.register(factorizations.det, "x", _det)
tape.register(factorizations.slogdet, "x", _slogdet)


# -- factorizations --------------------------------------------------------------------------------


def _cholesky(g: Any, upper: bool, check: bool, result: Any) -> Array:
    """Murray, "Differentiation of the Cholesky Decomposition", 2016, equation 10."""
    g, factor = _without_info(g, check), _without_info(result, check)
    lower, cotangent = (adjoint(factor), g.mT) if upper else (factor, _conj(g))
    part = tril(matmul(adjoint(lower), cotangent))
    inner = (part + adjoint(part)) * (0.5 - 0.25 * _identity(part.shape[-1], part))
    for _ in range(2):
        inner = adjoint(solve_triangular(lower, inner, lower=True, trans="C", check=False)[0])
    return _conj(inner)


def _square_qr(q: Array, r: Array, g_q: Array | None, g_r: Array | None) -> Array:
    """The gradient of matrices that have as many rows as columns, or more."""
    inner = None if g_r is None else matmul(g_r, adjoint(r))
    if g_q is not None:
        of_q = matmul(adjoint(q), g_q)
        inner = -of_q if inner is None else inner - of_q
    assert inner is not None
    part = triu(inner)
    both = matmul(q, (part + adjoint(part)) * (1.0 - 0.5 * _identity(part.shape[-1], part)))
    if g_q is not None:
        both = both + g_q
    return adjoint(solve_triangular(r, adjoint(both), check=False)[0])


def _qr(g: _Several, x_shape: _Shape, mode: str, result: Any) -> Array:
    """Walter and Lehmann, "Algorithmic Differentiation of Linear Algebra Functions with Application
    in Optimum Experimental Design", 2010. If there are more columns than rows, the further columns
    of R are products of Q's adjoint and those of x."""
    rows, columns = x_shape[-2:]
    if mode == "complete" and rows > columns:
        raise TypeError(
            f"qr: Q has no gradient for matrices of shape {(rows, columns)} with mode='complete'; "
            "use mode='reduced'"
        )
    q, r = result
    g_q, g_r = (None if each is None else _conj(each) for each in g)
    if columns <= rows:
        return _conj(_square_qr(q, r, g_q, g_r))
    further = None
    if g_r is not None:
        further = matmul(q, g_r[..., rows:])
        of_q = matmul(q, matmul(r[..., rows:], adjoint(g_r[..., rows:])))
        g_q = of_q if g_q is None else g_q + of_q
        g_r = g_r[..., :rows]
    first = _square_qr(q, r[..., :rows], g_q, g_r)
    if further is None:
        further = zeros((*x_shape[:-1], columns - rows), first.dtype, device=first.device)
    return _conj(concat([first, further], -1))


tape.register(factorizations.cholesky, "x", _cholesky)
tape.register(factorizations.qr, "x", _qr)


# -- eigenvalues and singular values ---------------------------------------------------------------


def _inverse_differences(values: Array, n: int) -> Array:
    """1 / (values[j] - values[i]) in row i and column j; 0 on the diagonal."""
    identity = _identity(n, values)
    return (1.0 - identity) / (values[..., None, :] - values[..., :, None] + identity)


def _eigh(g: _Several, check: bool, result: Any) -> Array:
    values, vectors = _without_info(result, check)
    n = vectors.shape[-1]
    inner = None
    if g[1] is not None:
        inner = matmul(adjoint(vectors), _conj(g[1])) * _inverse_differences(values, n)
    if g[0] is not None:
        of_values = g[0][..., None, :] * _identity(n, vectors)
        inner = of_values if inner is None else inner + of_values
    assert inner is not None
    return _conj(_hermitian(matmul(vectors, matmul(inner, adjoint(vectors)))))


def _eig(g: _Several, check: bool, result: Any) -> Array:
    """Boeddeker et al., "On the Computation of Complex-valued Gradients with Application to
    Statistically Optimum Beamforming", 2017, with vectors of norm 1."""
    values, vectors = _without_info(result, check)
    n, back = vectors.shape[-1], adjoint(vectors)
    inner = None
    if g[1] is not None:
        inner = matmul(back, _conj(g[1]))
        lengths = real(diagonal(inner, 0, -2, -1))
        inner = inner - matmul(back, vectors * lengths[..., None, :])
        inner = inner * conj(_inverse_differences(values, n))
    if g[0] is not None:
        of_values = conj(g[0])[..., None, :] * _identity(n, vectors)
        inner = of_values if inner is None else inner + of_values
    assert inner is not None
    return _conj(solve(back, matmul(inner, back), check=False)[0])


def _svd(g: _Several, x_shape: _Shape, full_matrices: bool, check: bool, result: Any) -> Array:
    """Townsend, "Differentiating the Singular Value Decomposition", 2016; complex matrices: Wan and
    Zhang, "Automatic Differentiation for Complex Valued SVD", 2019."""
    u, s, vh = _without_info(result, check)
    g_u, g_s, g_vh = (None if each is None else _conj(each) for each in g[:3])
    (rows, columns), k = x_shape[-2:], s.shape[-1]
    if full_matrices and ((rows > k and g_u is not None) or (columns > k and g_vh is not None)):
        raise TypeError(
            f"svd: U and Vh have no gradient for matrices of shape {(rows, columns)} with "
            "full_matrices=True; use full_matrices=False"
        )
    u, vh = u[..., :k], vh[..., :k, :]
    identity = _identity(k, s)
    inner = None if g_s is None else g_s[..., None, :] * identity
    sums = s[..., None, :] + s[..., :, None] + identity
    between = _inverse_differences(s, k) / sums
    if g_u is not None:
        of_u = matmul(adjoint(u), g_u)
        turned = of_u - adjoint(of_u)
        part = turned * between * s[..., None, :]
        inner = part if inner is None else inner + part
        if g_vh is not None and s.dtype != u.dtype:
            inner = inner + turned * (identity * 0.5 / s[..., None, :])
    if g_vh is not None:
        of_v = matmul(vh, adjoint(g_vh))
        part = (of_v - adjoint(of_v)) * between * s[..., :, None]
        inner = part if inner is None else inner + part
    assert inner is not None
    left = matmul(u, inner)
    if g_u is not None and rows > k:
        rest = g_u / s[..., None, :]
        left = left + rest - matmul(u, matmul(adjoint(u), rest))
    found = matmul(left, vh)
    if g_vh is not None and columns > k:
        rest = g_vh / s[..., :, None]
        found = found + matmul(u, rest - matmul(matmul(rest, adjoint(vh)), vh))
    return _conj(found)


tape.register(factorizations.eigh, "x", _eigh)
tape.register(factorizations.eig, "x", _eig)
tape.register(factorizations.svd, "x", _svd)


# -- pseudoinverses and norms ----------------------------------------------------------------------


def _pinv(g: Array, x: Array, hermitian: bool, result: Array) -> Array:
    """Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973: the rank is constant."""
    y, back = result, adjoint(result)
    g = _conj(g)
    h = adjoint(g)
    found = -matmul(back, matmul(g, back))
    first = matmul(h, matmul(y, back))
    found = found + first - matmul(x, matmul(y, first))
    second = matmul(matmul(back, y), h)
    found = found + second - matmul(second, matmul(y, x))
    return _conj(_hermitian(found) if hermitian else found)


def _norm(g: Array, x: Array, axes: _Shape, keepdims: bool, order: Any, result: Array) -> Array:
    """The gradient where the norm is 0 is taken as 0."""
    if not keepdims and x.ndim:
        g, result = expand_dims(g, axes), expand_dims(result, axes)
    size = where(equal(result, 0), 1.0, result)
    if order == 2:
        return g * (_conj(x) / size)
    power: Array = (magnitude(x) / size) ** (order - 1)
    return g * (power * _conj(sign(x)))


tape.register(least_squares.pinv, "x", _pinv)
tape.register(norms.norm_of_powers, "x", _norm)
