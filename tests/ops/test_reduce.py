"""Reductions against NumPy: in float64 where they compute in less."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reduce_reference import compare, names, values

import cyrt
from cyrt.dtypes import dtype
from cyrt.ops import reduce

# The rows of the others have a test of their own, in tests/builtin.
NAMES = ("bool", "uint8", "int64", "bfloat16", "float32", "complex64")
FUNCTIONS = {kind: names(kind) for kind in "biufc"}
# Around lanes, vectors, blocks and loads in flight.
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 64, 65, 100, 127, 129, 255, 257, 513, 1025, 4099)
LARGEST = 30_000


@st.composite
def arrays(draw):
    """A NumPy array and the same view of a cyrt array."""
    name = draw(st.sampled_from(NAMES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = []
    for _ in range(draw(st.integers(0, 4))):
        room = LARGEST // max(1, math.prod(shape))
        shape.append(draw(st.sampled_from([s for s in SIZES if s <= room])))
    host = values(rng, name, shape, draw(st.booleans()))
    array = cyrt.asarray(host)
    keys = tuple(
        draw(
            st.sampled_from(
                [
                    slice(None),
                    slice(None),
                    slice(None, None, -1),
                    slice(1, None),
                    slice(None, None, 2),
                    slice(None, -1),
                ]
            )
        )
        if size > 2
        else slice(None)
        for size in shape
    )
    host, array = host[keys], array[keys]
    if len(shape) > 1 and draw(st.booleans()):
        host, array = host.T, array.T
    if draw(st.integers(0, 5)) == 0:
        host, array = host[..., None], array[..., None]
    axis = draw(
        st.one_of(
            st.none(),
            st.sets(st.integers(0, host.ndim - 1)).map(tuple) if host.ndim else st.just(()),
        )
    )
    return host, array, axis


@settings(max_examples=150, deadline=None)
@given(arrays(), st.data())
def test_as_numpy(case, data):
    x, array, axis = case
    op = data.draw(st.sampled_from(FUNCTIONS[dtype(x.dtype.name).kind]))
    if op.startswith("arg") and axis is not None:
        axis = axis[0] if axis else None
    compare(op, x, axis, data.draw(st.booleans()), array)


@pytest.mark.parametrize("name", ["bfloat16", "float32", "int64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((70_001,), None),  # parts of the whole
        ((3, 30_011), 1),  # parts of few long rows
        ((9_001, 5), 0),  # parts of few long columns
        ((9, 7, 2_003), (0, 2)),  # parts of rows of rows
        ((2_003, 3, 16), (0, 1)),  # parts of columns of columns
    ],
)
def test_results_shared_by_blocks(name, shape, axis, rng):
    x = values(rng, name, shape, False)
    for op in ("sum", "max", "argmin") if axis in (None, 0, 1) else ("sum", "max"):
        compare(op, x, axis, False, cyrt.asarray(x))
    if name != "int64":
        compare("var", x, axis, False, cyrt.asarray(x))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [8, 1_000, 1_004, 1_023])
def test_columns_of_few_rows(name, width, rng):
    """One thread computes a column, or several do; in vectors, and not."""
    for rows in (1, 2, 3, 4, 8, 64):
        x = values(rng, name, (rows, width), rows == 3)
        array = cyrt.asarray(x)
        for op in FUNCTIONS[dtype(name).kind]:
            compare(op, x, 0, False, array)
        for op in ("sum", "any"):
            compare(op, x[:, 1:], 0, False, array[:, 1:])
            compare(op, x[:, ::-1], 0, False, array[:, ::-1])


@pytest.mark.parametrize("name", ["uint8", "bfloat16", "float32"])
def test_outputs_of_columns_of_few_rows(name, rng):
    """Side by side, apart, and unaligned; what lies around them stays."""
    for rows in (2, 3, 8, 64):
        x = values(rng, name, (rows, 24, 40), False)
        array = cyrt.asarray(x)
        for op in ("max", "argmin", "any"):
            for axes in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 0, 1)):
                axis = axes.index(0)
                compare(op, x.transpose(axes), axis, False, array.transpose(axes))
            found = getattr(reduce, op)(array, axis=0).numpy()
            for key in (np.s_[:, :40], np.s_[:, 1:41], np.s_[:, 4:44], np.s_[:, 39::-1]):
                whole = cyrt.zeros((24, 45), dtype=found.dtype.name)
                expected = np.zeros((24, 45), found.dtype)
                expected[key] = found
                getattr(reduce, op)(array, axis=0, out=whole[key])
                np.testing.assert_array_equal(whole.numpy(), expected)


@pytest.mark.parametrize(("name", "width"), [("uint8", 4_325_384), ("bfloat16", 540_673)])
def test_columns_that_fill_the_device(name, width, rng):
    """A thread computes a column, whose 15 elements it loads in groups that become smaller."""
    few = values(rng, name, (15, 997), False)
    x = np.tile(few, -(-width // 997))[:, :width]
    array = cyrt.asarray(x)
    for op in ("max", "any") if name == "uint8" else ("max", "argmin", "sum", "var"):
        expected = getattr(reduce, op)(cyrt.asarray(few), axis=0).numpy()
        compare(op, few, 0, False, cyrt.asarray(few))
        found = getattr(reduce, op)(array, axis=0).numpy()
        expected = np.tile(expected, -(-width // 997))[:width]
        if op == "var":  # the tree of its additions is another one
            np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=2**-7)
        else:
            np.testing.assert_array_equal(found, expected)


def test_more_dimensions_than_a_kernel_has(rng):
    """Those that are kept in turn, those that are reduced through a copy."""
    x = rng.normal(size=(2,) * 18).astype(np.float32)
    even = tuple(range(0, 18, 2))
    for view, array in ((x, cyrt.asarray(x)),):
        compare("sum", view, even[:3], False, array)
        compare("var", view, tuple(range(1, 18, 2)), False, array)
    long = (
        rng.permutation(3**11)
        .reshape((3,) * 11)[::2, :, ::-1, :, ::2]
        .transpose(0, 4, 2, 8, 6, 10, 1, 9, 3, 5, 7)
    )
    whole = np.ascontiguousarray(long)
    base = cyrt.asarray(rng.permutation(whole.size).reshape(whole.shape))
    for op in ("argmax", "argmin"):
        view = base.numpy().T
        compare(op, view, None, False, base.T)


def test_variance_beside_a_large_mean(rng):
    x = (1e6 + rng.normal(size=(64, 4_000))).astype(np.float32)
    for axis in (None, 0, 1):
        found = reduce.var(cyrt.asarray(x), axis=axis).numpy()
        np.testing.assert_allclose(found, np.var(x.astype(np.float64), axis=axis), rtol=1e-4)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("outliers", [0, 1, 2, 5])
@pytest.mark.parametrize("mean", [0, 1e6])
def test_variance_as_good_as_two_passes(name, outliers, mean, rng):
    """Of large means and of outliers, at the beginning of what a thread takes, and elsewhere."""
    for shape in ((33, 7), (1000, 40), (6, 3000), (7, 20_001), (4096, 5), (40, 513)):
        x = mean + rng.normal(size=shape) * (1 if name == "float32" else 1e-3)
        for each, axis in ((x, 1), (x.T, 0), (x.reshape(1, -1), 1)):
            each = each.astype(name, order="C")
            for places in (range(outliers), rng.choice(each.shape[-1], outliers, replace=False)):
                each[..., places] = np.array([1e4, -1e6, 1e4, 3e5, 1e6])[:outliers]
            array = cyrt.asarray(np.ascontiguousarray(each if axis else each.T))
            wanted = each.astype(np.longdouble).var(-1).astype(np.float64)
            for function, power in ((reduce.var, 1), (reduce.std, 0.5)):
                found = function(array, axis=axis).numpy()
                np.testing.assert_allclose(
                    found, wanted**power, rtol=2e-6 if name == "float32" else 1e-13
                )


@pytest.mark.parametrize(("name", "value"), [("float32", 1e30), ("float64", -1e200)])
def test_variance_of_numbers_whose_squares_overflow(name, value):
    """Threads without elements add nothing."""
    for shape in ((2,), (33,), (5_000,), (7, 300), (300, 7)):
        x = cyrt.full(shape, value, dtype=name)
        for axis in (None, *range(len(shape))):
            assert not reduce.var(x, axis=axis).numpy().any(), (shape, axis)
        host = np.full(shape, value, name)
        host[..., ::2] *= -1
        assert reduce.var(cyrt.asarray(host)).item() == np.inf, shape
        host[..., -1] = np.inf
        assert np.isnan(reduce.std(cyrt.asarray(host)).item()), shape


def test_variance_beside_an_outlier(rng):
    """In any place, the first of a thread's elements too, whose distances are added."""
    x = (1e4 + 0.1 * rng.normal(size=(4_096, 6))).astype(np.float32)
    for place in (0, 1, 100, 4_095):
        y = x.copy()
        y[place] = -3e4
        for host, axis in ((y, 0), (np.ascontiguousarray(y.T), 1)):
            for each in (host, x if axis == 0 else x.T.copy()):
                found = reduce.var(cyrt.asarray(each), axis=axis).numpy()
                np.testing.assert_allclose(found, np.var(each.astype(float), axis=axis), rtol=1e-5)


def test_sums_are_as_accurate_as_a_tree(rng):
    x = rng.random(1_000_000).astype(np.float32)
    exact = math.fsum(x)
    array = cyrt.asarray(x)
    assert abs(reduce.sum(array).item() - exact) <= 1e-6 * exact
    columns = reduce.sum(cyrt.asarray(x.reshape(-1, 4)), axis=0).numpy()
    np.testing.assert_allclose(columns, x.reshape(-1, 4).sum(0, dtype=np.float64), rtol=1e-6)
    assert reduce.sum(array).numpy().tobytes() == reduce.sum(array).numpy().tobytes()


def test_16_bit_floats_are_added_in_float32():
    for name in ("float16", "bfloat16"):
        x = cyrt.asarray(np.ones(5_000, np.float32), dtype=name)
        assert reduce.sum(x).item() == pytest.approx(5_000, rel=4e-3)
        assert reduce.mean(x).item() == 1.0
    x = cyrt.asarray(np.full(4_000, 60.0, np.float16))
    assert reduce.mean(x).item() == 60.0  # whose sum is beyond float16
    assert math.isinf(reduce.sum(x).item())
    assert reduce.sum(x, dtype="float32").item() == 240_000


@pytest.mark.parametrize("name", ["int64", "float32"])
def test_places(name):
    """The first of equal elements; the first NaN before all."""
    host = np.zeros(3_001, dtype(name).numpy)
    host[[700, 1_800, 2_999]] = 5
    host[[17, 2_018]] = -5
    x = cyrt.asarray(host)
    assert reduce.argmax(x).item() == 700
    assert reduce.argmin(x).item() == 17
    assert reduce.argmax(x[::-1]).item() == 1
    assert reduce.argmin(cyrt.asarray(host[:3000].reshape(3, 1000)).T).item() == 17 * 3
    if name.startswith("float"):
        host[[2_500, 900]] = np.nan
        assert reduce.argmax(cyrt.asarray(host)).item() == 900
        assert reduce.argmin(cyrt.asarray(host)).item() == 900
        host[:] = -np.inf
        assert reduce.argmax(cyrt.asarray(host)).item() == 0


@pytest.mark.parametrize("name", ["uint8", "bfloat16", "float32"])
def test_places_of_views(name, rng):
    """Ties in every order of memory: indices that decrease along it, or skip."""
    host = rng.integers(0, 3, (65, 264)).astype(dtype(name).numpy)
    x = cyrt.asarray(host)
    for key in (np.s_[:], np.s_[::-1], np.s_[:, ::-1], np.s_[::-2, ::-1], np.s_[:, 8::-3]):
        for axis in (None, 0, 1):
            for op in ("argmax", "argmin"):
                for view, array in ((host[key], x[key]), (host[key].T, x[key].T)):
                    wanted = getattr(np, op)(view, axis=axis)
                    np.testing.assert_array_equal(getattr(reduce, op)(array, axis=axis), wanted)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_first_nan_of_many(name, rng):
    """Wherever it lies in its batch, behind infinities and before other NaN."""
    host = rng.normal(size=(3, 2_056)).astype(dtype(name).numpy)
    host[:, ::7] = np.inf
    for place in (0, 1, 8, 9, 31, 64, 511, 1_030, 2_055):
        found = host.copy()
        found[:, place:] = np.where(rng.random(host[:, place:].shape) < 0.3, np.nan, 1)
        found[:, place] = np.nan
        for array, axis in ((found, 1), (np.ascontiguousarray(found.T), 0)):
            for op in (reduce.argmax, reduce.argmin):
                assert op(cyrt.asarray(array), axis=axis).numpy().tolist() == [place] * 3
        assert reduce.argmax(cyrt.asarray(found[0])).item() == place


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_nan_is_both_extremes(name, rng):
    host = rng.normal(size=(97, 1_030)).astype(dtype(name).numpy)
    for row, column in ((0, 0), (3, 517), (96, 1_029), (50, 1)):
        host[row, column] = np.nan
        x = cyrt.asarray(host)
        for op in (reduce.max, reduce.min):
            assert math.isnan(op(x).item())
            for axis in (0, 1):
                np.testing.assert_array_equal(
                    np.isnan(op(x, axis=axis).numpy().astype(float)),
                    np.isnan(host.astype(float)).any(axis),
                )


def test_of_nothing():
    x = cyrt.empty((3, 0, 4), dtype="float32")
    for op, value in (
        ("sum", 0),
        ("prod", 1),
        ("any", False),
        ("all", True),
        ("count_nonzero", 0),
        ("logsumexp", -np.inf),
        ("mean", np.nan),
        ("var", np.nan),
        ("std", np.nan),
    ):
        for axis, shape in ((None, ()), (1, (3, 4)), ((0, 1), (4,)), (0, (0, 4))):
            found = getattr(reduce, op)(x, axis=axis).numpy()
            np.testing.assert_array_equal(found, np.full(shape, value))
    for op in ("max", "min", "argmax", "argmin"):
        for axis in (None, 1):
            with pytest.raises(ValueError, match=rf"{op}.*at least one element.*\(3, 0, 4\)"):
                getattr(reduce, op)(x, axis=axis)
        assert getattr(reduce, op)(x, axis=0).shape == (0, 4)
    wide = cyrt.empty((2, 0), dtype="int8")
    assert reduce.sum(wide, axis=1).dtype.name == "int64"


def test_of_no_axes_and_no_dimensions():
    x = cyrt.asarray(np.array([[1.5, -2.0]], np.float32))
    np.testing.assert_array_equal(reduce.sum(x, axis=()).numpy(), [[1.5, -2.0]])
    np.testing.assert_array_equal(reduce.var(x, axis=()).numpy(), [[0.0, 0.0]])
    np.testing.assert_array_equal(reduce.any(x, axis=()).numpy(), [[True, True]])
    zero = cyrt.asarray(np.float32(7))
    assert reduce.sum(zero).item() == reduce.max(zero, axis=(), keepdims=True).item() == 7
    assert reduce.argmin(zero).item() == 0


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("bool", "int64"),
        ("int8", "int64"),
        ("uint8", "uint64"),
        ("bfloat16", "bfloat16"),
        ("complex64", "complex64"),
    ],
)
def test_types_of_results(name, result):
    x = cyrt.asarray(np.ones((2, 3)), dtype=name)
    assert reduce.sum(x).dtype.name == result
    if name != "complex64":
        assert reduce.std(x).dtype.name == (name if name == "bfloat16" else "float32")
    for target in ("complex128",) if name == "complex64" else ("int16", "float32"):
        found = reduce.sum(x, dtype=target)
        assert found.dtype.name == target
        assert complex(found.item()) == 6


def test_integers_wrap_in_the_type_asked_for():
    x = cyrt.asarray(np.array([100, 100, 100], np.int8))
    assert reduce.sum(x).item() == 300
    assert reduce.sum(x, dtype="int8").item() == 44
    assert reduce.prod(x, dtype="uint16").item() == 1_000_000 % 65_536
    assert reduce.sum(cyrt.asarray(np.array([-1, -1], np.int8)), dtype="uint8").item() == 254


def test_corrections(rng):
    x = rng.normal(size=(5, 40))
    array = cyrt.asarray(x)
    for correction in (0, 1, 2.5):
        np.testing.assert_allclose(
            reduce.var(array, axis=1, correction=correction).numpy(),
            np.var(x, axis=1, ddof=correction),
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            reduce.std(array, correction=correction).numpy(), np.std(x, ddof=correction), rtol=1e-12
        )
    assert np.isinf(reduce.var(array, correction=500).item())
    for function, wanted in ((reduce.var, np.var), (reduce.std, np.std)):
        for options in ({"ddof": 0, "correction": 1}, {"ddof": 2, "correction": None}):
            kept = {name: each for name, each in options.items() if each is not None}
            np.testing.assert_allclose(
                function(array, **options).numpy(), wanted(x, **kept), rtol=1e-12
            )
    assert math.isnan(reduce.std(cyrt.asarray(np.float32(3)), correction=1).item())


def test_logsumexp_at_the_ends():
    for values_, result in (
        ([1000.0, 1000.0], 1000 + math.log(2)),
        ([-np.inf] * 3, -np.inf),
        ([-np.inf, 2.0], 2.0),
        ([np.inf, 1.0, -np.inf], np.inf),
        ([np.inf] * 2, np.inf),
        ([np.nan, np.inf], np.nan),
        ([-2000.0, -2000.0], -2000 + math.log(2)),
    ):
        x = np.array(values_, np.float32)
        np.testing.assert_allclose(reduce.logsumexp(cyrt.asarray(x)).numpy(), result, rtol=1e-6)
        tall = np.repeat(x[:, None], 5, 1)
        np.testing.assert_allclose(
            reduce.logsumexp(cyrt.asarray(tall), axis=0).numpy(), np.full(5, result), rtol=1e-6
        )


def test_bad_input():
    x = cyrt.asarray(np.ones((2, 3), np.float32))
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        reduce.sum(x, axis=2)
    with pytest.raises(np.exceptions.AxisError):
        reduce.argmax(x, axis=-3)
    with pytest.raises(ValueError, match="twice"):
        reduce.max(x, axis=(0, -2))
    with pytest.raises(TypeError, match="axis: expected an int"):
        reduce.argmin(x, axis=(0, 1))
    with pytest.raises(TypeError, match="axis: expected an int, got float"):
        reduce.mean(x, axis=1.0)
    with pytest.raises(TypeError, match=r"expected an Array, got numpy\.ndarray"):
        reduce.sum(np.ones(3))
    for function in cyrt.sum, cyrt.prod, cyrt.mean, cyrt.var:
        with pytest.raises(TypeError, match=r"dtype: .* got 1; .* tuple, such as axis=\(0, 1\)"):
            function(x, 0, 1)
    with pytest.raises(TypeError, match=r"max: out: .* got 1; .* tuple, such as axis=\(0, 1\)"):
        cyrt.max(x, 0, 1)
    with pytest.raises(TypeError, match="max: not for complex64; it takes bool, int8"):
        reduce.max(cyrt.asarray(np.ones(3, np.complex64)))
    with pytest.raises(TypeError, match="var: not for complex128"):
        reduce.std(cyrt.asarray(np.ones(3, np.complex128)))
    with pytest.raises(TypeError, match="correction: expected an int or a float, got str"):
        reduce.var(x, correction="1")
    with pytest.raises(TypeError, match="dtype: expected a numeric type, got bool"):
        reduce.sum(x, dtype="bool")
    with pytest.raises(ValueError, match=r"a correction or ddof, .* got 1 and 2"):
        reduce.var(x, correction=1, ddof=2)
    with pytest.raises(TypeError, match="mean: dtype: expected a floating-point type, got int32"):
        reduce.mean(x, dtype="int32")
    with pytest.raises(ValueError, match=r"sum: the result has shape \(3,\), .* shape \(2,\)"):
        reduce.sum(x, 0, out=cyrt.zeros(2))
    with pytest.raises(TypeError, match="max: a result of float32 cannot be written into int64"):
        reduce.max(x, 0, out=cyrt.zeros(3, dtype="int64"))


def test_signatures():
    """The first arguments are NumPy's, in its order."""
    order = ["axis", "dtype", "out", "ddof", "keepdims", "initial", "where"]
    for name in FUNCTIONS["f"]:
        parameters = inspect.signature(getattr(reduce, name)).parameters
        first, *others = parameters.values()
        assert first.kind is first.POSITIONAL_ONLY
        positional = [each.name for each in others if each.kind is each.POSITIONAL_OR_KEYWORD]
        assert positional == [each for each in order if each in positional]
        assert positional[0] == "axis"
        assert getattr(reduce, name).__doc__


@pytest.mark.gpu
def test_more_elements_than_32_bits_count():
    n = 2**32 + 5
    x = cyrt.ones((n,), dtype="bool")
    assert reduce.count_nonzero(x).item() == n
    x[n - 2 : n - 1] = False
    assert reduce.argmin(x).item() == n - 2
    assert not reduce.all(x).item()
    tall = x[: n - 1].reshape((n - 1) // 2, 2)
    np.testing.assert_array_equal(reduce.sum(tall, axis=0).numpy(), [n // 2, n // 2 - 1])
    many = reduce.sum(tall, axis=1)
    assert reduce.sum(many).item() == n - 2
