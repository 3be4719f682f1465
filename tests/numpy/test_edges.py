"""Arguments at their edges: unsigned coordinates, NaN among edges, precision; numbers and lists
in the place of arrays."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import compare

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL = (*UNSIGNED, "int8", "int16", "int64", "float16", "float32", "float64")


def near(found, wanted, tolerance):
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


# -- differences of unsigned and narrow integers ---------------------------------------------------


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("dtype", [*UNSIGNED, "int8"])
def test_gradient_at_integer_places(dtype, edge_order):
    values = np.array([0, 2, 5, 6, 8], np.float32)
    for places in ([100, 80, 30, 1, 0], [0, 1, 30, 80, 100]):
        places = np.array(places, dtype)
        found = cyrt.gradient(cyrt.asarray(values), cyrt.asarray(places), edge_order=edge_order)
        assert found.dtype == cyrt.float32
        near(found, np.gradient(values, places, edge_order=edge_order), 1e-5)
    apart = np.array([-100, 0, 100], "int8")  # 100 - -100 is none of int8
    near(
        cyrt.gradient(cyrt.asarray(values[:3]), cyrt.asarray(apart)),
        np.gradient(values[:3], apart.astype(float)),
        1e-5,
    )


def test_gradient_by_an_unsigned_number():
    values = np.array([0, 2, 5, 6], np.float32)
    for step in (np.uint8(200), cyrt.asarray(200, dtype="uint8")):
        near(
            cyrt.gradient(cyrt.asarray(values), step, edge_order=2),
            np.gradient(values, 200.0, edge_order=2),
            1e-6,
        )


def test_gradient_of_integers_that_float32_does_not_hold():
    values = np.array([2**26, 2**26 + 1, 2**26 + 3, 2**26 + 7], np.int32)
    found = cyrt.gradient(cyrt.asarray(values))
    assert found.dtype == cyrt.float32
    near(found, np.gradient(values), 1e-6)


@pytest.mark.parametrize("dtype", [*UNSIGNED, "int8"])
def test_trapezoid_of_narrow_integers(dtype):
    values, places = np.array([100, 120, 90], dtype), np.array([100, 50, 1], dtype)
    for y, x in ((values, places), (values.astype("f4"), places), (values, None)):
        found = cyrt.trapezoid(cyrt.asarray(y), None if x is None else cyrt.asarray(x))
        assert found.dtype == cyrt.float32
        near(found, np.trapezoid(y.astype(float), None if x is None else x.astype(float)), 1e-6)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_interpolation_with_a_period_of_unsigned_places(dtype):
    x, xp, fp = np.array([0, 3, 9, 11], dtype), np.array([2, 7, 10], dtype), np.array([5.0, 1, 4])
    found = cyrt.interp(cyrt.asarray(x), cyrt.asarray(xp), cyrt.asarray(fp), period=12)
    near(found, np.interp(x, xp, fp, period=12), 1e-12)
    found = cyrt.interp(cyrt.asarray(x), cyrt.asarray(xp), cyrt.asarray(fp), period=360)
    near(found, np.interp(x, xp, fp, period=360), 1e-12)


def test_density_between_edges_far_apart():
    host = np.array([-90, 3, 80], np.int8)
    edges = np.array([-100, 0, 100], np.int8)  # the width of them all is none of int8
    found, _ = cyrt.histogram(cyrt.asarray(host), cyrt.asarray(edges[::2]), density=True)
    near(found, [1 / 200], 1e-6)


def test_bounds_of_another_integer_type_do_not_wrap():
    x = cyrt.asarray(np.array([-3, -62, 40], np.int8))
    for low, high in (([129, 0, 26], [300, 300, 300]), ([0, 0, 0], [65, 2**31, 2**32 - 1])):
        low, high = (np.array(each, np.uint32) for each in (low, high))
        found = cyrt.clip(x, cyrt.asarray(low), cyrt.asarray(high))
        assert found.dtype == cyrt.int8
        np.testing.assert_array_equal(
            found.numpy(), np.minimum(np.clip(x.numpy().astype(int), low, high), 127)
        )
    found = cyrt.clip(cyrt.asarray([1, 250], dtype="uint8"), cyrt.asarray([-5, -300]))
    assert found.tolist() == [1, 250]


def test_exponents_beyond_a_signed_type():
    huge = cyrt.asarray(np.array([2**63 + 5, 2**64 - 1], np.uint64))
    assert cyrt.ldexp(1.0, huge).tolist() == [np.inf, np.inf]


# -- edges -----------------------------------------------------------------------------------------

EDGES = (
    [1, 3, np.nan],
    [np.nan, 3, 1],
    [1, 3, np.inf],
    [-np.inf, 1, np.inf],
    [3, 1, -np.inf],
    [2, 2, 2],
    [4],
)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("edges", EDGES, ids=str)
def test_digitize(edges, right):
    host = np.array([0, 1, 2, 3, 4, np.nan, np.inf, -np.inf], np.float32)
    for given in (edges, cyrt.asarray(np.array(edges, np.float32))):
        found = cyrt.digitize(cyrt.asarray(host), given, right)
        np.testing.assert_array_equal(found.numpy(), np.digitize(host, edges, right))


def test_edges_that_are_nan_but_the_first():
    """NumPy takes them for descending; a NaN is greater than all numbers, as sort has it."""
    found = cyrt.digitize(cyrt.asarray([0, 1, 2.0]), [1, np.nan])
    assert found.tolist() == [0, 1, 1]


@pytest.mark.parametrize("edges", [[], [1.0]])
def test_histogram_without_bins(edges):
    x = cyrt.ones(3)
    for given in (edges, cyrt.asarray(edges)):
        for weights in (None, x):
            found, kept = cyrt.histogram(x, given, weights=weights)
            assert (found.tolist(), kept.tolist()) == ([], edges)


def test_histogram_names_a_range_of_no_two_numbers():
    for each in (5, (0,), (0, 1, 2), (0, "a"), "ab"):
        with pytest.raises(TypeError, match="histogram: range: expected two numbers, got"):
            cyrt.histogram(cyrt.ones(3), 2, each)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("histogram", lambda x, **options: cyrt.histogram(x, **options)),
        ("histogram2d", lambda x, **options: cyrt.histogram2d(x, x, **options)),
        ("histogramdd", lambda x, **options: cyrt.histogramdd([x], **options)),
        ("histogram_bin_edges", lambda x, **options: cyrt.histogram_bin_edges(x, **options)),
    ],
)
def test_histograms_name_themselves(name, call):
    limits = (2, 1) if name in ("histogram", "histogram_bin_edges") else [(2, 1)] * 2
    limits = limits[:1] if name == "histogramdd" else limits
    x = cyrt.ones(3)
    for options, message in (
        ({"bins": 0}, "bins: expected 1 or more, got 0"),
        ({"range": limits}, "range: expected two finite numbers, ascending"),
        ({"bins": "auto"}, "bins: "),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: {message}"):
            call(x, **options)
    with pytest.raises(TypeError, match=f"^{name}: expected a real type, got complex64"):
        call(cyrt.ones(3, dtype="complex64"))


@pytest.mark.parametrize(
    "name", ["quantile", "percentile", "nanquantile", "nanpercentile", "median", "nanmedian"]
)
def test_quantiles_of_complex_numbers(name):
    function = getattr(cyrt, name)
    q = () if "median" in name else (0.5,)
    with pytest.raises(TypeError, match=f"^{name}: a: expected a real type, got complex64"):
        function(cyrt.ones(3, dtype="complex64"), *q)
    if q:
        for each in (0.5j, cyrt.ones(1, dtype="complex64")):
            with pytest.raises(TypeError, match=f"^{name}: q: expected real numbers from 0 to 1"):
                function(cyrt.ones(3), each)


@pytest.mark.parametrize("edges", [[0, 1, np.inf], [-np.inf, 1, 2], [-np.inf, np.inf]], ids=str)
def test_histogram_to_infinity(edges):
    host = np.array([0.5, 2, 1, -7], np.float32)
    weights = np.array([1, 2, 3, 4], np.float32)
    for given in (edges, cyrt.asarray(np.array(edges, np.float32))):
        found, _ = cyrt.histogram(cyrt.asarray(host), given)
        assert found.tolist() == np.histogram(host, edges)[0].tolist()
        found, _ = cyrt.histogram(cyrt.asarray(host), given, weights=cyrt.asarray(weights))
        assert found.tolist() == np.histogram(host, edges, weights=weights)[0].tolist()


def test_edges_without_an_order():
    x = cyrt.ones(2)
    with pytest.raises(ValueError, match="digitize: bins: expected ascending or descending"):
        cyrt.digitize(x, [1, 3, 2])
    with pytest.raises(ValueError, match="histogram: bins: expected ascending numbers"):
        cyrt.histogram(x, [3, 2, 1])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_integers_among_edges_that_float32_does_not_hold(dtype):
    host = np.array([2**25, 2**25 + 1, 2**25 + 2, 2**25 + 7], dtype)
    x = cyrt.asarray(host)
    edges = np.array([2**25 + 0.5, 2**25 + 2, 2**25 + 7])
    assert cyrt.digitize(x, cyrt.asarray(edges)).tolist() == np.digitize(host, edges).tolist()
    assert (
        cyrt.histogram(x, cyrt.asarray(edges))[0].tolist() == np.histogram(host, edges)[0].tolist()
    )
    assert cyrt.histogram(x, 7)[0].tolist() == np.histogram(host, 7)[0].tolist()
    assert cyrt.histogram(x, 7)[1].dtype == cyrt.float32


def test_unsigned_values_of_64_bits_among_signed_edges():
    host = np.array([1, 5, 9], np.uint64)
    assert cyrt.digitize(cyrt.asarray(host), [-3, 5, 7]).tolist() == [1, 2, 3]
    assert cyrt.histogram(cyrt.asarray(host), [0, 5, 10])[0].tolist() == [1, 2]


def test_even_edges_of_values_that_span_a_type():
    host = np.array([-6e4, 0, 6e4], np.float16)  # their distance is infinite in float16
    assert cyrt.histogram(cyrt.asarray(host), 3)[0].tolist() == [1, 1, 1]


# -- precision -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REAL)
def test_interpolation_is_computed_in_the_type_of_the_result(dtype):
    x, xp = np.linspace(0, 10, 101), np.linspace(0, 10, 11)
    fp = (100 * np.sin(xp) ** 2).astype(dtype)
    found = cyrt.interp(cyrt.asarray(x), cyrt.asarray(xp), cyrt.asarray(fp))
    assert found.dtype == cyrt.float64
    near(found, np.interp(x, xp, fp), 1e-12)
    found = cyrt.interp(
        cyrt.asarray(x),
        cyrt.asarray(np.arange(11).astype(dtype)),
        cyrt.asarray(fp.astype("float64")),
    )
    near(found, np.interp(x, np.arange(11), fp), 1e-12)


def test_interpolation_of_integers_that_float32_does_not_hold():
    xp = np.array([2**26, 2**26 + 4, 2**26 + 8])
    x, fp = xp[:2] + 1, np.array([0, 1, 2], np.float32)
    near(
        cyrt.interp(cyrt.asarray(x), cyrt.asarray(xp), cyrt.asarray(fp)), np.interp(x, xp, fp), 1e-6
    )
    with pytest.raises(TypeError, match="interp: x, xp: expected real types, got complex64"):
        cyrt.interp(cyrt.asarray(x) * 1j, cyrt.asarray(xp), cyrt.asarray(fp))


def test_numbers_beside_double_precision_are_not_rounded():
    x = np.array([0.1, 0.25, 0.7])
    a = cyrt.asarray(x)
    assert cyrt.interp(0.1, a, a).item() == np.interp(0.1, x, x)
    assert cyrt.histogram(a, [0.1, 0.3, 0.7])[0].tolist() == [2, 1]
    assert cyrt.digitize(a, [0.1, 0.7]).tolist() == [1, 1, 2]
    assert cyrt.append(a, 0.1).tolist() == [*x.tolist(), 0.1]
    assert cyrt.append(a, [0.1]).dtype == cyrt.float64
    assert cyrt.insert(a, 0, 0.3).tolist() == [0.3, *x.tolist()]
    assert cyrt.ediff1d(a, to_end=0.3).tolist()[-1] == 0.3
    assert cyrt.polyval(a, 0.1).item() == np.polyval(x, 0.1)
    assert cyrt.block([a, 0.1]).tolist()[-1] == 0.1
    assert cyrt.average(a, weights=[0.1, 0.2, 0.7]).item() == pytest.approx(
        np.average(x, weights=[0.1, 0.2, 0.7]), rel=1e-15
    )
    near(cyrt.gradient(a, [0.1, 0.2, 0.7]), np.gradient(x, [0.1, 0.2, 0.7]), 1e-13)
    near(cyrt.trapezoid(a, [0.1, 0.2, 0.7]), np.trapezoid(x, [0.1, 0.2, 0.7]), 1e-15)
    square = cyrt.zeros((2, 2), dtype="float64")
    cyrt.fill_diagonal(square, 0.1)
    assert square[0, 0].item() == 0.1


def test_single_precision_beside_double_precision():
    rng = np.random.default_rng(3)
    y, x = rng.random(50).astype(np.float32), np.sort(rng.random(50))
    near(
        cyrt.trapezoid(cyrt.asarray(y), cyrt.asarray(x)),
        np.trapezoid(y.astype(np.float64), x),
        1e-14,
    )
    near(
        cyrt.average(cyrt.asarray(y), weights=cyrt.asarray(x)),
        np.average(y.astype(np.float64), weights=x),
        1e-14,
    )
    near(cyrt.cov(cyrt.asarray(y), cyrt.asarray(x)), np.cov(y.astype(np.float64), x), 1e-14)


def test_averages_and_covariances_of_integers_that_float32_does_not_hold():
    host = np.array([[2**26, 2**26 + 1, 2**26 + 3], [5, 6, 9]])
    near(cyrt.cov(cyrt.asarray(host)), np.cov(host), 1e-6)
    assert cyrt.cov(cyrt.asarray(host)).dtype == cyrt.float32
    host = np.array([2**26, -(2**26), 1])
    near(cyrt.average(cyrt.asarray(host), weights=[1, 1, 1]), np.average(host), 1e-6)


def test_half_precision_is_rounded_once():
    host = np.array([-6e4, 6e4], np.float16)
    x = cyrt.asarray(host)
    assert cyrt.quantile(x, 0.5).item() == 0
    assert cyrt.nanmedian(cyrt.asarray(np.array([6e4, 6e4, np.nan], np.float16))).item() == 6e4
    assert cyrt.average(x, weights=cyrt.asarray([60000, 60000])).item() == 0
    assert cyrt.cov(cyrt.asarray(np.array([1000, 1100], np.float16))).item() == 5000


# -- numbers, bools and lists ----------------------------------------------------------------------

OF_ONE = (
    "angle",
    "deg2rad",
    "degrees",
    "fabs",
    "fix",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "modf",
    "nan_to_num",
    "rad2deg",
    "radians",
    "rint",
    "sinc",
)
OF_TWO = (
    "allclose",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "isclose",
    "ldexp",
    "logaddexp2",
    "divmod",
)


@pytest.mark.parametrize("name", OF_ONE + OF_TWO)
def test_numbers_alone(name):
    numbers = (2.5, -0.5, 3, np.float32(0.3), np.nan, 0)
    for number in numbers:
        operands = (number, 2) if name in OF_TWO else (number,)
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(*operands)
        found = getattr(cyrt, name)(*operands)
        assert type(found) is type(wanted)
        np.testing.assert_array_equal(found, wanted)


def test_numbers_alone_with_options():
    assert cyrt.angle(1j, deg=True) == 90
    assert cyrt.isclose(a=1, b=1.5, rtol=1)
    assert cyrt.nan_to_num(np.nan, nan=7.0) == 7
    assert cyrt.clip(3, 0, 2) == 2
    assert cyrt.clip(0.5, None, 2) == 0.5
    assert cyrt.clip(-1, a_min=0, a_max=2) == 0
    assert type(cyrt.clip(0.5, 1, 2)) is type(np.clip(0.5, 1, 2))
    with pytest.raises(TypeError, match="only numbers"):
        cyrt.clip(3, 0, 2, cyrt.ones(()))
    with pytest.raises(TypeError, match=r"clip: expected an Array, got str"):
        cyrt.clip(3, "a")


def test_a_number_held_between_arrays():
    found = cyrt.clip(2, cyrt.asarray([0, 3.0]), 5)
    assert (found.dtype, found.tolist()) == ("float32", [2, 3])


CONDITIONS = {
    "bools": (True, False, np.True_, np.False_),
    "a list": ([True, False, False, True],),
    "lists": ([[True, False, False, True], [False, True, False, True]], ([True] * 4, [False] * 4)),
    "a list of bools": ([np.True_, np.False_, np.False_, np.True_],),
}


@pytest.mark.parametrize("conditions", CONDITIONS)
def test_piecewise(conditions):
    x = np.arange(4, dtype="f4")
    for condition in CONDITIONS[conditions]:
        functions = [-1, lambda v: v + 1, 7][: 3 if conditions == "lists" else 2]
        compare(
            cyrt.piecewise(cyrt.asarray(x), condition, functions),
            np.piecewise(x, condition, functions),
            False,
        )


def test_piecewise_by_the_parts_of_an_array():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    conditions = np.stack([x < 2, x > 3])
    compare(
        cyrt.piecewise(cyrt.asarray(x), cyrt.asarray(conditions), [1, 2, 3]),
        np.piecewise(x, conditions, [1, 2, 3]),
        False,
    )
    point = cyrt.asarray(2.0)
    assert cyrt.piecewise(point, [False, True], [1, 2]).item() == 2
    assert cyrt.piecewise(point, [], [1]).item() == 1
    with pytest.raises(TypeError, match=r"piecewise: condlist.*numpy\.ndarray"):
        cyrt.piecewise(cyrt.asarray(x), [x < 2], [1])


def test_masks_that_are_bools_or_lists():
    x = np.array([1.0, 2, 3], np.float32)
    a = cyrt.asarray(x)
    for mask in (True, False, np.True_, [True, False, True], (False, True, True)):
        compare(cyrt.where(mask, a, 0), np.where(mask, x, np.float32(0)), False)
        compare(cyrt.where(mask, 0, a), np.where(mask, np.float32(0), x), False)
    mask = [True, False, True]
    assert cyrt.extract(mask, a).tolist() == [1, 3]
    for function in (cyrt.putmask, cyrt.place):
        y = a.copy()
        function(y, mask, [7, 8])
        assert y.tolist() == ([7, 2, 7] if function is cyrt.putmask else [7, 2, 8])
    point = cyrt.asarray(5)
    cyrt.place(point, True, [3])
    assert point.item() == 3


def test_keys_beyond_an_integer_type():
    keys = np.array([0, 2, 2, 200], np.uint8)
    for value in (-1, 300, 0, [-1, 300, 2]):
        for side in ("left", "right"):
            found = cyrt.searchsorted(cyrt.asarray(keys), value, side)
            assert found.dtype == cyrt.int64
            assert found.tolist() == np.searchsorted(keys, value, side).tolist()
    wide = cyrt.asarray(np.array([1, 2**64 - 1], np.uint64))
    assert cyrt.searchsorted(wide, -1).item() == 0
    assert cyrt.searchsorted(wide, 2**64).item() == 2


# -- shapes ----------------------------------------------------------------------------------------


def test_copyto_leading_dimensions_of_one():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = values > 2
    for source in (values[None], values[None, None], values[:, :1], values[:1]):
        for where in (True, mask):
            x, wanted = cyrt.zeros((2, 3)), np.zeros((2, 3), np.float32)
            np.copyto(wanted, source, where=where)
            cyrt.copyto(
                x, cyrt.asarray(source), where=where if where is True else cyrt.asarray(where)
            )
            np.testing.assert_array_equal(x.numpy(), wanted)
    for source, where in ((cyrt.ones((2, 2, 3)), True), (cyrt.ones(3), cyrt.ones((1, 2, 3)) > 0)):
        with pytest.raises(ValueError, match="does not broadcast"):
            cyrt.copyto(cyrt.zeros((2, 3)), source, where=where)


def test_quantiles_of_nothing():
    for shape, axis in (((0,), None), ((2, 0), 1), ((0, 3), 0)):
        x = np.zeros(shape, np.float32)
        compare(
            cyrt.nanquantile(cyrt.asarray(x), 0.5, axis),
            np.full(np.sum(x, axis=axis).shape, np.nan, np.float32),
            False,
        )
        with pytest.raises(ValueError, match="quantile: expected at least one element"):
            cyrt.quantile(cyrt.asarray(x), 0.5, axis)


def test_the_correction_of_variances():
    x = np.array([1, 2, 4, np.nan], np.float32)
    for name in ("nanvar", "nanstd"):
        for options in ({"ddof": 0, "correction": 1}, {"correction": 1}, {"ddof": 1}):
            compare(
                getattr(cyrt, name)(cyrt.asarray(x), **options),
                getattr(np, name)(x, **options),
                False,
                1e-6,
            )
        with pytest.raises(ValueError, match="which mean the same, got 1 and 1"):
            getattr(cyrt, name)(cyrt.asarray(x), ddof=1, correction=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_on_the_device_that_do_not_ascend(weighted, python):
    """NumPy refuses them, as checking mode does, which waits for them."""
    program = f"""
        import cyrt
        x = cyrt.asarray([1.0, 2.0, 3.0, 9.0])
        try:
            found, _ = cyrt.histogram(
                x, cyrt.asarray([10.0, 8.0, 2.0]), weights=x if {weighted} else None
            )
            print((found >= 0).all())
            print(cyrt.digitize(x, cyrt.asarray([10.0, 8.0, 2.0])).tolist())
            cyrt.digitize(x, cyrt.asarray([8.0, 10.0, 2.0]))
        except ValueError as error:
            print(error)
    """
    assert python(program, CYRT_CHECK="0").stdout == "True\n[3, 2, 2, 1]\n"
    checked = python(program, CYRT_CHECK="1").stdout
    assert checked == "histogram: bins: expected ascending numbers, got [10.0, 8.0, 2.0]\n"


@pytest.mark.parametrize("bins", ["auto", "nonsense", True, np.True_, 2.0, None, np.float64(3)])
def test_bins_that_are_none(bins):
    x = cyrt.asarray([1.0, 2, 3])
    for name in ("histogram", "digitize", "histogram_bin_edges"):
        with pytest.raises(TypeError, match=f"{name[:8]}.*: bins: expected (edges|an int)"):
            getattr(cyrt, name)(x, bins)


def test_bins_of_numpy():
    """Every ndarray has ``__index__``: one with dimensions is no number of bins."""
    x = cyrt.asarray([1.0, 2, 3])
    for bins in (np.array([0.0, 2, 4]), np.array([3])):
        for function in (cyrt.histogram, cyrt.digitize, cyrt.histogram_bin_edges):
            with pytest.raises(TypeError, match=r"bins: .*numpy\.ndarray; cyrt\.asarray\(\)"):
                function(x, bins)
    for bins in (np.int32(2), np.array(2)):
        assert cyrt.histogram(x, bins)[0].tolist() == [1, 2]


@pytest.mark.parametrize("values", [1, 1000])
def test_weights_of_bins_beside_numpy(values, rng):
    host = np.concatenate([rng.integers(-3, 40, 3000) / 4, [np.nan, np.inf, -np.inf]])
    weights = rng.normal(size=host.shape) * 10.0 ** rng.integers(-9, 9, host.shape)
    edges = np.sort(rng.integers(-2, 36, values + 1)) / 4.0
    found, _ = cyrt.histogram(
        cyrt.asarray(host), cyrt.asarray(edges), weights=cyrt.asarray(weights)
    )
    places = np.searchsorted(edges, host, "right")
    places = np.where(host == edges[-1], values, places)
    wanted, sizes = np.zeros(values + 2), np.zeros(values + 2)
    np.add.at(wanted, places, weights)
    np.add.at(sizes, places, np.abs(weights))
    assert found.dtype == "float64"
    assert (np.abs(found.numpy() - wanted[1:-1]) <= 1e-15 * 32 * sizes[1:-1]).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_weights_of_integers_beside_numpy(dtype, rng):
    host, weights = rng.integers(0, 9, 4000), rng.integers(0, 9, 4000).astype(dtype)
    found = cyrt.bincount(cyrt.asarray(host), cyrt.asarray(weights), 12)
    assert found.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_array_equal(found.numpy(), np.bincount(host, weights, 12))
    empty = cyrt.bincount(cyrt.asarray(host[:0]), cyrt.asarray(weights[:0]), 2)
    assert empty.tolist() == [0, 0]


# -- values, rows and attributes -------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        lambda xp: xp.asarray([-10, 10]),
        lambda xp: [xp.asarray(-10), 10],
        lambda xp: [xp.asarray([1, 2, 3]), lambda x: xp.asarray(4)],
        lambda xp: [lambda x: x[:1], lambda x: x],
    ],
)
@pytest.mark.parametrize("condition", [True, False, "mask"])
def test_piecewise_of_arrays_that_broadcast(values, condition):
    host = np.arange(6.0).reshape(2, 3)
    mask = host > 2 if condition == "mask" else np.full(host.shape, condition)
    first, second = (
        np.broadcast_to(each(host) if callable(each) else each, host.shape) for each in values(np)
    )
    x = cyrt.asarray(host)
    found = cyrt.piecewise(
        x, cyrt.asarray(mask) if condition == "mask" else condition, values(cyrt)
    )
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.numpy(), np.where(mask, first, second))
    found[...] = 7
    assert x.tolist() == host.tolist()


def test_piecewise_of_another_shape():
    x = cyrt.zeros((2, 3))
    with pytest.raises(ValueError, match=r"shape \(2,\) does not broadcast to \(2, 3\)"):
        cyrt.piecewise(x, True, [cyrt.ones(2), 0])
    with pytest.raises(ValueError, match=r"shape \(4,\) does not broadcast to \(2, 3\)"):
        cyrt.piecewise(x, [cyrt.asarray([True] * 4)], [1])
    found = cyrt.piecewise(x, [], [lambda each: each])
    found += 1
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rows_without_elements(axis):
    shape = (0, 3) if axis == 0 else (3, 0)
    for of, theirs in ((cyrt.sum, np.sum), (lambda row: cyrt.ones(2), lambda row: np.ones(2))):
        wanted = np.apply_along_axis(theirs, axis, np.empty(shape))
        compare(cyrt.apply_along_axis(of, axis, cyrt.empty(shape)), wanted, False)
    with pytest.raises(ValueError, match="there is no row"):
        cyrt.apply_along_axis(cyrt.sum, axis, cyrt.empty(shape[::-1]))


def test_flags_and_flat_are_read():
    x = cyrt.zeros((2, 3))
    for name in ("c_contiguous", "writeable", "owndata", "contiguous", "other"):
        with pytest.raises(AttributeError, match=f"flags: {name} follows from the array"):
            setattr(x.flags, name, False)
    with pytest.raises(TypeError):
        x.flags["WRITEABLE"] = False
    assert x.flags["C_CONTIGUOUS"] is True
    assert repr(x.flags).split()[:3] == ["C_CONTIGUOUS", ":", "True"]
    for name in ("base", "other"):
        with pytest.raises(AttributeError):
            setattr(x.flat, name, 1)
    for name in ("shape", "dtype", "size", "ndim", "strides", "T", "device", "flags"):
        with pytest.raises(AttributeError):
            setattr(x, name, getattr(x, name))


FLAGS = {
    "sum": lambda x, flag: cyrt.sum(x, keepdims=flag),
    "prod": lambda x, flag: cyrt.prod(x, 0, keepdims=flag),
    "max": lambda x, flag: cyrt.max(x, keepdims=flag),
    "mean": lambda x, flag: cyrt.mean(x, keepdims=flag),
    "any": lambda x, flag: x.any(keepdims=flag),
    "argmax": lambda x, flag: cyrt.argmax(x, keepdims=flag),
    "count_nonzero": lambda x, flag: cyrt.count_nonzero(x, keepdims=flag),
    "logsumexp": lambda x, flag: cyrt.logsumexp(x, keepdims=flag),
    "sort": lambda x, flag: cyrt.sort(x, descending=flag),
    "argsort": lambda x, flag: x.argsort(stable=flag),
    "astype": lambda x, flag: x.astype("float32", copy=flag),
    "asarray": lambda x, flag: cyrt.asarray(x, copy=flag),
    "reshape": lambda x, flag: cyrt.reshape(x, (-1,), copy=flag),
    "linspace": lambda x, flag: cyrt.linspace(0, 1, 3, endpoint=flag),
    "isin": lambda x, flag: cyrt.isin(x, [1], invert=flag),
    "cumulative_sum": lambda x, flag: cyrt.cumulative_sum(x, axis=0, include_initial=flag),
    "meshgrid": lambda x, flag: cyrt.meshgrid(x[0], x[0], sparse=flag),
    "unique": lambda x, flag: cyrt.unique(x, return_counts=flag),
    "intersect1d": lambda x, flag: cyrt.intersect1d(x, x, return_indices=flag),
    "setdiff1d": lambda x, flag: cyrt.setdiff1d(x, x, assume_unique=flag),
    "fill_diagonal": lambda x, flag: cyrt.fill_diagonal(x, 1, wrap=flag),
    "vander": lambda x, flag: cyrt.vander(x[0], increasing=flag),
    "indices": lambda x, flag: cyrt.indices((2, 3), sparse=flag),
    "geomspace": lambda x, flag: cyrt.geomspace(1, 2, endpoint=flag),
    "isclose": lambda x, flag: cyrt.isclose(x, x, equal_nan=flag),
    "array_equal": lambda x, flag: cyrt.array_equal(x, x, equal_nan=flag),
    "average": lambda x, flag: cyrt.average(x, returned=flag),
    "median": lambda x, flag: cyrt.median(x, keepdims=flag),
    "nanmedian": lambda x, flag: cyrt.nanmedian(x, keepdims=flag),
    "quantile": lambda x, flag: cyrt.quantile(x, 0.5, keepdims=flag),
    "cov": lambda x, flag: cyrt.cov(x, bias=flag),
    "angle": lambda x, flag: cyrt.angle(x, deg=flag),
    "nan_to_num": lambda x, flag: cyrt.nan_to_num(x, copy=flag),
    "digitize": lambda x, flag: cyrt.digitize(x, [1, 2], right=flag),
    "histogram": lambda x, flag: cyrt.histogram(x, 2, density=flag),
    "choice": lambda x, flag: cyrt.random.choice(3, 2, replace=flag),
    "integers": lambda x, flag: cyrt.random.default_rng(0).integers(3, endpoint=flag),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_that_are_no_bools(name):
    x = cyrt.ones((2, 3))
    for flag in ("a", 1.0, 2, [], cyrt.ones(1)):
        with pytest.raises(TypeError, match=rf"{name}: \w+: expected a bool, got"):
            FLAGS[name](x, flag)
    for flag in (True, np.True_, 1):
        FLAGS[name](x, flag)
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


INTS = {
    "axis": lambda x, n: cyrt.sum(x, n),
    "axis of a view": lambda x, n: cyrt.expand_dims(x, n),
    "shape": lambda x, n: cyrt.zeros(n),
    "shape of several": lambda x, n: cyrt.reshape(x, (6, n)),
    "eye: N": lambda x, n: cyrt.eye(n),
    "tril: k": lambda x, n: cyrt.tril(x, n),
    "diff: n": lambda x, n: cyrt.diff(x, n),
    "round: decimals": lambda x, n: cyrt.round(x, n),
    "top_k: k": lambda x, n: cyrt.top_k(x, n),
    "linspace: num": lambda x, n: cyrt.linspace(0, 1, n),
    "rot90: k": lambda x, n: cyrt.rot90(x, n),
    "vander: N": lambda x, n: cyrt.vander(x[0], n),
    "partition: kth": lambda x, n: cyrt.partition(x, n),
    "bincount: minlength": lambda x, n: cyrt.bincount(cyrt.asarray([1]), minlength=n),
}


@pytest.mark.parametrize("name", INTS)
def test_ints_that_are_none(name):
    """Bools, which would be 0 and 1, and arrays of NumPy with dimensions, which have __index__."""
    x = cyrt.ones((2, 3))
    arrays = [] if "shape" in name else [np.array([1]), np.array(1.0)]  # a shape may be an array
    for n in (True, np.True_, 1.0, "1", *arrays):
        with pytest.raises(TypeError, match=rf"{name.split(' of')[0]}.*: expected "):
            INTS[name](x, n)
    for n in (1, np.int16(1), np.array(1)):
        INTS[name](x, n)


def test_numpys_arrays_of_ints_in_the_place_of_sequences():
    x = cyrt.arange(6)
    cuts = np.array([2, 3])
    assert [part.tolist() for part in cyrt.split(x, cuts)] == [[0, 1], [2], [3, 4, 5]]
    assert [part.tolist() for part in cyrt.array_split(x, cuts)] == [[0, 1], [2], [3, 4, 5]]
    assert cyrt.repeat(x[:2], cuts).tolist() == [0, 0, 1, 1, 1]
    assert cyrt.tensordot(x, x, np.array([[0], [0]])).item() == 55
    assert cyrt.tile(x[:2], cuts).tolist() == [[0, 1] * 3] * 2
    both = cyrt.roll(cyrt.reshape(x, (2, 3)), np.array([1, 1]), axis=(0, 1))
    assert both.tolist() == [[5, 3, 4], [2, 0, 1]]
