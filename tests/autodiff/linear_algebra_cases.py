"""Calls of the functions of cyrt.linalg and cyrt.fft: by name, functions of arrays and their
arguments. Results that depend on a choice, such as signs of vectors, are made independent of it."""

from __future__ import annotations

import numpy as np

import cyrt
from cyrt import fft, linalg

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def regular(*shape):
    """Matrices far from singular ones."""
    return normal(*shape) + 3 * np.eye(*shape[-2:])


def complex_regular(*shape):
    return complex_normal(*shape) + 3 * np.eye(*shape[-2:])


def adjoint(x):
    return cyrt.conj(x).mT


def hermitian(x):
    return x + adjoint(x)


def positive(x):
    return x @ adjoint(x) + cyrt.eye(x.shape[-1], dtype="float64")


def sizes(x):
    """What does not change with the phase of a complex number."""
    return (x * cyrt.conj(x)).real


CASES: dict[str, list] = {}


def case(name, function, *arrays, second=True):
    CASES.setdefault(name, []).append((function, arrays, second))


# -- cyrt.linalg -----------------------------------------------------------------------------------

for _make in (normal, complex_normal):
    case("linalg.cholesky", lambda x: linalg.cholesky(positive(x)), _make(2, 3, 3))
    case("linalg.cholesky", lambda x: linalg.cholesky(positive(x), upper=True), _make(3, 3))
    case("linalg.svd", lambda x: linalg.svd(x)[1], _make(2, 3), second=False)
    for _shape in ((3, 3), (4, 2), (2, 4)):
        case("linalg.svdvals", linalg.svdvals, _make(2, *_shape))
        case("linalg.svd", lambda x: sizes(linalg.svd(x, full_matrices=False).U), _make(*_shape))
        case("linalg.svd", lambda x: sizes(linalg.svd(x, full_matrices=False).Vh), _make(*_shape))
        case(
            "linalg.svd",
            lambda x, f=lambda u, s, vh: (u * cyrt.exp(s)) @ vh: f(
                *linalg.svd(x, full_matrices=False)
            ),
            _make(*_shape),
        )
        case("linalg.pinv", linalg.pinv, _make(*_shape))
    for _shape in ((2, 3, 3), (4, 2), (2, 4)):
        case("linalg.qr", linalg.qr, _make(*_shape))
        case("linalg.qr", lambda x: linalg.qr(x).Q, _make(*_shape))
        case("linalg.qr", lambda x: linalg.qr(x, mode="r"), _make(*_shape))
    case("linalg.eigh", lambda x: linalg.eigh(hermitian(x), "U")[0], _make(3, 3))
    case("linalg.eigh", lambda x: sizes(linalg.eigh(hermitian(x)).eigenvectors), _make(2, 3, 3))
    case(
        "linalg.eigh",
        lambda x, f=lambda w, v: (v * cyrt.exp(w)) @ adjoint(v): f(*linalg.eigh(hermitian(x))),
        _make(3, 3),
    )
    case("linalg.eigvalsh", lambda x: linalg.eigvalsh(hermitian(x)), _make(3, 3))
    case("linalg.eigvals", lambda x: linalg.eigvals(x) ** 2, _make(3, 3))
    case("linalg.eig", lambda x: sizes(linalg.eig(x).eigenvectors), _make(3, 3))
    case(
        "linalg.eig",
        lambda x, f=lambda w, v: (v * cyrt.exp(w)) @ linalg.inv(v): f(*linalg.eig(x)),
        _make(3, 3),
    )
for _make in (regular, complex_regular):
    case("linalg.inv", linalg.inv, _make(2, 3, 3))
    case("linalg.inv", lambda x: linalg.inv(x, check=False)[0], _make(3, 3))
    case("linalg.det", linalg.det, _make(2, 3, 3))
    case("linalg.slogdet", linalg.slogdet, _make(2, 3, 3))
    case("linalg.slogdet", lambda x: linalg.slogdet(x).logabsdet, _make(3, 3))
    case("linalg.solve", linalg.solve, _make(2, 1, 3, 3), _make(2, 3, 3))
    case("linalg.solve", lambda a, b: linalg.solve(a, b, check=False)[0], _make(2, 3, 3), normal(3))
    case("linalg.solve", lambda a: linalg.solve(a, cyrt.ones((3, 1))), _make(3, 3))
    for _lower in (False, True):
        for _trans in (0, 1, "C"):
            case(
                "linalg.solve_triangular",
                lambda a, b, k=(_lower, _trans): linalg.solve_triangular(
                    a, b, lower=k[0], trans=k[1], unit_diagonal=k[0]
                ),
                _make(2, 3, 3),
                _make(3, 2),
            )
    case("linalg.solve_triangular", linalg.solve_triangular, _make(3, 3), _make(3, 3)[0])
    _factors = linalg.lu_factor(cyrt.asarray(_make(2, 3, 3)))
    for _trans in (0, 1, 2):
        case(
            "linalg.lu_solve",
            lambda b, f=_factors, t=_trans: linalg.lu_solve(f, b, t),
            _make(3, 2) if _trans else normal(3),
        )
    for _n in (-2, 0, 1, 3):
        case("linalg.matrix_power", lambda x, n=_n: linalg.matrix_power(x, n), _make(3, 3))
    case("linalg.cond", linalg.cond, _make(2, 3, 3))
    case("linalg.cond", lambda x: linalg.cond(x, "fro"), _make(3, 3))
    case("linalg.expm", linalg.expm, _make(2, 2))
    case("linalg.tensorinv", lambda x: linalg.tensorinv(x.reshape(4, 2, 2), 1), _make(4, 4))
    case(
        "linalg.tensorsolve",
        lambda a, b: linalg.tensorsolve(a.reshape(2, 2, 4), b),
        _make(4, 4),
        _make(2, 2),
    )
    case("linalg.trace", linalg.trace, _make(2, 3, 3))
    case("linalg.diagonal", linalg.diagonal, _make(2, 3, 3))
for _make in (normal, complex_normal):
    for _ord in (0, 1, 2, 3.5, np.inf, -np.inf):
        case("linalg.vector_norm", lambda x, o=_ord: linalg.vector_norm(x, ord=o), _make(4))
        case(
            "linalg.vector_norm",
            lambda x, o=_ord: linalg.vector_norm(x, axis=(0, -1), ord=o, keepdims=True),
            _make(2, 3, 2),
        )
    for _ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        case("linalg.matrix_norm", lambda x, o=_ord: linalg.matrix_norm(x, ord=o), _make(2, 3, 2))
    case("linalg.norm", linalg.norm, _make(3, 2))
    case("linalg.norm", lambda x: linalg.norm(x, "nuc", (0, 2), keepdims=True), _make(3, 2, 2))
    case("linalg.multi_dot", lambda *x: linalg.multi_dot(x), _make(3), _make(3, 2), _make(2, 4))
    case("linalg.cross", linalg.cross, _make(2, 3), _make(3))
    case("linalg.outer", linalg.outer, _make(2), _make(3))
    case("linalg.lstsq", lambda a, b: linalg.lstsq(a, b)[:2], _make(5, 3), _make(5, 2))
    case("linalg.polyfit", lambda x, y: linalg.polyfit(x, y, 2), _make(6), _make(6))
case("linalg.roots", lambda p: linalg.roots(p) ** 2, np.array([1.0, -2.0, 3.0, 4.0]))
case("linalg.vector_norm", linalg.vector_norm, np.zeros(3), second=False)
case("linalg.pinv", lambda x: linalg.pinv(hermitian(x), hermitian=True), normal(3, 3))

# -- cyrt.fft --------------------------------------------------------------------------------------

for _name in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft"):
    _f = getattr(fft, _name)
    _make = normal if _name in ("rfft", "ihfft") else complex_normal
    for _n in (None, 3, 4, 7, 8):
        case(f"fft.{_name}", lambda x, f=_f, n=_n: f(x, n, norm="ortho"), _make(5))
    case(f"fft.{_name}", lambda x, f=_f: f(x, axis=0), normal(4, 2))
    case(f"fft.{_name}", lambda x, f=_f: f(x, axis=-2, norm="forward"), _make(3, 2))
for _name in ("fft", "ifft", "rfft", "irfft"):
    _make = normal if _name == "rfft" else complex_normal
    _f = getattr(fft, _name + "2")
    case(f"fft.{_name}2", _f, _make(2, 3, 4))
    case(f"fft.{_name}2", lambda x, f=_f: f(x, (4, 3), (1, 0), "ortho"), _make(3, 4))
    _f = getattr(fft, _name + "n")
    case(f"fft.{_name}n", _f, _make(2, 3, 3))
    case(f"fft.{_name}n", lambda x, f=_f: f(x, (5, -1)), _make(2, 3, 3))
    case(f"fft.{_name}n", lambda x, f=_f: f(x, (6, 2, 5), (1, 0, 1), "forward"), _make(3, 4))
case("fft.fftn", lambda x: fft.fftn(x, axes=()), normal(3))
case("fft.fftshift", fft.fftshift, normal(3, 4))
case("fft.ifftshift", lambda x: fft.ifftshift(x, 0), complex_normal(3, 4))
