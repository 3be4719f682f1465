"""Discrete Fourier transforms by own kernels against NumPy's in float64."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt.builtin import fft_tables, library_fft

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL_INPUT = ("rfft", "ihfft", "rfftn", "rfft2")
# The relative error in the 2-norm, in epsilons: that of a direct transform grows with the logarithm
# of the length; a convolution is three of at most nine times the length.
DIRECT, CONVOLVED = 4, 12
EPSILON = {"complex64": 2.0**-23, "complex128": 2.0**-52}


@pytest.fixture(autouse=True, scope="module")
def without_library():
    library_fft.decide(0, False)
    yield
    library_fft.decide(0)


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.normal(size=shape)
    return np.asarray(found, dtype)


def inputs_of(name, shape, wide=False, seed=0):
    if name in REAL_INPUT:
        return numbers(shape, "float64" if wide else "float32", seed)
    return numbers(shape, "complex128" if wide else "complex64", seed)


def widened(x):
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def check(found, expected, epsilons=CONVOLVED, wide=False):
    assert isinstance(found, cyrt.Array)
    host = found.numpy()
    assert host.shape == expected.shape
    assert host.dtype.kind == expected.dtype.kind
    assert host.dtype.itemsize == expected.dtype.itemsize // (1 if wide else 2)
    scale = np.linalg.norm(expected)
    error = np.linalg.norm(host.astype(expected.dtype) - expected)
    epsilon = EPSILON["complex128" if wide else "complex64"]
    assert error <= epsilons * epsilon * scale + 1e-300, error / max(scale, 1e-300) / epsilon


def epsilons_of(n):
    return DIRECT if fft_tables.is_direct(n) else CONVOLVED


@pytest.mark.parametrize("begin", range(1, 301, 50))
def test_every_length(begin):
    for n in range(begin, begin + 50):
        x = numbers((2, n), "complex64", n)
        check(cyrt.fft.fft(cyrt.asarray(x)), np.fft.fft(widened(x)), epsilons_of(n))
        check(cyrt.fft.ifft(cyrt.asarray(x)), np.fft.ifft(widened(x)), epsilons_of(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 97, 100, 256, 1000])
@pytest.mark.parametrize("name", ONE)
def test_lengths_of_each_function(name, n):
    if n == 1 and name in ("irfft", "hfft"):
        return
    for wide in (False, True):
        x = inputs_of(name, (3, n), wide, n)
        for norm in ("backward", "ortho", "forward"):
            expected = getattr(np.fft, name)(widened(x), norm=norm)
            check(getattr(cyrt.fft, name)(cyrt.asarray(x), norm=norm), expected, wide=wide)


@pytest.mark.parametrize(
    "n",
    [521, 1009, 2003, 4099, 6561, 8000, 8064, 8191, 8192, 10007, 15625, 16384, 3 << 13, 1 << 16],
)
def test_long_ones(n):
    for wide in (False, True) if n < 16000 else (False,):
        x = inputs_of("fft", n, wide, n)
        spectrum = np.fft.fft(x.astype("complex128"))
        check(cyrt.fft.fft(cyrt.asarray(x)), spectrum, epsilons_of(n), wide)
        half = x.real.copy()
        spectrum = np.fft.rfft(half.astype("float64"))
        check(cyrt.fft.rfft(cyrt.asarray(half)), spectrum, epsilons_of(n), wide)
        narrow = spectrum.astype(x.dtype)
        expected = np.fft.irfft(widened(narrow), n)
        check(cyrt.fft.irfft(cyrt.asarray(narrow), n), expected, epsilons_of(n), wide)


@pytest.mark.parametrize("n", [2, 6, 14, 16, 30, 98, 1024, 12000, 16384, 16386])
@pytest.mark.parametrize("name", ["rfft", "irfft", "hfft", "ihfft"])
def test_pairs_of_real_numbers(name, n):
    """Of strided inputs along both axes, cut and padded."""
    size = n if name in REAL_INPUT else n // 2 + 1
    x = inputs_of(name, (6, size), seed=n)
    device, reference = cyrt.asarray(x), getattr(np.fft, name)
    function = getattr(cyrt.fft, name)
    check(function(device, n), reference(widened(x), n))
    check(function(device[::-2, ::-1], n), reference(widened(x[::-2, ::-1]), n))
    check(function(device.T, n, 0), reference(widened(x.T), n, 0))
    check(function(device[:, : size - 1 or 1], n), reference(widened(x[:, : size - 1 or 1]), n))
    if name in ("irfft", "hfft"):
        check(function(device.real, n), reference(widened(x.real), n))


@pytest.mark.parametrize("n", [(1 << 20) - 1, (1 << 20) + 1])
def test_a_million_points(n):
    """A convolution of two million points."""
    x = numbers(n, "complex64")
    check(cyrt.fft.fft(cyrt.asarray(x)), np.fft.fft(widened(x)), epsilons_of(n))


def test_three_launches(monkeypatch):
    """Columns are shorter here, so that fewer points need three launches."""
    monkeypatch.setattr(fft_tables, "LONGEST_COLUMN", 16)
    fft_tables.lines.cache_clear()
    try:
        x = numbers((2, 1 << 18), "complex64")
        assert fft_tables.lines(1 << 18, 8192) == (16, 16, 1024)
        check(cyrt.fft.fft(cyrt.asarray(x)), np.fft.fft(widened(x)), DIRECT)
    finally:
        fft_tables.lines.cache_clear()


def test_lines_of_the_longest_transforms():
    """Three launches suffice, whatever the factors are."""
    for n in (1 << 30, 5**12, 7**10, 3**18, 2**3 * 7**9, 9 << 28, 6**10):
        for longest in (4096, 8192):
            found = fft_tables.lines(n, longest)
            assert np.prod(found) == n
            assert len(found) <= 3
            assert max(found) <= longest
            for each in found:
                assert len(fft_tables.radices(each)) <= 8


# -- axes, strides, sizes --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_axes_and_strides(name, axis):
    base = inputs_of(name, (8, 18, 20))
    device = cyrt.asarray(base)
    for cut in (
        (slice(None),) * 3,
        (slice(1, 7), slice(None, None, 3), slice(2, 12)),
        (slice(None, None, -1), slice(4, None), slice(None, None, -2)),
        (slice(2, 5), slice(3, 4), slice(None)),
    ):
        view = base[cut]
        if view.shape[axis] == 1 and name in ("irfft", "hfft"):
            continue
        expected = getattr(np.fft, name)(widened(view), axis=axis)
        check(getattr(cyrt.fft, name)(device[cut], axis=axis), expected)
        if name != "hfft":
            turned = getattr(np.fft, name)(widened(view.T), axis=axis)
            check(getattr(cyrt.fft, name)(device[cut].T, axis=axis), turned)


def test_elements_that_share_memory():
    x = numbers((1, 6), "complex64")
    shared = cyrt.broadcast_to(cyrt.asarray(x), (4, 6))
    for axis in (0, 1):
        expected = np.fft.fft(np.broadcast_to(widened(x), (4, 6)), axis=axis)
        found = cyrt.fft.fft(shared, axis=axis).numpy()
        assert np.allclose(found, expected, atol=1e-5)


def test_parts_of_complex_numbers():
    x = numbers((5, 12), "complex64")
    device = cyrt.asarray(x)
    check(cyrt.fft.rfft(device.imag), np.fft.rfft(widened(x).imag))
    check(cyrt.fft.fft(device.real, axis=0), np.fft.fft(widened(x).real, axis=0))


def test_many_dimensions():
    shape = (2, 1, 3, 2, 1, 2, 2, 3, 2, 2)
    x = numbers(shape, "complex64")
    device = cyrt.asarray(x)
    check(cyrt.fft.fft(device, axis=4), np.fft.fft(widened(x), axis=4))
    check(cyrt.fft.fftn(device.T), np.fft.fftn(widened(x.T)))
    check(cyrt.fft.fft(device.T[::-1, ::2], axis=2), np.fft.fft(widened(x.T[::-1, ::2]), axis=2))


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n", [1, 2, 5, 9, 10, 11, 16, 23, 31])
def test_cut_and_padded(name, n):
    x = inputs_of(name, (4, 10, 3))
    for norm in ("backward", "ortho", "forward"):
        expected = getattr(np.fft, name)(widened(x), n, 1, norm)
        check(getattr(cyrt.fft, name)(cyrt.asarray(x), n, 1, norm), expected)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_long_ones_cut_and_padded(name):
    for n, size in ((12000, 9001), (9001, 20000), (10007, 5000)):
        x = inputs_of(name, (2, size))
        expected = getattr(np.fft, name)(widened(x), n)
        check(getattr(cyrt.fft, name)(cyrt.asarray(x), n), expected)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(name):
    x = inputs_of(name, (6, 5, 8))
    device = cyrt.asarray(x)
    reference, function = getattr(np.fft, name), getattr(cyrt.fft, name)
    check(function(device), reference(widened(x)))
    check(function(device.T, norm="ortho"), reference(widened(x.T), norm="ortho"))
    for s, axes in (
        ((4, 9), (0, 2)),
        ((7, 3), (-1, 0)),
        ((-1, 6), (1, 2)),
        ((6, -1), (0, 2)),
        (None, (2, 1)),
        (None, (1, 0)),
    ):
        for norm in ("backward", "forward"):
            expected = reference(widened(x), s, axes, norm)
            check(function(device, s, axes, norm), expected)
    assert np.array_equal(device.numpy(), x)


def test_axes_that_are_repeated():
    x = numbers((4, 6), "complex64")
    check(cyrt.fft.fftn(cyrt.asarray(x), axes=(1, 1)), np.fft.fftn(widened(x), axes=(1, 1)))
    check(cyrt.fft.fftn(cyrt.asarray(x), (3, 5), (0, 0)), np.fft.fftn(widened(x), (3, 5), (0, 0)))


def test_no_axes():
    x = cyrt.asarray([1.0, 2.0])
    assert cyrt.fft.fftn(x, axes=()).dtype == "complex64"
    assert cyrt.fft.fftn(cyrt.asarray(3.0)).numpy() == 3
    with pytest.raises(ValueError, match="rfftn: expected 1 or more axes, got none"):
        cyrt.fft.rfftn(x, axes=())


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (4, 0)])
def test_no_elements(shape):
    x = cyrt.zeros(shape, dtype="complex64")
    found = cyrt.fft.fft(x, 6, axis=-1)
    assert found.shape == (*shape[:-1], 6)
    assert (found.numpy() == 0).all()
    assert cyrt.fft.irfft(x, 6).shape == (*shape[:-1], 6)


def test_many_lines():
    for shape, axis in (((70_000, 4), 1), ((4, 70_000), 0), ((3, 500, 7), 1)):
        x = numbers(shape, "complex64")
        check(cyrt.fft.fft(cyrt.asarray(x), axis=axis), np.fft.fft(widened(x), axis=axis))


# -- properties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 64, 101, 4096])
def test_linearity_parseval_and_inversion(n):
    a, b = numbers((2, 3, n), "complex64")
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    left = cyrt.fft.fft(2 * x + y).numpy()
    assert np.allclose(left, (2 * cyrt.fft.fft(x) + cyrt.fft.fft(y)).numpy(), atol=1e-4 * n**0.5)
    energy = (np.abs(left.astype("complex128")) ** 2).sum() / n
    assert np.isclose(energy, (np.abs(widened(2 * a + b)) ** 2).sum(), rtol=1e-5)
    check(cyrt.fft.ifft(cyrt.fft.fft(x)), widened(a), 2 * CONVOLVED)
    real = cyrt.asarray(a.real.copy())
    check(cyrt.fft.irfft(cyrt.fft.rfft(real), n), widened(a.real), 2 * CONVOLVED)
    check(cyrt.fft.hfft(cyrt.fft.ihfft(real), n), widened(a.real), 2 * CONVOLVED)


def test_impulses_are_exact():
    """The transform of an impulse has the roots themselves, each rounded once."""
    for n in (12, 60, 512, 1 << 15):
        x = np.zeros(n, np.complex64)
        x[1] = 1
        expected = np.fft.fft(x.astype("complex128"))
        found = cyrt.fft.fft(cyrt.asarray(x)).numpy()
        assert np.abs(found - expected).max() <= 2.0**-22


def test_nan_spreads_within_its_line():
    x = numbers((3, 16), "complex64")
    x[1, 5] = np.nan
    found = cyrt.fft.fft(cyrt.asarray(x)).numpy()
    assert np.isnan(found[1]).all()
    assert not np.isnan(found[[0, 2]]).any()


def test_repeated_calls_are_equal():
    x = cyrt.asarray(numbers((5, 360), "complex64"))
    first = cyrt.fft.fft(x).numpy()
    for _ in range(20):
        assert np.array_equal(cyrt.fft.fft(x).numpy(), first)


# -- types and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "spectrum", "real"),
    [
        ("bool", "complex64", "float32"),
        ("int8", "complex64", "float32"),
        ("int64", "complex64", "float32"),
        ("uint16", "complex64", "float32"),
        ("float16", "complex64", "float32"),
        ("bfloat16", "complex64", "float32"),
        ("float32", "complex64", "float32"),
        ("float64", "complex128", "float64"),
    ],
)
def test_types(dtype, spectrum, real):
    x = cyrt.asarray([0, 1, 1, 0, 1], dtype=dtype)
    host = np.array([0, 1, 1, 0, 1.0])
    for name in ("fft", "rfft", "ifft", "ihfft", "fftn", "rfftn"):
        found = getattr(cyrt.fft, name)(x)
        assert found.dtype == spectrum
        assert np.allclose(found.numpy(), getattr(np.fft, name)(host), atol=1e-6)
    for name in ("irfft", "hfft", "irfftn"):
        found = getattr(cyrt.fft, name)(x)
        assert found.dtype == real
        assert np.allclose(found.numpy(), getattr(np.fft, name)(host), atol=1e-6)


def test_what_is_refused():
    x = cyrt.ones((4, 6), dtype="complex64")
    with pytest.raises(TypeError, match="rfft: x: expected a real type, got complex64"):
        cyrt.fft.rfft(x)
    with pytest.raises(TypeError, match="ihfft: x: expected a real type, got complex64"):
        cyrt.fft.ihfft(x)
    with pytest.raises(ValueError, match="fft: n: expected 1 to 1,073,741,824 points, got 0"):
        cyrt.fft.fft(x, 0)
    with pytest.raises(ValueError, match="fft: n: expected 1 to .* points, got 2,147,483,648"):
        cyrt.fft.fft(x, 1 << 31)
    with pytest.raises(TypeError, match="fft: n: expected an int, got float"):
        cyrt.fft.fft(x, 4.0)
    with pytest.raises(ValueError, match=r"got 0 along axis 1 of shape \(4, 0\)"):
        cyrt.fft.fft(x[:, :0])
    with pytest.raises(ValueError, match=r"irfft: expected a transform of 1 to .*, got 0 along"):
        cyrt.fft.irfft(x[:, :1])
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        cyrt.fft.fft(x, axis=2)
    with pytest.raises(np.exceptions.AxisError):
        cyrt.fft.fft(cyrt.asarray(1.0))
    with pytest.raises(
        ValueError, match="norm: expected 'backward', 'ortho' or 'forward', got 'x'"
    ):
        cyrt.fft.fft(x, norm="x")
    with pytest.raises(ValueError, match="fftn: norm: expected"):
        cyrt.fft.fftn(x, norm="x")
    with pytest.raises(ValueError, match="s: expected a length for each of 1 axes, got 2"):
        cyrt.fft.fftn(x, (1, 2), (0,))
    with pytest.raises(TypeError, match="s: expected a sequence of int, got int"):
        cyrt.fft.fftn(x, 3)
    with pytest.raises(TypeError, match="axes: expected a sequence of int, got int"):
        cyrt.fft.fftn(x, axes=1)
    for function in (cyrt.fft.fft, cyrt.fft.fftn):
        with pytest.raises(TypeError, match="x: expected an Array, got list"):
            function([1.0, 2.0])


# -- how they are launched -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "launches", "kernel"),
    [
        ((8, 4096), 1, "cyrt_fft_complex64_simple"),
        ((1 << 16,), 2, "cyrt_fft_complex64"),
        ((4, 11), 2, "cyrt_fft_complex64"),
        ((30, 40), 1, "cyrt_fft_complex64_simple"),
    ],
)
def test_explain(shape, launches, kernel):
    found = cyrt.explain(cyrt.fft.fft, cyrt.Example(shape, "complex64"))
    assert found.kernel == kernel
    assert found.launches == launches
    assert found.expression == "sum(a[j] * exp(-2 * pi * i * j * k / n))"
    # What was only explained leaves nothing that later calls would use.
    x = numbers(shape, "complex64")
    check(cyrt.fft.fft(cyrt.asarray(x)), np.fft.fft(widened(x)))


def test_streams_share_tables():
    x = numbers((4, 2310), "complex64")
    device = cyrt.asarray(x)
    found = [cyrt.fft.fft(device)]
    for _ in range(2):
        with cyrt.stream(cyrt.Stream()):
            found.append(cyrt.fft.fft(device))
    for each in found:
        check(each, np.fft.fft(widened(x)))


def test_in_a_batch():
    x = numbers((4, 48), "complex64")
    with cyrt.batch():
        device = cyrt.asarray(x)
        found = cyrt.fft.ifft2(cyrt.fft.fft2(device) * 2)
    check(found, 2 * widened(x))


def test_memory_is_flat():
    x = cyrt.asarray(numbers((4, 101), "complex64"))
    for _ in range(3):
        cyrt.fft.fft(x)
    cyrt.synchronize()
    before = cyrt.memory_stats()["in_use"]
    for _ in range(300):
        cyrt.fft.fft(x)
    cyrt.synchronize()
    assert cyrt.memory_stats()["in_use"] == before
