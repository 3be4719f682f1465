"""Distributions: the numbers of fixed keys against the distribution functions, and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cyrt
from cyrt import random

REALS = ["float16", "bfloat16", "float32", "float64"]
N = 40_000
# The limit of the statistics below, which one key in 10,000 exceeds although its numbers are right.
KS = 2.23


def ks(sample, distribution):
    """Kolmogorov's and Smirnov's statistic times the root of n."""
    x = np.sort(np.asarray(sample, np.float64).ravel())
    wanted = np.array([distribution(each) for each in x])
    steps = np.arange(len(x) + 1) / len(x)
    return math.sqrt(len(x)) * max(np.max(steps[1:] - wanted), np.max(wanted - steps[:-1]))


def chi_square(counts, wanted):
    """Pearson's, in standard deviations from its mean."""
    counts, wanted = np.asarray(counts, np.float64), np.asarray(wanted, np.float64)
    free = len(counts) - 1
    return (np.sum((counts - wanted) ** 2 / wanted) - free) / math.sqrt(2 * free)


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def host(x):
    return x.numpy().astype(np.float64)


# -- distributions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(3))
def test_uniform_is_uniform(dtype, seed):
    x = host(random.uniform(-1, 3, N, dtype=dtype, key=random.key(seed)))
    assert x.min() >= -1
    assert x.max() < 3
    assert ks(x, lambda x: (x + 1) / 4) < KS
    # Low bits, too: positions within cells of 2^-14.
    fine = host(random.uniform(shape=N, dtype=dtype, key=random.key(seed))) * 2**14 % 1
    assert abs(chi_square(np.histogram(fine, 64, (0, 1))[0], np.full(64, N / 64))) < 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(3))
def test_normal_is_normal(dtype, seed):
    x = host(random.normal(1, 2, N, dtype=dtype, key=random.key(seed)))
    assert ks((x - 1) / 2, phi) < KS
    z = host(random.normal(shape=2 * N, dtype=dtype, key=random.key(seed)))
    edges = np.array([-np.inf, -3, -2.5, -2, -1, -0.5, 0, 0.5, 1, 2, 2.5, 3, np.inf])
    chances = np.diff([phi(each) for each in edges])
    assert abs(chi_square(np.histogram(z, edges)[0], 2 * N * chances)) < 4
    # The two of a pair are independent: radius and angle.
    a, b = z[::2], z[1::2]
    assert ks(a * a + b * b, lambda r: 1 - math.exp(-r / 2)) < KS
    assert ks(np.arctan2(a, b), lambda angle: (angle + math.pi) / (2 * math.pi)) < KS


def test_normal_is_precise():
    """Against Box's and Muller's formulas in float64, of the same bits."""
    key = random.key(21)
    words = random.randint(0, 1 << 32, 1 << 16, dtype="uint32", key=key).numpy()
    first, second = words[::2], words[1::2]
    u = (first.astype(np.float32).astype(np.float64) / 2**32 + 2.0**-33).astype(np.float32)
    radius = np.sqrt(-2 * np.log(u.astype(np.float64)))
    radius = np.where(second >> 31, -radius, radius)
    angle = (second << np.uint32(2)).view(np.int32) * (math.pi / 4 / 2**31)
    turned = (second >> 30 & 1).astype(bool)
    wanted = np.stack(
        [
            radius * np.where(turned, np.sin(angle), np.cos(angle)),
            radius * np.where(turned, np.cos(angle), np.sin(angle)),
        ],
        1,
    )
    found = host(random.normal(shape=1 << 16, key=key)).reshape(-1, 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_normal_reaches_the_tails():
    z = host(random.normal(shape=1 << 20, key=random.key(0)))
    for bound in (3.5, 4.0, 4.5):
        wanted = z.size * 2 * phi(-bound)
        assert abs(np.sum(np.abs(z) > bound) - wanted) < 4 * math.sqrt(wanted), bound


@pytest.mark.parametrize("dtype", REALS)
def test_types_round_the_same_numbers(dtype):
    each = cyrt.dtypes.dtype(dtype).numpy
    key = random.key(9)
    for draw in (random.uniform, random.normal, random.truncated_normal):
        bounds = (-1.0, 2.5) if draw is random.truncated_normal else ()
        found = draw(*bounds, shape=1003, dtype=dtype, key=key)
        assert found.dtype == dtype
        assert found.shape == (1003,)
        if dtype in ("float16", "bfloat16"):
            wide = draw(*bounds, shape=1003, key=key).numpy()
            step = float(np.finfo(each).eps) if dtype == "float16" else 2.0**-7
            # Uniform numbers never round up to the bound.
            np.testing.assert_allclose(host(found), wide, rtol=step, atol=1e-7)
    assert host(random.uniform(shape=1 << 17, dtype=dtype, key=key)).max() < 1


@pytest.mark.parametrize(
    "bounds",
    [(-1.0, 2.0), (3.0, math.inf), (-math.inf, -6.0), (-30.0, 0.1), (10.0, 10.5), (-0.001, 0.001)],
)
def test_truncated_normal_is_the_part_between(bounds):
    low, high = bounds
    x = host(random.truncated_normal(low, high, 8000, dtype="float64", key=random.key(4)))
    assert x.min() >= low
    assert x.max() <= high
    side = -1 if low + high > 0 else 1
    low, high = sorted((side * low, side * high))
    assert ks(side * x, lambda x: (phi(x) - phi(low)) / (phi(high) - phi(low))) < KS


@pytest.mark.parametrize("p", [0.0, 1.0, 0.5, 0.3, 0.999])
def test_bernoulli_is_true_as_often(p):
    x = random.bernoulli(p, N, key=random.key(2))
    assert x.dtype == "bool"
    assert abs(x.numpy().sum() - p * N) <= 4 * math.sqrt(p * (1 - p) * N)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_integers_are_equally_likely(dtype):
    x = random.randint(3, 103, N, dtype=dtype, key=random.key(6))
    assert x.dtype == dtype
    assert abs(chi_square(np.bincount(x.numpy())[3:], np.full(100, N / 100))) < 4
    limits = np.iinfo(dtype)
    x = random.randint(limits.min, limits.max + 1, N, dtype=dtype, key=random.key(6)).numpy()
    bins = np.bincount(((x.astype(object) - limits.min) * 16 >> limits.bits).astype(int))
    assert abs(chi_square(bins, np.full(16, N / 16))) < 4


@pytest.mark.parametrize("count", [3 << 30, (1 << 32) - 1, 3 << 62, (1 << 32) + 1, 1 << 33])
def test_large_ranges_are_not_biased(count):
    """If nothing were drawn again, every third of 3 << 30 numbers would come twice as often."""
    dtype = "uint64" if count > 1 << 63 else "int64"
    x = random.randint(0, count, N, dtype=dtype, key=random.key(1)).numpy()
    bins = np.bincount((x.astype(object) * 24 // count).astype(int), minlength=24)
    assert bins.size == 24
    assert abs(chi_square(bins, np.full(24, N / 24))) < 4
    assert abs(chi_square(np.bincount((x % 3).astype(int)), np.full(3, N / 3))) < 5


# -- independence ----------------------------------------------------------------------------------


def correlation(a, b):
    """In standard deviations."""
    return np.corrcoef(a, b)[0, 1] * math.sqrt(len(a))


def test_numbers_of_a_key_do_not_tell_of_each_other():
    for draw in (random.uniform, random.normal):
        x = host(draw(shape=N, key=random.key(0)))
        for lag in (1, 2, 3, 4, 5, 7, 8, 16, 64, 128, 1024):
            assert abs(correlation(x[lag:], x[:-lag])) < 4, lag
    # Pairs fill the square.
    u = host(random.uniform(shape=2 * N, key=random.key(0)))
    cells = np.histogram2d(u[::2], u[1::2], 16, ((0, 1), (0, 1)))[0].ravel()
    assert abs(chi_square(cells, np.full(256, N / 256))) < 4


def test_numbers_of_related_keys_are_not_related():
    keys = [random.key(seed) for seed in (0, 1, 2, 1 << 32, 1 << 63)]
    keys += [*random.split(keys[0], 3), *random.split(keys[1], 3)]
    drawn = [host(random.uniform(shape=8000, key=key)) for key in keys]
    for i, a in enumerate(drawn):
        for b in drawn[:i]:
            assert abs(correlation(a, b)) < 4.5


# -- reproducible ----------------------------------------------------------------------------------

DRAWS = {
    "uniform": random.uniform,
    "normal": random.normal,
    "uniform64": lambda **args: random.uniform(dtype="float64", **args),
    "half": lambda **args: random.uniform(dtype="float16", **args),
    "truncated": lambda **args: random.truncated_normal(-1, 1, **args),
    "bernoulli": random.bernoulli,
    "bytes": lambda **args: random.randint(0, 200, dtype="uint8", **args),
    "integers": lambda **args: random.randint(0, 3 << 30, **args),
    "wide": lambda **args: random.randint(0, 3 << 61, **args),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_number_depends_on_its_place_alone(draw):
    """Not on how many there are, so not on the grid; nor on the shape or the batch."""
    key = random.key(77)
    whole = draw(shape=5000, key=key).numpy()
    for n in (0, 1, 2, 3, 5, 15, 17, 33, 1023, 4999):
        np.testing.assert_array_equal(draw(shape=n, key=key).numpy(), whole[:n])
    np.testing.assert_array_equal(draw(shape=(50, 100), key=key).numpy().ravel(), whole)
    with cyrt.batch():
        two = draw(shape=5000, key=key), draw(shape=(), key=key)
    np.testing.assert_array_equal(two[0].numpy(), whole)
    assert two[1].shape == ()
    assert two[1].numpy() == whole[0]


def test_grids_whose_threads_take_several_steps_give_the_same():
    key = random.key(5)
    n = (1 << 22) + 7  # beyond 2,048 blocks of 256 threads of 4
    x = random.randint(0, 1 << 16, n, dtype="uint32", key=key).numpy()
    np.testing.assert_array_equal(
        x[:4097], random.randint(0, 1 << 16, 4097, dtype="uint32", key=key).numpy()
    )
    assert abs(chi_square(np.bincount(x >> 8), np.full(256, n / 256))) < 4


def test_fixed_numbers():
    """What a key gives does not change from release to release."""
    key = random.key(2024)
    found = random.uniform(shape=4, key=key).numpy()
    np.testing.assert_array_equal(found, np.float32(UNIFORM))
    np.testing.assert_array_equal(random.normal(shape=4, key=key).numpy(), np.float32(NORMAL))
    np.testing.assert_array_equal(random.randint(0, 1000, 4, key=key).numpy(), INTEGERS)
    assert random.split(key)[0].bits == SPLIT


UNIFORM = [0.6036898493766785, 0.26856327056884766, 0.984598696231842, 0.08359599113464355]
NORMAL = [0.11691735684871674, 0.9978575706481934, 0.15243752300739288, 0.08834564685821533]
INTEGERS = [603, 268, 984, 83]
SPLIT = 0x2FB0945226BFA7A0


# -- arguments -------------------------------------------------------------------------------------


def test_parameters_that_are_arrays_are_broadcast():
    low = cyrt.asarray(np.array([[0.0], [10.0]], np.float32))
    high = cyrt.asarray(np.array([1.0, 2.0, 20.0], np.float32))
    x = random.uniform(low, high, (500, 2, 3), key=random.key(1)).numpy()
    assert x.shape == (500, 2, 3)
    wanted = np.array([[[0.5, 1, 10], [5.5, 6, 15]]])
    np.testing.assert_allclose(x.mean(0, keepdims=True), wanted, atol=0.6)
    assert random.uniform(0, high).shape == (3,)
    z = random.normal(high, 0.0, key=random.key(1))
    np.testing.assert_array_equal(z.numpy(), high.numpy())
    p = cyrt.asarray(np.array([0.0, 0.25, 1.0], np.float32))
    x = random.bernoulli(p, (4000, 3), key=random.key(1)).numpy()
    np.testing.assert_allclose(x.mean(0), [0, 0.25, 1], atol=0.03)
    with pytest.raises(ValueError, match=r"\(4,\), \(3,\) do not broadcast"):
        random.uniform(0, high, 4)


def test_bounds_are_kept():
    one = np.nextafter(np.float32(1), np.float32(2))
    x = random.uniform(1.0, float(one), 1000, key=random.key(0)).numpy()
    assert np.all(x == 1)
    assert np.all(random.uniform(2.5, 2.5, 10).numpy() == 2.5)
    x = random.uniform(-1e38, 1e38, 1000, key=random.key(0)).numpy()
    assert np.all(np.isfinite(x))
    assert x.max() < 1e38


def test_bad_parameters_are_refused():
    for call, error, text in [
        (lambda: random.uniform(2, 1), ValueError, "expected low <= high, got 2.0 and 1.0"),
        (lambda: random.uniform(0, math.inf), ValueError, "high: expected a finite number"),
        (lambda: random.uniform(-3e38, 3e38), ValueError, "float32 cannot hold"),
        (lambda: random.uniform(0, 1e5, dtype="float16"), ValueError, "float16 cannot hold"),
        (lambda: random.uniform("a"), TypeError, "low: expected a number or an Array, got 'a'"),
        (lambda: random.uniform(dtype="int32"), TypeError, "real floating type, got int32"),
        (lambda: random.uniform(shape=-1), ValueError, "sizes of 0 or more"),
        (
            lambda: random.uniform({}, cyrt.ones(2)),
            TypeError,
            "low: expected a number or an Array, got {}",
        ),
        (lambda: random.normal(cyrt.ones(2), -1), ValueError, "scale: expected 0 or more, got -1"),
        (
            lambda: random.normal(cyrt.ones(2), []),
            TypeError,
            r"scale: expected a number or an Array, got \[\]",
        ),
        (lambda: random.bernoulli(cyrt.ones(2), None), TypeError, "int or a tuple of ints, got No"),
        (lambda: random.normal(0, -1), ValueError, "scale: expected 0 or more"),
        (lambda: random.normal(dtype="complex64"), TypeError, "got complex64"),
        (lambda: random.bernoulli(1.5), ValueError, "from 0 to 1, got 1.5"),
        (lambda: random.randint(5, 5), ValueError, "expected low < high, got 5 and 5"),
        (lambda: random.randint(0, 257, dtype="uint8"), ValueError, "uint8 does not hold"),
        (lambda: random.randint(-1, 5, dtype="uint8"), ValueError, "uint8 does not hold"),
        (lambda: random.randint(0, 5.5), TypeError, "high: expected an int, got 5.5"),
        (lambda: random.randint(0, 5, dtype="float32"), TypeError, "integer type, got float32"),
        (lambda: random.truncated_normal(1, 1), ValueError, "expected lower < upper"),
        (lambda: random.truncated_normal(40, 50), ValueError, "cannot tell the probability"),
        (lambda: random.truncated_normal(math.nan, 1), ValueError, "lower: expected"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_parameters_that_are_arrays_say_where(python):
    done = python(
        """
        import cyrt
        p = cyrt.full(3, 0.5, device=1)
        for x in (cyrt.random.uniform(p, 1), cyrt.random.normal(1, p), cyrt.random.bernoulli(p),
                  cyrt.random.exponential(p), cyrt.random.choice(p, 3),
                  cyrt.random.choice(p, 3, False), cyrt.random.choice([1, 2, 3], 3, p=p / 1.5)):
            print(x.device.index, x.shape)
        try:
            p[cyrt.asarray([0])]
        except ValueError as error:
            print(error)
    """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.stdout.splitlines() == ["1 (3,)"] * 7 + [
        "indices: expected an array on device 1, got one on device 0; to_device() moves arrays"
    ], done.stderr
