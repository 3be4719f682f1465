"""Distributions with parameters: goodness of fit to SciPy's distribution functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import cyrt
from cyrt import random

N = 20_000
# One key in 10,000 gives a lower probability although its numbers are right.
LEAST = 1e-4


def host(x):
    return x.numpy().astype(np.float64)


def fits(sample, distribution):
    assert stats.kstest(host(sample).ravel(), distribution.cdf).pvalue > LEAST


def fits_counts(sample, distribution):
    """Pearson's test over cells of an expected number of 20 and more."""
    counts = sample.numpy().ravel()
    edges = np.unique(distribution.ppf(np.linspace(0, 1, 60)[1:-1]))
    chances = np.diff(np.concatenate([[0], distribution.cdf(edges), [1]]))
    found = np.bincount(np.searchsorted(edges, counts), minlength=len(chances))
    wanted = chances * counts.size
    keep = wanted >= 20
    assert found[~keep].sum() <= 5 * max(1, wanted[~keep].sum()) + 20
    found, wanted = found[keep], wanted[keep]
    assert stats.chisquare(found, wanted * found.sum() / wanted.sum()).pvalue > LEAST


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [0.1, 0.7, 1.0, 2.5, 40.0, 1e4])
def test_gamma(shape, dtype):
    x = random.gamma(shape, 2.0, N, dtype=dtype, key=random.key(3))
    assert x.dtype == dtype
    fits(x, stats.gamma(shape, scale=2))


def test_gamma_of_a_small_shape_does_not_vanish():
    x = host(random.gamma(0.02, size=N, dtype="float64", key=random.key(1)))
    assert (x > 0).mean() > 0.99
    assert stats.kstest(x, stats.gamma(0.02).cdf).pvalue > LEAST


def test_16_bit_gamma():
    for dtype in ("float16", "bfloat16"):
        x = random.gamma(3.0, size=N, dtype=dtype, key=random.key(1))
        assert x.dtype == dtype
        assert abs(host(x).mean() - 3) < 0.05


def test_chisquare_beta_laplace_gumbel():
    key = random.key(5)
    fits(random.chisquare(3, N, key=key), stats.chi2(3))
    fits(random.beta(0.3, 0.6, N, key=key), stats.beta(0.3, 0.6))
    fits(random.beta(20, 3, N, key=key), stats.beta(20, 3))
    fits(random.laplace(1, 3, N, key=key), stats.laplace(1, 3))
    fits(random.laplace(size=N, dtype="float64", key=key), stats.laplace())
    fits(random.gumbel(-1, 2, N, key=key), stats.gumbel_r(-1, 2))


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 9.99, 10.0, 37.5, 1e4, 1e9])
def test_poisson(mean):
    x = random.poisson(mean, N, key=random.key(2))
    assert x.dtype == "int64"
    if mean == 0:
        assert not cyrt.any(x)
    else:
        fits_counts(x, stats.poisson(mean))


def fits_normal(counts, mean, deviation):
    fits(cyrt.asarray((counts.numpy() - mean) / deviation), stats.norm)


@pytest.mark.parametrize("mean", [1e14, 1e16, 2.0**61])
def test_poisson_of_a_large_mean(mean):
    fits_normal(random.poisson(mean, N, key=random.key(2)), mean, mean**0.5)


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.3),
        (20, 0.5),
        (20, 0.9),
        (100, 0.02),
        (100, 0.4),
        (1000, 0.7),
        (10**6, 0.3),
        (40, 0.25),
    ],
)
def test_binomial(n, p):
    x = random.binomial(n, p, N, key=random.key(4))
    assert x.numpy().min() >= 0
    assert x.numpy().max() <= n
    fits_counts(x, stats.binom(n, p))


@pytest.mark.parametrize(("n", "p"), [(10**15, 1e-9), (2**52, 0.5), (2**53 - 1, 0.9)])
def test_binomial_of_many_trials(n, p):
    x = random.binomial(n, p, N, key=random.key(4))
    fits_normal(x, n * p, (n * p * (1 - p)) ** 0.5)


def test_binomial_at_its_ends():
    assert not cyrt.any(random.binomial(7, 0.0, 100))
    assert cyrt.all(random.binomial(7, 1.0, 100) == 7)
    assert not cyrt.any(random.binomial(0, 0.5, 100))


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9])
def test_geometric(p):
    x = random.geometric(p, N, key=random.key(4))
    assert x.numpy().min() >= 1
    fits_counts(x, stats.geom(p))


def test_geometric_at_its_ends():
    assert cyrt.all(random.geometric(1.0, 100) == 1)
    x = random.geometric(1e-300, 100).numpy()
    assert (x == 2**63 - 1).all()
    x = host(random.geometric(1e-12, 4000, key=random.key(2))) * 1e-12
    assert stats.kstest(x, stats.expon.cdf).pvalue > LEAST


def test_lognormal():
    x = random.lognormal(1.0, 0.5, N, dtype="float64", key=random.key(4))
    fits(x, stats.lognorm(0.5, scale=np.e))
    assert random.lognormal(2.0, 0.0).item() == pytest.approx(np.exp(2.0))
    # The parameters have gradients.
    grads = cyrt.grad(lambda mean: random.lognormal(mean, 0.5, key=random.key(1)))
    found = random.lognormal(0.25, 0.5, key=random.key(1)).item()
    assert grads(cyrt.asarray(0.25)).item() == pytest.approx(found)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_multinomial(k):
    n, p = 12, np.arange(1.0, k + 1) / np.arange(1.0, k + 1).sum()
    x = random.multinomial(n, p.tolist(), 4000, key=random.key(4))
    assert x.shape == (4000, k)
    counts = x.numpy()
    assert (counts.sum(-1) == n).all()
    assert counts.min() >= 0
    for i in range(k):
        if p[i] < 1:
            fits_counts(x[:, i], stats.binom(n, p[i]))
    exact = stats.multinomial(n, p)
    found = np.cov(counts.T).reshape(k, k)
    assert np.allclose(found, exact.cov(), atol=0.25)


def test_multinomial_at_its_ends():
    x = random.multinomial(9, [0.0, 0.5, 0.0, 0.5, 0.0], 500, key=random.key(1)).numpy()
    assert not x[:, [0, 2, 4]].any()
    assert random.multinomial(4, [0.0, 1.0, 0.0]).tolist() == [0, 4, 0]
    assert random.multinomial(0, [0.5, 0.5]).tolist() == [0, 0]
    assert random.multinomial(2**52, [1.0]).tolist() == [2**52]


def test_multinomial_of_arrays():
    # Those of an array are divided by their sum.
    pvals = cyrt.asarray([[1.0, 1.0, 2.0], [0.0, 3.0, 0.0]])
    x = random.multinomial(cyrt.asarray([8, 5]), pvals, (1000, 2), dtype="int32")
    assert (x.dtype, x.shape) == ("int32", (1000, 2, 3))
    assert (x.sum(-1) == cyrt.asarray([8, 5])).all()
    assert np.allclose(x[:, 0].numpy().mean(0), [2, 2, 4], atol=0.3)
    assert (x[:, 1] == cyrt.asarray([0, 5, 0])).all()
    wrong = cyrt.asarray([[0.5, -0.5], [np.nan, 1.0], [0.0, 0.0], [np.inf, 1.0], [1.0, 0.0]])
    found = random.multinomial(3, wrong).tolist()
    assert found == [[-1, -1]] * 4 + [[3, 0]]
    assert random.multinomial(cyrt.asarray([-1, 2]), [1.0, 0.0]).tolist() == [[-1, -1], [2, 0]]


def test_dirichlet():
    alpha = [0.2, 1.0, 3.0]
    x = random.dirichlet(alpha, N, key=random.key(6))
    assert x.shape == (N, 3)
    assert np.allclose(host(x).sum(-1), 1, atol=1e-5)
    for i, each in enumerate(alpha):
        fits(x[:, i], stats.beta(each, sum(alpha) - each))
    # The sum is 1 also of numbers whose logarithms are large.
    x = random.dirichlet([1e-3, 2e-3], N, key=random.key(6))
    assert np.allclose(host(x).sum(-1), 1, atol=1e-6)
    assert np.allclose(host(x).mean(0), [1 / 3, 2 / 3], atol=0.02)
    several = cyrt.asarray([[1.0, 1.0], [30.0, 10.0]])
    x = host(random.dirichlet(several, (4000, 2), key=random.key(6)))
    assert x.shape == (4000, 2, 2)
    assert np.allclose(x.mean(0), [[0.5, 0.5], [0.75, 0.25]], atol=0.02)


def test_multivariate_normal():
    mean, cov = np.array([1.0, -2.0, 0.0]), np.array([[2, 1, 0], [1, 3, -1], [0, -1, 1.0]])
    for given in (lambda each: each.tolist(), cyrt.asarray):
        x = host(random.multivariate_normal(given(mean), given(cov), N, key=random.key(8)))
        assert x.shape == (N, 3)
        assert np.allclose(x.mean(0), mean, atol=0.05)
        assert np.allclose(np.cov(x.T), cov, atol=0.12)
        whitened = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
        assert stats.kstest((whitened**2).sum(0), stats.chi2(3).cdf).pvalue > LEAST
    # A semidefinite matrix: the two numbers are equal.
    x = host(random.multivariate_normal([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 50))
    assert np.allclose(x[:, 0], x[:, 1], atol=1e-5)
    assert random.multivariate_normal([0.0], [[1.0]]).shape == (1,)


def test_parameters_that_are_arrays():
    means = cyrt.asarray([0.5, 8.0, 300.0])
    x = random.poisson(means, (N, 3), key=random.key(9))
    for i, each in enumerate((0.5, 8.0, 300.0)):
        fits_counts(x[:, i], stats.poisson(each))
    shapes = cyrt.asarray([[0.5], [5.0]])
    x = random.gamma(shapes, cyrt.asarray([1.0, 10.0]), key=random.key(9))
    assert x.shape == (2, 2)
    x = random.gamma(shapes[:, 0], cyrt.asarray([1.0, 10.0]), (N, 2), key=random.key(9))
    fits(x[:, 0], stats.gamma(0.5))
    fits(x[:, 1], stats.gamma(5.0, scale=10))
    counts = cyrt.asarray([3, 500], dtype="int32")
    x = random.binomial(counts, 0.4, (N, 2), key=random.key(9))
    fits_counts(x[:, 0], stats.binom(3, 0.4))
    fits_counts(x[:, 1], stats.binom(500, 0.4))


def test_invalid_elements_of_arrays():
    wrong = cyrt.asarray([-1.0, np.nan, np.inf, 2.0])
    assert np.isnan(random.gamma(wrong).numpy()).tolist() == [True, True, True, False]
    found = random.poisson(wrong).numpy()
    assert found[:3].tolist() == [-1, -1, -1]
    assert found[3] >= 0
    found = random.binomial(cyrt.asarray([5.0, 5.0, -1.0]), cyrt.asarray([-0.1, 1.5, 0.5]))
    assert found.tolist() == [-1, -1, -1]
    found = random.geometric(cyrt.asarray([0.0, -0.5, 1.5, np.nan, 1.0]))
    assert found.tolist() == [-1, -1, -1, -1, 1]


CALLS = [
    (random.gamma, (2.0,)),
    (random.chisquare, (3.0,)),
    (random.beta, (1.0, 2.0)),
    (random.dirichlet, ([1.0, 2.0],)),
    (random.poisson, (30.0,)),
    (random.binomial, (50, 0.4)),
    (random.geometric, (0.1,)),
    (random.multinomial, (50, [0.5, 0.5])),
    (random.lognormal, ()),
    (random.laplace, ()),
    (random.gumbel, ()),
    (random.multivariate_normal, ([0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])),
]


@pytest.mark.parametrize(
    ("function", "args"), CALLS, ids=lambda each: getattr(each, "__name__", "")
)
def test_keys_and_generators(function, args):
    """Numbers depend on the key and their index alone."""
    key, other = random.split(random.key(11))
    first = function(*args, size=100, key=key).numpy()
    assert np.array_equal(function(*args, size=100, key=key).numpy(), first)
    assert np.array_equal(function(*args, size=60, key=key).numpy(), first[:60])
    assert not np.array_equal(function(*args, size=100, key=other).numpy(), first)
    name = function.__name__
    found = getattr(random.default_rng(7), name)(*args, size=5)
    again = random.default_rng(7)
    assert np.array_equal(getattr(again, name)(*args, size=5).numpy(), found.numpy())
    assert not np.array_equal(getattr(again, name)(*args, size=5).numpy(), found.numpy())
    random.seed(3)
    found = function(*args, size=5).numpy()
    random.seed(3)
    assert np.array_equal(function(*args, size=5).numpy(), found)
    assert function(*args).shape in ((), (2,))
    assert function(*args, size=(0, 4)).shape[:2] == (0, 4)


def test_counts_are_constants_and_other_parameters_have_no_gradient():
    p = cyrt.asarray([0.25, 0.75])
    for draw in (
        random.poisson,
        random.geometric,
        lambda p: random.binomial(5, p),
        lambda p: random.multinomial(5, p),
        lambda p: random.negative_binomial(p, p),
        lambda p: random.categorical(p, shape=2),
        random.bernoulli,
    ):

        def weighted(p, draw=draw):
            drawn = draw(p)
            return (drawn * p).sum(), drawn

        found, drawn = cyrt.grad(weighted, has_aux=True)(p)
        assert found.tolist() == drawn.tolist()
    assert cyrt.grad(lambda p: (random.binomial(1, p * 0.0 + 1.0) * p).sum())(p).tolist() == [1, 1]
    for draw, what in (
        (random.gamma, "gamma: shape"),
        (random.chisquare, "chisquare: df"),
        (random.standard_t, "standard_t: df"),
        (lambda p: random.f(1.0, p), "f: dfden"),
        (lambda p: random.beta(p, 1.0), "beta: a"),
        (random.dirichlet, "dirichlet: alpha"),
    ):
        with pytest.raises(TypeError, match=f"{what}: the numbers have no gradient"):
            cyrt.grad(lambda p, draw=draw: draw(p).sum())(p)


def test_what_is_refused():
    for call, message in (
        (lambda: random.gamma(0.0), "gamma: shape: expected more than 0, got 0.0"),
        (
            lambda: random.poisson(1.0, -1),
            "poisson: the result's shape: expected sizes of 0 or more",
        ),
        (lambda: random.gamma(1.0, -1.0), "gamma: scale: expected 0 or more, got -1.0"),
        (lambda: random.chisquare(-2), "chisquare: df: expected more than 0, got -2.0"),
        (lambda: random.beta(1.0, 0.0), "beta: b: expected more than 0, got 0.0"),
        (lambda: random.dirichlet([1.0, -1.0]), "dirichlet: alpha: expected more than 0, got -1.0"),
        (
            lambda: random.dirichlet(cyrt.asarray(1.0)),
            r"expected shape \(..., k\), k > 0, got \(\)",
        ),
        (lambda: random.poisson(-1.0), "poisson: lam: expected 0 or more, got -1.0"),
        (lambda: random.poisson(1e300), r"poisson: lam: expected 2\*\*62 or less, got 1e\+300"),
        (lambda: random.binomial(2.5, 0.5), "binomial: n: expected an integer below .*, got 2.5"),
        (lambda: random.binomial(2, 1.5), "binomial: p: expected a probability .*, got 1.5"),
        (lambda: random.geometric(0.0), "geometric: p: expected more than 0, got 0.0"),
        (lambda: random.geometric(1.5), "geometric: p: expected a probability above 0.*, got 1.5"),
        (lambda: random.lognormal(0.0, -1.0), "lognormal: sigma: expected 0 or more, got -1.0"),
        (lambda: random.multinomial(-1, [1.0]), "multinomial: n: expected 0 or more, got -1.0"),
        (lambda: random.multinomial(1.5, [1.0]), "multinomial: n: expected an integer below"),
        (lambda: random.multinomial(1, [0.5, 0.4]), "pvals: expected probabilities whose sum is 1"),
        (lambda: random.multinomial(1, [1.5, -0.5]), "of 0 or more, got -0.5"),
        (lambda: random.multinomial(1, []), r"pvals: expected shape \(..., k\), k > 0, got \(0,\)"),
        (
            lambda: (
                random.multinomial(1, cyrt.ones(3), (2, 2)).shape == (2, 2, 3)
                and random.multinomial(cyrt.ones(3, "int64"), [1.0], (2, 4))
            ),
            r"multinomial: shapes \(2, 4\), \(3,\)",
        ),
        (lambda: random.laplace(0.0, -1.0), "laplace: scale: expected 0 or more, got -1.0"),
        (lambda: random.gumbel(float("nan")), "gumbel: loc: expected a finite number, got nan"),
        (
            lambda: random.multivariate_normal([0.0], [[1.0, 0.0]]),
            r"mean of shape \(k,\) and cov of shape \(k, k\), got \(1,\) and \(1, 2\)",
        ),
        (
            lambda: random.multivariate_normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
            "expected a positive semidefinite matrix, its least eigenvalue is -1",
        ),
        (
            lambda: random.multivariate_normal([0.0, 0.0], [[1.0, 2.0], [0.0, 9.0]]),
            "expected a symmetric matrix",
        ),
        (
            lambda: random.gamma(cyrt.ones(3), size=(2, 4)),
            r"gamma: shapes \(2, 4\), \(3,\) do not broadcast",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="gamma: the result's shape: expected an int or a tuple"):
        random.gamma(1.0, 1.0, 2.5)
    with pytest.raises(
        TypeError, match="lam: expected a number or an Array, .* shape goes by name"
    ):
        random.poisson([1.0, 2.0])
    with pytest.raises(TypeError, match="dtype: expected a real floating type, got int64"):
        random.gamma(1.0, dtype="int64")
    with pytest.raises(TypeError, match="dtype: expected an integer type, got float32"):
        random.poisson(1.0, dtype="float32")
    with pytest.raises(TypeError, match="gamma: shape: expected a real type, got complex64"):
        random.gamma(cyrt.ones(3, dtype="complex64"))


@pytest.mark.parametrize(
    ("name", "parameters", "wanted"),
    [
        ("standard_cauchy", (), stats.cauchy()),
        ("standard_t", (3.0,), stats.t(3)),
        ("weibull", (1.5,), stats.weibull_min(1.5)),
        ("pareto", (2.5,), stats.lomax(2.5)),
        ("rayleigh", (2.0,), stats.rayleigh(scale=2)),
        ("logistic", (-1.0, 2.0), stats.logistic(-1, 2)),
        ("triangular", (-1.0, 2.0, 3.0), stats.triang(0.75, -1, 4)),
        ("f", (5.0, 7.0), stats.f(5, 7)),
        ("wald", (2.0, 3.0), stats.invgauss(2 / 3, scale=3)),
        ("exponential", (3.0,), stats.expon(scale=3)),
        ("vonmises", (0.5, 2.0), stats.vonmises(2, 0.5)),
    ],
)
def test_transformed(name, parameters, wanted):
    key = random.key(11)
    function = getattr(random, name)
    found = function(*parameters, size=N, key=key)
    assert found.dtype == "float32"
    fits(found, wanted)
    if parameters:
        arrays = [cyrt.full(3, each) for each in parameters]
        assert function(*arrays, key=key).shape == (3,)
        assert function(*arrays, size=(2, 3), dtype="float64", key=key).dtype == "float64"
        assert getattr(random.default_rng(1), name)(*parameters, 4).shape == (4,)
        with pytest.raises(ValueError, match=f"{name}: "):
            function(*(np.nan for _ in parameters))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_triangular_numbers(dtype):
    """Where the most probable number is the smallest, or the largest one."""
    key = cyrt.random.key(5)

    def f(left, mode, right):
        return cyrt.sum(cyrt.random.triangular(left, mode, right, (64,), dtype=dtype, key=key))

    u = cyrt.random.uniform(size=64, dtype=dtype, key=key).numpy().astype(float)
    up, down = np.sqrt(u).sum(), np.sqrt(1 - u).sum()
    for mode, expected in (
        (0.0, [down / 2, down / 2, 64 - down]),
        (2.0, [64 - up, up / 2, up / 2]),
    ):
        bounds = [cyrt.asarray(each, dtype=dtype) for each in (0.0, mode, 2.0)]
        found = [each.item() for each in cyrt.grad(f, (0, 1, 2))(*bounds)]
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("kappa", [0.0, 1e-6, 0.3, 40.0, 1e5, 1e8])
def test_vonmises(kappa):
    """Angles are counted from the mean, which is -3, in [-pi, pi]."""
    x = random.vonmises(cyrt.full(N, -3.0), kappa, dtype="float64", key=random.key(3)).numpy()
    assert (abs(x) <= np.pi).all()
    x = np.remainder(x + 3 + np.pi, 2 * np.pi) - np.pi
    wanted = stats.vonmises(kappa) if kappa else stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(x, wanted.cdf).pvalue > LEAST
    assert np.isnan(random.vonmises(0.0, cyrt.asarray([-1.0, np.inf, np.nan])).numpy()).all()


def test_negative_binomial():
    x = random.negative_binomial(4, 0.3, N, key=random.key(2))
    assert x.dtype == "int64"
    fits_counts(x, stats.nbinom(4, 0.3))
    assert random.negative_binomial(3, 1.0, 5).tolist() == [0] * 5
    with pytest.raises(ValueError, match="negative_binomial: p: expected 1 or less, got 2.0"):
        random.negative_binomial(3, 2.0)


def test_choice_without_replacement_by_probabilities():
    p = [0.5, 0.3, 0.2, 0.0]
    found = [random.choice(4, 2, False, p, key=random.key(i)).tolist() for i in range(300)]
    assert all(len(set(each)) == 2 and 3 not in each for each in found)
    assert abs(np.mean([each[0] == 0 for each in found]) - 0.5) < 0.12
    # The second is 1 after 0 with 0.3 / 0.5, and after 2 with 0.3 / 0.8.
    wanted = 0.5 * 0.6 + 0.2 * 0.375
    assert abs(np.mean([each[1] == 1 for each in found]) - wanted) < 0.12
    with pytest.raises(ValueError, match="4 elements cannot be chosen .* from 3 whose"):
        random.choice(4, 4, False, p)
