"""NumPy's everyday functions: one program, run on cyrt and on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import EVERY, NUMBERS, REAL, SPECIAL, WIDE, beside, legacy

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own

# -- shapes, views, joining ------------------------------------------------------------------------

ARRANGED = {
    "array": lambda xp, x, r: xp.array(x, ndmin=r.randint(0, 4)),
    "asanyarray": lambda xp, x, r: xp.asanyarray(x),
    "ascontiguousarray": lambda xp, x, r: xp.ascontiguousarray(x),
    "transpose": lambda xp, x, r: xp.transpose(
        x, r.choice([None, r.sample(range(x.ndim), x.ndim)])
    ),
    "shape": lambda xp, x, r: (xp.shape(x), xp.ndim(x), xp.size(x), xp.shape(1), xp.ndim(2)),
    "size along": lambda xp, x, r: xp.size(x, r.axis(x)),
    "iscomplexobj": lambda xp, x, r: (legacy(xp).iscomplexobj(x), legacy(xp).isrealobj(x)),
    "fliplr": lambda xp, x, r: xp.fliplr(x),
    "flipud": lambda xp, x, r: xp.flipud(x),
    "rot90": lambda xp, x, r: xp.rot90(
        x, r.randint(-5, 5), tuple(r.sample(range(-x.ndim, x.ndim + 1), 2))
    ),
    "diag": lambda xp, x, r: xp.diag(x, r.randint(-5, 5)),
    "diagflat": lambda xp, x, r: xp.diagflat(x, r.randint(-2, 2)),
    "diagonal": lambda xp, x, r: xp.diagonal(
        x, r.randint(-5, 5), r.axis(x, none=False), r.axis(x, none=False)
    ),
    "trace": lambda xp, x, r: xp.trace(x, r.randint(-3, 3), *r.sample(range(x.ndim + 1), 2)),
    "column_stack": lambda xp, x, r: xp.column_stack([x, x[..., :0], x]),
    "dstack": lambda xp, x, r: xp.dstack([x, x]),
    "block": lambda xp, x, r: xp.block([[x, x], [x, x]]),
    "block of numbers": lambda xp, x, r: xp.block([x[0], 1, x[1]]),
    "array_split": lambda xp, x, r: xp.array_split(
        x, r.choice([r.randint(0, 5), [1, 2], [-1, 9, 3]]), axis=r.axis(x, none=False)
    ),
    "hsplit": lambda xp, x, r: xp.hsplit(x, r.randint(1, 3)),
    "vsplit": lambda xp, x, r: xp.vsplit(x, r.randint(1, 3)),
    "dsplit": lambda xp, x, r: xp.dsplit(x, [1, 2]),
    "append": lambda xp, x, r: xp.append(x, x[:1], axis=r.axis(x)),
    "append a number": lambda xp, x, r: xp.append(
        x, x.dtype.type(3) if xp is np else np.asarray(3, x.dtype.numpy)[()]
    ),
    "delete": lambda xp, x, r: xp.delete(
        x, r.choice([r.randint(-4, 4), slice(1, 3), slice(None, None, -2), [0, -1]]), axis=r.axis(x)
    ),
    "insert": lambda xp, x, r: xp.insert(
        x, r.choice([r.randint(-5, 5), slice(0, 2), [0, 2, 2], [2, -1], [1], []]), 7, axis=r.axis(x)
    ),
    "insert rows": lambda xp, x, r: xp.insert(x, r.choice([0, 1, [1]]), x[:2], axis=0),
    "insert columns": lambda xp, x, r: xp.insert(x, r.choice([0, -1]), x[:, 0], axis=1),
    "resize": lambda xp, x, r: xp.resize(x, r.choice([5, (2, 3), (0, 2), (3, 1, 7)])),
    "trim_zeros": lambda xp, x, r: xp.trim_zeros(x, r.choice(["f", "b", "fb"])),
    "pad": lambda xp, x, r: xp.pad(
        x,
        r.choice([2, (1, 3), [(r.randint(0, 9), r.randint(0, 9)) for _ in range(x.ndim)]]),
        mode=r.choice(["constant", "edge", "reflect", "symmetric", "wrap"]),
    ),
    "pad with": lambda xp, x, r: xp.pad(x, ((1, 2), (3, 0)), constant_values=((1, 2), (3, 4))),
}
RANKS = {
    "pad with": (2, 2),
    "trim_zeros": (1, 1),
    "hsplit": (1, 3),
    "rot90": (1, 3),
    "dsplit": (2, 4),
    "insert rows": (1, 2),
    "insert columns": (2, 2),
    "block of numbers": (1, 3),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_arranged(name):
    beside(ARRANGED[name], EVERY if name != "trace" else NUMBERS, RANKS.get(name, (0, 3)))


def test_c_order():
    x = cyrt.zeros((2, 3))
    assert cyrt.ascontiguousarray(x) is x
    assert cyrt.ascontiguousarray(x.T).strides == (8, 4)
    assert cyrt.ascontiguousarray(x[:, ::-1]).strides == (12, 4)


# -- element by element ----------------------------------------------------------------------------

ONE = {
    "around": (EVERY[1:6], lambda xp, x, r: xp.around(x, r.randint(-2, 3))),
    "round": (WIDE, lambda xp, x, r: xp.round(x, r.randint(-2, 3))),
    "rint": (WIDE, lambda xp, x, r: xp.rint(x)),
    "fix": (WIDE, lambda xp, x, r: xp.fix(x)),
    "degrees": (WIDE, lambda xp, x, r: (xp.degrees(x), xp.rad2deg(x))),
    "radians": (WIDE, lambda xp, x, r: (xp.radians(x), xp.deg2rad(x))),
    "sinc": (WIDE, lambda xp, x, r: xp.sinc(x)),
    "angle": (NUMBERS[1:], lambda xp, x, r: xp.angle(x, deg=r.random() < 0.5)),
    "isreal": (EVERY, lambda xp, x, r: (xp.isreal(x), xp.iscomplex(x))),
    "isposinf": (WIDE, lambda xp, x, r: (xp.isposinf(x), xp.isneginf(x))),
    "nan_to_num": (
        EVERY,
        lambda xp, x, r: xp.nan_to_num(
            x, **r.choice([{}, {"nan": 5.0, "posinf": 2.0}, {"neginf": -7.0}])
        ),
    ),
}
TWO = {
    "divmod": (("uint8", "int32", "int64"), lambda xp, x, y, r: xp.divmod(x, y)),
    "fmod": (WIDE, lambda xp, x, y, r: xp.fmod(x, y)),
    "fmax": (WIDE, lambda xp, x, y, r: (xp.fmax(x, y), xp.fmin(x, y))),
    "fmax of a number": (WIDE, lambda xp, x, y, r: (xp.fmax(x, 2), xp.fmin(1, y))),
    "heaviside": (WIDE, lambda xp, x, y, r: xp.heaviside(x, y)),
    "logaddexp2": (WIDE, lambda xp, x, y, r: xp.logaddexp2(x, y)),
    "isclose": (
        EVERY[1:],
        lambda xp, x, y, r: xp.isclose(
            x, y, rtol=r.choice([0, 0.5]), atol=r.choice([0, 1]), equal_nan=r.random() < 0.5
        ),
    ),
    "isclose to a number": (WIDE, lambda xp, x, y, r: xp.isclose(x, 1, atol=0.5)),
    "allclose": (
        WIDE,
        lambda xp, x, y, r: (
            xp.allclose(x, x, equal_nan=True),
            xp.allclose(x, y, atol=r.choice([1, 100])),
        ),
    ),
    "array_equal": (
        EVERY,
        lambda xp, x, y, r: (
            xp.array_equal(x, y),
            xp.array_equal(x, x),
            xp.array_equal(x, x[..., None]),
            xp.array_equal(x, x, equal_nan=True),
            xp.array_equiv(x, x[None]),
            xp.array_equiv(x, y),
            xp.array_equiv(x, x[:0]),
        ),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_elementwise(name):
    dtypes, program = ONE[name]
    beside(program, dtypes, special=0.3, tolerance=3e-6)


@pytest.mark.parametrize("name", TWO)
def test_elementwise_of_two(name):
    dtypes, program = TWO[name]
    beside(program, dtypes, special=0.3, tolerance=3e-6, operands=2, examples=40)


def test_fmod_of_the_least_integer():
    least = np.array([-(2**31), -(2**31), 5], np.int32)
    other = np.array([-1, 7, 0], np.int32)
    with np.errstate(all="ignore"):
        wanted = np.fmod(least, other)
    np.testing.assert_array_equal(
        cyrt.fmod(cyrt.asarray(least), cyrt.asarray(other)).numpy(), wanted
    )


def test_close_integers_are_compared_as_they_are():
    x = cyrt.asarray([2**24, 2**24 + 1])
    assert cyrt.isclose(x, x[::-1], rtol=0, atol=0).tolist() == [False, False]


def test_an_infinity_is_close_to_itself_only():
    host = np.array([1, np.inf, -np.inf, np.inf], np.float32)
    others = np.array([np.inf, 1, np.inf, np.inf], np.float32)
    found = cyrt.isclose(cyrt.asarray(host), cyrt.asarray(others), rtol=0.5)
    assert found.tolist() == np.isclose(host, others, rtol=0.5).tolist()


def test_large_integers_rounded():
    host = np.array([1234567, -15, 25, 2**40 + 7])
    assert cyrt.around(cyrt.asarray(host), -1).tolist() == np.around(host, -1).tolist()


def test_nan_to_num_in_place():
    x = cyrt.asarray(np.array(SPECIAL, np.float32))
    assert cyrt.nan_to_num(x, copy=False) is x
    np.testing.assert_array_equal(x.numpy(), np.nan_to_num(np.array(SPECIAL, np.float32)))


# -- sums and order statistics ---------------------------------------------------------------------

STATISTICS = {
    "amax": lambda xp, x, r: (xp.amax(x, r.axis(x)), xp.amin(x, r.axis(x))),
    "ptp": lambda xp, x, r: xp.ptp(x, r.axis(x)),
    "average": lambda xp, x, r: xp.average(x, r.axis(x, several=True), keepdims=True),
    "average, weighted": lambda xp, x, r: xp.average(x, r.axis(x), weights=x + 20, returned=True),
    "median": lambda xp, x, r: xp.median(x, r.axis(x, several=True), keepdims=r.random() < 0.3),
    "quantile": lambda xp, x, r: xp.quantile(
        x,
        r.choice([0.5, 0.3, [0.0, 1.0], [[0.25], [0.6]], 1.5]),
        r.axis(x, several=True),
        keepdims=r.random() < 0.3,
    ),
    "percentile": lambda xp, x, r: xp.percentile(x, [r.choice([0, 12.5, 50, 99])], r.axis(x)),
    "nansum": lambda xp, x, r: xp.nansum(x, r.axis(x), keepdims=True),
    "nanprod": lambda xp, x, r: xp.nanprod(x, r.axis(x)),
    "nanmax": lambda xp, x, r: (xp.nanmax(x, r.axis(x)), xp.nanmin(x, r.axis(x))),
    "nanmean": lambda xp, x, r: xp.nanmean(x, r.axis(x), keepdims=r.random() < 0.5),
    "nanvar": lambda xp, x, r: xp.nanvar(x, r.axis(x), ddof=r.randint(0, 2)),
    "nanstd": lambda xp, x, r: xp.nanstd(x, r.axis(x)),
}


# For no elements, NumPy raises in other cases than the standard, or divides by zero.
STATISTICS_OF_SOME = (
    "amax",
    "ptp",
    "average",
    "average, weighted",
    "median",
    "nanmax",
    "quantile",
    "percentile",
)


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    # A NaN only: NumPy's own interpolation makes one of two infinities.
    beside(
        STATISTICS[name],
        WIDE,
        special=0.15 if "nan" in name else 0.0,
        tolerance=2e-5,
        examples=40,
        least=name in STATISTICS_OF_SOME,
    )


def test_rows_of_nothing_but_nan():
    x = cyrt.asarray(np.array([[np.nan, np.nan], [np.nan, 2]], np.float32))
    for function, value in (
        (cyrt.nanmax, 2),
        (cyrt.nanmin, 2),
        (cyrt.nanmean, 2),
        (cyrt.nanstd, 0),
    ):
        np.testing.assert_array_equal(function(x, 1).numpy(), [np.nan, value])


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(TypeError, match=f"^{name}: x: expected a real type, got complex64"):
        getattr(cyrt, name)(cyrt.zeros(3, dtype="complex64"))


def test_order_statistics_with_nan(rng):
    x = rng.random((6, 9)).astype(np.float32)
    x[2, 3] = x[4, 0] = np.nan
    for function in (
        lambda xp, x: xp.median(x, axis=1),
        lambda xp, x: xp.quantile(x, [0.2, 0.9], axis=1, keepdims=True),
    ):
        np.testing.assert_allclose(
            function(cyrt, cyrt.asarray(x)).numpy(), function(np, x), rtol=1e-6
        )


VARIABLES = {
    "cov": lambda xp, x, r: xp.cov(x, rowvar=r.random() < 0.5, ddof=r.choice([None, 0])),
    "cov of two": lambda xp, x, r: xp.cov(x, x[::-1], bias=r.random() < 0.5),
    "corrcoef": lambda xp, x, r: xp.corrcoef(x, rowvar=r.random() < 0.5),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_covariances(name):
    beside(VARIABLES[name], NUMBERS[1:], (1, 2), tolerance=1e-5, size=5, least=1)


# -- counting --------------------------------------------------------------------------------------

COUNTED = {
    "bincount": (
        ("uint8", "int32", "int64"),
        lambda xp, x, r: xp.bincount(x, minlength=r.choice([0, 30])),
    ),
    "bincount, weighted": (("uint8",), lambda xp, x, r: xp.bincount(x, weights=x / 4)),
    "digitize": (
        REAL,
        lambda xp, x, r: xp.digitize(
            x, r.choice([[-2, 0, 3], [5, 1, -4], [1]]), right=r.random() < 0.5
        ),
    ),
    "unique": (
        ("bool", *REAL),
        lambda xp, x, r: xp.unique(
            x,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            equal_nan=r.random() < 0.7,
        ),
    ),
    "unique parts": (
        ("bool", *REAL),
        lambda xp, x, r: xp.unique(
            x > 0 if r.random() < 0.5 else x,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            axis=r.axis(x, none=False),
        ),
    ),
    "unique alone": (EVERY, lambda xp, x, r: xp.unique(x)),
    "union1d": (NUMBERS, lambda xp, x, r: xp.union1d(x[:2], x[1:])),
    "intersect1d": (
        NUMBERS,
        lambda xp, x, r: xp.intersect1d(x[:2], x[1:] + 1, return_indices=r.random() < 0.5),
    ),
    "setdiff1d": (NUMBERS, lambda xp, x, r: xp.setdiff1d(x[:2], x[1:] + 1)),
    "setxor1d": (NUMBERS, lambda xp, x, r: xp.setxor1d(x[:2], x[1:] + 1)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counted(name):
    dtypes, program = COUNTED[name]
    rank = (0, 2) if "count" in name else (1, 1) if "1d" in name else (0, 3)
    beside(
        program,
        dtypes,
        rank,
        special=0.3 if "unique" in name else 0.0,
        size=8,
        examples=40,
        least="weighted" in name or "parts" in name,
    )


def test_parts_of_one_dimension_are_elements():
    values, places, inverse, counts = cyrt.unique(
        cyrt.asarray([np.nan, 2, np.nan]), True, True, True, axis=-1
    )
    np.testing.assert_array_equal(values.numpy(), [2, np.nan])
    assert (places.tolist(), inverse.tolist(), counts.tolist()) == ([1, 0], [1, 0, 1], [1, 2])


def test_nan_of_two_arrays_differ():
    """As in NumPy: only of one array are they one element."""
    a, b = np.array([1, np.nan, np.nan]), np.array([np.nan, 3, 1])
    for pair in ((a, b), (b, a), (a, b[1:])):
        for unique in (False, True):
            wanted = np.setxor1d(*pair, unique)
            found = cyrt.setxor1d(*map(cyrt.asarray, pair), unique).numpy()
            np.testing.assert_array_equal(found, wanted)


def test_one_nan_of_complex_ones():
    host = np.array(
        [2, complex(0, np.nan), complex(np.nan, -1), 2, complex(-1, np.nan)], np.complex64
    )
    values, places, inverse, counts = cyrt.unique(cyrt.asarray(host), True, True, True)
    np.testing.assert_array_equal(values.numpy(), [2, np.nan])
    assert (places.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1], [0, 1, 1, 0, 1], [2, 3])


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bins": 7},
        {"range": (-1, 2)},
        {"bins": [-1, 0, 0.5, 3]},
        {"density": True},
        {"bins": 4, "weights": True},
    ],
    ids=str,
)
def test_histogram(dtype, options, rng):
    for host in (
        (rng.normal(size=300) * 4).astype(dtype),
        np.full(5, 3, dtype),
        np.zeros(0, dtype),
    ):
        own, theirs = dict(options), dict(options)
        if "weights" in options:
            weights = rng.integers(0, 9, host.size).astype(np.float32)
            own["weights"], theirs["weights"] = cyrt.asarray(weights), weights
        counts, edges = cyrt.histogram(cyrt.asarray(host), **own)
        wanted, wanted_edges = np.histogram(host, **theirs)
        np.testing.assert_allclose(edges.numpy(), wanted_edges, rtol=1e-6, atol=1e-6)
        if "bins" not in options or options["bins"] in (4, 7):
            theirs["bins"] = edges.numpy()  # theirs are of float64
            assert edges.dtype == ("float64" if dtype == "float64" else "float32")
        wanted, _ = np.histogram(host, **theirs)
        np.testing.assert_allclose(counts.numpy(), wanted, rtol=1e-5)
        if set(options) <= {"bins", "range"}:
            assert counts.dtype == "int64"


def test_weights_of_a_bin_are_its_own():
    weights = np.array([1, np.inf, 2, np.nan, -np.inf, np.inf, -np.inf, 4], np.float32)
    bins = np.array([0, 1, 2, 3, 4, 5, 5, 6])
    np.testing.assert_array_equal(
        cyrt.bincount(cyrt.asarray(bins), cyrt.asarray(weights)).numpy(), np.bincount(bins, weights)
    )
