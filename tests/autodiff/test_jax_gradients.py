"""Gradients beside JAX's, in float64 and complex128."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt import nn

jax = pytest.importorskip("jax", reason="compares with JAX, which is not installed")
jnp = jax.numpy
RNG = np.random.default_rng(6)
X64 = "jax_enable_x64"


@pytest.fixture(autouse=True, scope="module")
def wide_types():
    """JAX computes in float32 unless it is told otherwise, which is a setting of the process; here
    it computes on the CPU."""
    before = jax.config.read(X64)
    jax.config.update(X64, True)
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        yield
    jax.config.update(X64, before)


def normal(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    return RNG.uniform(0.3, 2.0, shape)


def complex_normal(*shape):
    return normal(*shape) + 1j * normal(*shape)


def symmetric(n):
    x = normal(n, n)
    return x @ x.T + np.eye(n)


ROWS = np.array([[1, 0, 3], [3, 3, 1]])
CASES: dict[str, list] = {}


def case(name, ours, theirs, *arrays):
    CASES.setdefault(name, []).append((ours, theirs, arrays))


def both(name, function, *arrays):
    """A function of the module, cyrt or jax.numpy, and of the arrays."""
    ours, theirs = (lambda *args, m=module: function(m, *args) for module in (cyrt, jnp))
    case(name, ours, theirs, *arrays)


# -- complex numbers: JAX has no gradient of their sign, and cyrt no variance of them --------------

for _name in (
    *("abs", "angle", "conj", "cos", "cosh", "exp", "expm1", "imag", "log", "log1p", "negative"),
    *("real", "reciprocal", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
):
    both(_name, lambda m, z, n=_name: getattr(m, n)(z), complex_normal(3, 4))
for _name in ("add", "divide", "matmul", "multiply", "subtract"):
    both(
        _name, lambda m, x, y, n=_name: getattr(m, n)(x, y), complex_normal(3, 3), complex_normal(3)
    )
    both(_name, lambda m, x, y, n=_name: getattr(m, n)(x, y), normal(3, 3), complex_normal(3))
both("pow", lambda m, z: z**3 + z**-2, complex_normal(4))
both("pow", lambda m, x, y: x**y, complex_normal(4), complex_normal(4))
both("pow", lambda m, x, y: x**y, positive(4), complex_normal(4))
both("prod", lambda m, z: m.prod(z, axis=1), complex_normal(3, 4))
both("mean", lambda m, z: m.mean(z, axis=0), complex_normal(3, 4))
both("cumsum", lambda m, z: m.cumsum(z, axis=1), complex_normal(3, 4))
both("cumprod", lambda m, z: m.cumprod(z, axis=1), complex_normal(2, 4))
both("einsum", lambda m, x, y: m.einsum("ij,kj->ik", x, m.conj(y)), *[complex_normal(2, 3)] * 2)
both("vdot", lambda m, x, y: m.vdot(x, y), complex_normal(4), complex_normal(4))
both("where", lambda m, x, y: m.where(x.real > 0, x, y), complex_normal(5), complex_normal(5))
both("astype", lambda m, x: x.astype("complex128") * (2.0 - 1.0j), normal(4))
both("getitem", lambda m, z: z[1:, ::-1].T * z.real[:2, :1], complex_normal(4, 2))
for _name in ("fft", "ifft", "fft2", "fftshift"):
    both(_name, lambda m, z, n=_name: getattr(m.fft, n)(z), complex_normal(3, 5))
for _n in (6, 5):
    both("rfft", lambda m, x: m.fft.rfft(x), normal(2, _n))
    both("irfft", lambda m, z, n=_n: m.fft.irfft(z, n=n), complex_normal(2, _n // 2 + 1))
both("hfft", lambda m, z: m.fft.hfft(z), complex_normal(4))
for _name in ("det", "inv"):
    both(_name, lambda m, z, n=_name: getattr(m.linalg, n)(z), complex_normal(3, 3))
both("solve", lambda m, a, b: m.linalg.solve(a, b), complex_normal(3, 3), complex_normal(3, 2))
both("norm", lambda m, z: m.linalg.norm(z, axis=1), complex_normal(3, 4))
both("slogdet", lambda m, z: m.linalg.slogdet(z)[1], complex_normal(3, 3))
both("eigh", lambda m, z: m.linalg.eigh(z @ m.conj(z.T))[0], complex_normal(3, 3))
both("svd", lambda m, z: m.linalg.svd(z, full_matrices=False)[1], complex_normal(4, 3))
both(
    "cholesky", lambda m, z: m.linalg.cholesky(z @ m.conj(z.T) + 3 * m.eye(3)), complex_normal(3, 3)
)

# -- real numbers ----------------------------------------------------------------------------------

for _name, _values in {
    "arccos": lambda *shape: RNG.uniform(-0.8, 0.8, shape),
    "arcsinh": normal,
    "cbrt": positive,
    "exp2": normal,
    "log10": positive,
    "log2": positive,
    "sinc": normal,
    "sort": normal,
    "deg2rad": normal,
    "nan_to_num": normal,
    "ravel": normal,
    "ptp": normal,
    "median": normal,
}.items():
    both(_name, lambda m, x, n=_name: getattr(m, n)(x), _values(3, 5))
for _name in ("arctan2", "fmax", "fmod", "hypot", "kron", "logaddexp2", "remainder"):
    both(_name, lambda m, x, y, n=_name: getattr(m, n)(x, y), positive(3, 4), positive(3, 4))
both("convolve", lambda m, x, y: m.convolve(x, y, mode="same"), normal(6), normal(3))
both("corrcoef", lambda m, x: m.corrcoef(x), normal(3, 6))
both("cov", lambda m, x: m.cov(x), normal(3, 6))
both("cross", lambda m, x, y: m.cross(x, y), normal(2, 3), normal(2, 3))
both("diff", lambda m, x: m.diff(x, 2, axis=0), normal(5, 2))
both("gradient", lambda m, x: m.gradient(x, axis=1), normal(3, 5))
both("interp", lambda m, x, y: m.interp(x, m.arange(3.0), y), positive(5), normal(3))
both("nanmean", lambda m, x: m.nanmean(m.where(x > 1, m.nan, x), axis=0), normal(6, 3))
both("percentile", lambda m, x: m.percentile(x, 30.0, axis=1), normal(3, 8))
both("polyval", lambda m, p, x: m.polyval(p, x), normal(3), normal(4))
both("quantile", lambda m, x, q: m.quantile(x, q), normal(8), np.array(0.37))
both("take", lambda m, x: m.take(x, m.asarray(ROWS), axis=1), normal(2, 4))
both("tensordot", lambda m, x, y: m.tensordot(x, y, 2), normal(2, 3, 4), normal(3, 4, 5))
both("trapezoid", lambda m, x: m.trapezoid(x, dx=0.5), normal(3, 5))
both("tril", lambda m, x: m.tril(x, -1) + m.triu(x), normal(4, 4))
both("vander", lambda m, x: m.vander(x, 4), normal(3))
for _name in ("cholesky", "det", "inv", "pinv"):
    both(_name, lambda m, x, n=_name: getattr(m.linalg, n)(x), symmetric(3))
both("eigh", lambda m, x: m.linalg.eigh(x)[0], symmetric(4))
both("solve", lambda m, a, b: m.linalg.solve(a, b), symmetric(3), normal(3))
both("qr", lambda m, x: m.linalg.qr(x)[1] ** 2, normal(4, 3))
both("norm", lambda m, x: m.linalg.norm(x, ord=3, axis=1), normal(3, 4))
both("matrix_power", lambda m, x: m.linalg.matrix_power(x, 3), normal(3, 3))
case("expm", cyrt.linalg.expm, lambda x: jax.scipy.linalg.expm(x), normal(3, 3))
for _name in (
    *("elu", "glu", "leaky_relu", "log_softmax", "relu", "selu", "sigmoid", "silu", "softmax"),
    "softplus",
):
    case(_name, getattr(nn, _name), getattr(jax.nn, _name), normal(4, 6))
case("gelu", nn.gelu, lambda x: jax.nn.gelu(x, approximate=False), normal(4, 6))
case("gelu_tanh", nn.gelu_tanh, jax.nn.gelu, normal(4, 6))
case("logsumexp", lambda x: nn.logsumexp(x, 1), lambda x: jax.nn.logsumexp(x, axis=1), normal(4, 6))


def masked_attention(q, k, v):
    scores = jnp.where(jnp.tri(5, dtype=bool), q @ k.mT / q.shape[-1] ** 0.5, -jnp.inf)
    return jax.nn.softmax(scores) @ v


case(
    "attention",
    lambda q, k, v: nn.attention(q, k, v, mask="causal"),
    masked_attention,  # JAX's own computes in float32
    *(normal(2, 3, 5, 4) for _ in range(3)),
)
case(
    "conv2d",
    lambda x, w: nn.conv2d(x, w, stride=2, padding=1),
    lambda x, w: jax.lax.conv_general_dilated(
        x, w, (2, 2), [(1, 1), (1, 1)], dimension_numbers=("NHWC", "OHWI", "NHWC")
    ),
    normal(2, 6, 5, 3),
    normal(4, 3, 3, 3),
)


def result_weights(result):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(result.shape)
    if result.dtype.kind == "c":
        weights = weights + 1j * rng.standard_normal(result.shape)
    return weights


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_are_those_of_jax(name):
    """Those of the real part of a weighted sum."""
    for ours, theirs, arrays in CASES[name]:
        weights = result_weights(np.asarray(theirs(*map(jnp.asarray, arrays))))
        argnums = tuple(range(len(arrays)))
        wanted_value, wanted = jax.value_and_grad(
            lambda *args, f=theirs, w=weights: jnp.sum(f(*args) * w).real, argnums
        )(*map(jnp.asarray, arrays))
        value, gradients = cyrt.value_and_grad(
            lambda *args, f=ours, w=weights: cyrt.sum(f(*args) * cyrt.asarray(w)).real, argnums
        )(*map(cyrt.asarray, arrays))
        np.testing.assert_allclose(value.item(), wanted_value, rtol=1e-9, atol=1e-9)
        for found, want in zip(gradients, wanted, strict=True):
            assert found.dtype == want.dtype
            np.testing.assert_allclose(found.numpy(), want, rtol=1e-9, atol=1e-10)


def test_second_gradients_are_those_of_jax():
    x, v = normal(5), normal(5)

    def f(m, x):
        return (m.sin(x) * m.exp(m.cumsum(x)) / (1 + x[::-1] ** 2)).sum()

    def product(library, m, x, v):
        return library.grad(lambda x: (library.grad(lambda x: f(m, x))(x) * v).sum())(x)

    found = product(cyrt, cyrt, cyrt.asarray(x), cyrt.asarray(v))
    wanted = product(jax, jnp, jnp.asarray(x), jnp.asarray(v))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10)


def test_arguments_of_a_nest_have_the_gradients_of_jax():
    params = {"w": [normal(3, 2), normal(2)], "b": (normal(2), normal())}

    def loss(m, params):
        (w, scale), (b, shift) = params["w"], params["b"]
        hidden = m.tanh(m.asarray(ROWS) @ w + b) * scale
        return (hidden**2).mean() + shift * hidden[0, 1]

    found = cyrt.grad(lambda p: loss(cyrt, p))(cyrt.tree_map(cyrt.asarray, params))
    wanted = jax.grad(lambda p: loss(jnp, p))(jax.tree.map(jnp.asarray, params))
    for each, want in zip(*(jax.tree.leaves(nest) for nest in (found, wanted)), strict=True):
        np.testing.assert_allclose(each.numpy(), want, rtol=1e-10, atol=1e-14)


def test_a_pull_back_of_complex_numbers_is_that_of_jax():
    z, w = complex_normal(4), complex_normal(4)

    def f(m, z):
        return m.exp(z) * m.conj(z)

    found = cyrt.vjp(lambda z: f(cyrt, z), cyrt.asarray(z))[1](cyrt.asarray(w))[0]
    wanted = jax.vjp(lambda z: f(jnp, z), jnp.asarray(z))[1](jnp.asarray(w))[0]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
