"""Everyday functions of NumPy beside NumPy: histograms of several dimensions, bits, whole numbers,
padding, quantiles by all methods, subscripts as lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cyrt


def same(found, wanted, rtol=1e-6, kind=True):
    found = found.numpy()
    assert found.shape == np.shape(wanted)
    if kind:
        assert found.dtype.kind == np.asarray(wanted).dtype.kind
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-12)


# -- whole numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_divisors(name, dtype, rng):
    limits = np.iinfo(dtype)
    low = max(limits.min, -50)
    a, b = (rng.integers(low, 50, 400).astype(dtype) for _ in range(2))
    a[:6], b[:6] = [0, 0, 7, limits.max, 1, 12], [0, 9, 0, limits.max, limits.max, 18]
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(a, b)
    np.testing.assert_array_equal(getattr(cyrt, name)(cyrt.asarray(a), cyrt.asarray(b)), wanted)
    found = getattr(cyrt, name)(cyrt.asarray(a), 6)
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(a, np.array(6, dtype)))
    assert getattr(cyrt, name)(12, 18) == getattr(np, name)(12, 18)


def test_divisors_of_the_least_number():
    least = np.array([-(2**31), -(2**31)], np.int32)
    other = np.array([6, -(2**31)], np.int32)
    found = cyrt.gcd(cyrt.asarray(least), cyrt.asarray(other))
    np.testing.assert_array_equal(found.numpy(), np.gcd(least, other))
    with pytest.raises(TypeError, match="gcd: not for float32; it takes"):
        cyrt.gcd(cyrt.ones(3), 2)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_frexp(name, rng):
    x = rng.normal(size=200) * 10.0 ** rng.integers(-4, 4, 200)
    x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -0.5, 6e-8]
    x = x.astype(cyrt.dtype(name).numpy)
    mantissa, exponent = cyrt.frexp(cyrt.asarray(x))
    wanted = np.frexp(x.astype(np.float64))
    assert (mantissa.dtype, exponent.dtype) == (name, "int32")
    np.testing.assert_array_equal(mantissa.numpy().astype(np.float64), wanted[0])
    finite = np.isfinite(x.astype(np.float64))
    np.testing.assert_array_equal(exponent.numpy()[finite], wanted[1][finite])


def test_frexp_of_subnormal_numbers_and_integers():
    x = np.array([5e-324, -3e-310, 2.2e-308, 1e-302, 1.7e308])
    for found, wanted in zip(cyrt.frexp(cyrt.asarray(x)), np.frexp(x), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert cyrt.frexp(cyrt.asarray([8]))[1].tolist() == [4]
    assert cyrt.frexp(8.0) == (0.5, 4)
    with pytest.raises(TypeError, match="frexp: x: expected a real type, got complex64"):
        cyrt.frexp(cyrt.ones(2, dtype="complex64"))


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("shape", [(0,), (1,), (8,), (19,), (3, 13), (2, 8, 5)], ids=str)
def test_bits(bitorder, shape, rng):
    bits = rng.integers(0, 3, shape)
    octets = rng.integers(0, 256, shape).astype(np.uint8)
    for axis in (None, *range(-len(shape), len(shape))):
        for each in (bits, bits > 0, bits.astype(np.uint8)):
            found = cyrt.packbits(cyrt.asarray(each), axis, bitorder)
            np.testing.assert_array_equal(found.numpy(), np.packbits(each, axis, bitorder))
            assert found.dtype == cyrt.uint8
        for count in (None, 0, 3, 17, 500, -1):
            if count and octets.size == 0:
                continue  # NumPy refuses -1, and leaves more bits as they are
            found = cyrt.unpackbits(cyrt.asarray(octets), axis, count, bitorder)
            wanted = np.unpackbits(octets, axis, count, bitorder)
            np.testing.assert_array_equal(found.numpy(), wanted)


# -- histograms ------------------------------------------------------------------------------------

BINS = [4, [3, 5], [[-1, 0, 0.5, 2], 4], [np.array([-1.0, 0, 1]), np.array([-2.0, 0, 2])]]


@pytest.mark.parametrize("bins", BINS, ids=str)
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram2d(bins, density, weighted, rng):
    x, y, weights = (rng.normal(size=300) for _ in range(3))
    x[0], y[1] = np.nextafter(2, 3), 2.0
    ours = (
        bins
        if isinstance(bins, int)
        else [cyrt.asarray(each) if isinstance(each, np.ndarray) else each for each in bins]
    )
    more = {"weights": weights} if weighted else {}
    wanted = np.histogram2d(x, y, bins, density=density, **more)
    more = {"weights": cyrt.asarray(weights)} if weighted else {}
    found = cyrt.histogram2d(cyrt.asarray(x), cyrt.asarray(y), ours, density=density, **more)
    for each, result in zip(found, wanted, strict=True):
        same(each, result, 1e-9)


def test_histogramdd(rng):
    sample = rng.normal(size=(200, 3))
    for bins, limits in ((3, None), ((2, 3, 4), [(-1, 1), None, (0, 2)])):
        wanted, edges = np.histogramdd(sample, bins, limits)
        for given in (cyrt.asarray(sample), [cyrt.asarray(each.copy()) for each in sample.T]):
            found, found_edges = cyrt.histogramdd(given, bins, limits)
            same(found, wanted)
            for each, other in zip(found_edges, edges, strict=True):
                same(each, other, 1e-12)
    line = rng.normal(size=50)
    found, _ = cyrt.histogramdd(cyrt.asarray(line), 4)
    same(found, np.histogramdd(line, 4)[0])
    assert cyrt.histogram2d(cyrt.zeros(0), cyrt.zeros(0), 3)[0].tolist() == [[0] * 3] * 3


# -- padding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "complex64"])
@pytest.mark.parametrize("mode", ["mean", "maximum", "minimum", "linear_ramp"])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4)], ids=str)
def test_padding(dtype, mode, shape, rng):
    if dtype == "complex64" and mode in ("maximum", "minimum"):
        return
    x = (rng.integers(0, 100, shape) + 0.25).astype(dtype)
    for width in (0, 2, (1, 3), [(2, 5)] * len(shape)):
        cases = [{}]
        if mode == "linear_ramp":
            cases += [{"end_values": 7}, {"end_values": (2, 90)}]
        else:
            cases += [{"stat_length": 2}, {"stat_length": (1, 3)}]
        for more in cases:
            found = cyrt.pad(cyrt.asarray(x), width, mode, **more)
            assert found.dtype == dtype
            same(found, np.pad(x, width, mode, **more), 1e-6)


def test_what_padding_refuses():
    for mode, more in (
        ("reflect", "constant_values"),
        ("mean", "end_values"),
        ("edge", "stat_length"),
    ):
        with pytest.raises(
            ValueError, match=f"pad: {more}: the mode '{mode}' has no such argument"
        ):
            cyrt.pad(cyrt.ones((2, 2)), 1, mode, **{more: 3})
    with pytest.raises(ValueError, match="pad: mode: expected one of constant, edge, linear_ramp,"):
        cyrt.pad(cyrt.ones(3), 1, "median")
    with pytest.raises(ValueError, match="pad: stat_length: expected ints of 1 or more, got 0"):
        cyrt.pad(cyrt.ones(3), 1, "mean", stat_length=0)
    with pytest.raises(ValueError, match="pad: axis 0 is empty: it has nothing for mode 'mean'"):
        cyrt.pad(cyrt.ones(0), 1, "mean")


# -- quantiles -------------------------------------------------------------------------------------

METHODS = [
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 101])
def test_methods_of_quantiles(method, n, rng):
    x = rng.normal(size=(3, n))
    q = [0, 0.1, 0.25, 0.375, 0.5, 0.7, 0.999, 1]
    same(cyrt.quantile(cyrt.asarray(x), q, 1, method=method), np.quantile(x, q, 1, method=method))
    found = cyrt.percentile(cyrt.asarray(x), 30, method=method)
    same(found, np.percentile(x, 30, method=method))
    x[1, : n // 2] = np.nan
    found = cyrt.nanquantile(cyrt.asarray(x), q, 1, method=method)
    same(found, np.nanquantile(x, q, 1, method=method))


def test_a_method_that_there_is_not():
    with pytest.raises(
        ValueError, match="quantile: method: expected one of 'inverted_cdf'.*'cubic'"
    ):
        cyrt.quantile(cyrt.ones(3), 0.5, method="cubic")


# -- products --------------------------------------------------------------------------------------


def test_einsum_into_an_array_and_in_a_type(rng):
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    out = cyrt.zeros((3, 5), dtype="float64")
    assert cyrt.einsum("ij,jk->ik", x, y, out=out) is out
    same(out, a @ b, 1e-12)
    found = cyrt.einsum("ij,jk", x.astype("float32"), y.astype("float32"), dtype="float64")
    assert found.dtype == cyrt.float64
    whole = cyrt.asarray(np.full((300,), 100, np.uint8))
    assert int(cyrt.einsum("i->", whole, dtype="int64")) == 30_000
    with pytest.raises(
        TypeError, match="einsum: dtype: operands of float64 cannot be cast to int64"
    ):
        cyrt.einsum("ij->", x, dtype="int64")
    with pytest.raises(TypeError, match="cannot be written into"):
        cyrt.einsum("ij->", x, out=cyrt.zeros((), dtype="int64"))


def test_einsum_of_lists(rng):
    a, b = rng.normal(size=(3, 4, 2)), rng.normal(size=(4, 2, 5))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    for arguments in (
        (a, [0, 1, 2], b, [1, 2, 3], [0, 3]),
        (a, [0, 1, 2], b, [1, 2, 3]),
        (a, [30, 2, 1], b, [2, 1, 0]),
        (a, [..., 1], [..., 1]),
        (a, [0, 1, 2], []),
    ):
        ours = [{id(a): x, id(b): y}.get(id(each), each) for each in arguments]
        same(cyrt.einsum(*ours), np.einsum(*arguments), 1e-12)
    with pytest.raises(
        TypeError, match="einsum: expected a list of ints behind each operand, got A"
    ):
        cyrt.einsum(x, y)
    with pytest.raises(ValueError, match="einsum: subscripts: expected ints from 0 to 51, got 60"):
        cyrt.einsum(x, [0, 1, 60])


# -- elements and axes -----------------------------------------------------------------------------


def test_types_of_fmod_and_float_power(rng):
    x, y = rng.integers(-20, 20, 30), rng.integers(1, 9, 30)
    a, b = cyrt.asarray(x), cyrt.asarray(y)
    same(cyrt.fmod(a, b, dtype="float64"), np.fmod(x, y, dtype=np.float64))
    same(cyrt.float_power(a, b, dtype="complex128"), np.float_power(x, y, dtype=np.complex128))
    assert cyrt.fmod(7, 4, dtype=np.float64) == 3
    with pytest.raises(TypeError, match="fmod: dtype: operands of float32 are not computed in int"):
        cyrt.fmod(cyrt.ones(3), 2.0, dtype="int32")
    with pytest.raises(
        TypeError, match="float_power: dtype: expected float64 or complex128, got f"
    ):
        cyrt.float_power(a, 2, dtype="float32")


def test_i0(rng):
    x = rng.normal(size=200) * 10
    same(cyrt.i0(cyrt.asarray(x)), np.i0(x), 1e-12)
    same(cyrt.i0(cyrt.asarray([1, 2])), np.i0([1, 2]))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unwrap(axis, rng):
    x = np.cumsum(rng.normal(size=(6, 7)) * 2, axis) % (2 * np.pi)
    same(cyrt.unwrap(cyrt.asarray(x), axis=axis), np.unwrap(x, axis=axis), 1e-10)
    same(cyrt.unwrap(cyrt.asarray(x), 5, axis), np.unwrap(x, 5, axis), 1e-10)
    for period in (4, 5, 7.5):
        whole = np.cumsum(rng.integers(-3, 4, (6, 7)), axis) % int(period)
        same(
            cyrt.unwrap(cyrt.asarray(whole), axis=axis, period=period),
            np.unwrap(whole, axis=axis, period=period),
        )


def test_axes_that_are_moved_and_reduced(rng):
    x = rng.normal(size=(2, 3, 4))
    a = cyrt.asarray(x)
    for axis, start in itertools.product(range(-3, 3), range(-3, 4)):
        same(cyrt.rollaxis(a, axis, start), np.rollaxis(x, axis, start))
    with pytest.raises(IndexError, match="rollaxis: start: expected -3 to 3, got 4"):
        cyrt.rollaxis(a, 0, 4)
    same(cyrt.apply_over_axes(cyrt.sum, a, (0, 2)), np.apply_over_axes(np.sum, x, (0, 2)))
    same(cyrt.apply_over_axes(cyrt.cumsum, a, 1), np.apply_over_axes(np.cumsum, x, 1))
    with pytest.raises(
        ValueError, match="apply_over_axes: func: expected 3 dimensions or one less"
    ):
        cyrt.apply_over_axes(lambda x, axis: x[0, 0], a, 0)


def test_asfortranarray(rng):
    a = cyrt.asarray(rng.normal(size=(3, 4)))
    found = cyrt.asfortranarray(a)
    assert found.flags.f_contiguous
    assert cyrt.asfortranarray(found) is found
    np.testing.assert_array_equal(found.numpy(), a.numpy())
    assert cyrt.asfortranarray(3.0).shape == (1,)
    assert cyrt.asfortranarray([[1, 2], [3, 4]], "float64").dtype == cyrt.float64


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_orders(order, rng):
    x = rng.normal(size=(2, 3, 4))
    views = [
        lambda x: x,
        lambda x: x.T,
        lambda x: x.transpose(1, 2, 0),
        lambda x: x[:, ::-1],
        lambda x: x[:, :, ::2],
        lambda x: x.transpose(2, 0, 1)[::-1],
        lambda x: x[0],
        lambda x: x[:, :1].T,
    ]
    for view in views:
        a, host = view(cyrt.asarray(x)), view(x)
        same(cyrt.ravel(a, order), np.ravel(host, order))
        same(a.flatten(order), host.flatten(order))
        if order != "K":
            shape = (host.size // 2, 2)
            same(a.reshape(shape, order=order), host.reshape(shape, order=order))
    if order == "K":
        with pytest.raises(ValueError, match="reshape: order: expected 'C', 'F' or 'A', got 'K'"):
            cyrt.reshape(cyrt.ones(4), (2, 2), order)


def test_take_along_no_axis(rng):
    x, indices = rng.normal(size=(3, 4)), rng.integers(0, 12, 5)
    found = cyrt.take_along_axis(cyrt.asarray(x), cyrt.asarray(indices), None)
    same(found, np.take_along_axis(x, indices, None))
    with pytest.raises(ValueError, match="take_along_axis: indices: expected 1 dimensions"):
        cyrt.take_along_axis(cyrt.asarray(x), cyrt.asarray(indices[None]), None)


def test_isin_of_what_is_unique():
    x = cyrt.asarray([1, 2, 3])
    assert cyrt.isin(x, cyrt.asarray([3, 1]), True).tolist() == [True, False, True]
    assert cyrt.isin(x, [2], assume_unique=True, invert=True).tolist() == [True, False, True]


def test_get_array_module():
    assert cyrt.get_array_module(np.ones(3), 1) is np
    assert cyrt.get_array_module(1, cyrt.ones(3)) is cyrt
    assert cyrt.get_array_module() is np


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("kernel", [[1, np.inf], [np.inf, 1, 2], [1, np.nan, -np.inf, 3]])
def test_no_zero_of_padding_meets_an_infinity(kernel, mode):
    for values in ([1, 2, 3], [1, np.inf, 2, 5, -1], [3.0]):
        a, v = np.array(values, "float32"), np.array(kernel, "float32")
        with np.errstate(all="ignore"):
            for name in ("convolve", "correlate"):
                wanted = getattr(np, name)(a, v, mode)
                found = getattr(cyrt, name)(cyrt.asarray(a), cyrt.asarray(v), mode)
                np.testing.assert_array_equal(found.numpy(), wanted)
