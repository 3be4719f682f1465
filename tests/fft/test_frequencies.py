"""The frequencies of Fourier transforms, and their order, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 100, 5001])
@pytest.mark.parametrize("d", [1.0, 0.1, 3])
def test_frequencies(n, d):
    for name in ("fftfreq", "rfftfreq"):
        expected = getattr(np.fft, name)(n, d)
        function = getattr(cyrt.fft, name)
        assert np.array_equal(function(n, d, dtype="float64").numpy(), expected)
        found = function(n, d)
        assert found.dtype == "float32"
        assert np.allclose(found.numpy(), expected, rtol=1e-6)
        narrow = function(n, d, dtype="float16").numpy()
        assert np.allclose(narrow.astype("float64"), expected, rtol=2e-3, atol=1e-7)


def test_what_is_refused():
    for function in (cyrt.fft.fftfreq, cyrt.fft.rfftfreq):
        with pytest.raises(ValueError, match="n: expected 1 or more points, got 0"):
            function(0)
        with pytest.raises(TypeError, match="n: expected an int, got float"):
            function(2.5)
        with pytest.raises(TypeError, match="dtype: expected a real floating-point type, got int"):
            function(4, dtype="int64")
        for d in ("1", 1j, cyrt.ones(4)):
            with pytest.raises(TypeError, match="d: expected a number, got "):
                function(4, d)
    for function in (cyrt.fft.fftshift, cyrt.fft.ifftshift):
        with pytest.raises(TypeError, match="x: expected an Array, got list"):
            function([1, 2])
        with pytest.raises(np.exceptions.AxisError):
            function(cyrt.ones(3), axes=1)


@pytest.mark.parametrize("shape", [(5,), (6,), (4, 5), (3, 2, 7), (0, 3)])
def test_shifts(shape):
    x = np.arange(np.prod(shape)).reshape(shape)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, -1, (0, -1) if len(shape) > 1 else (0,), [0]):
            expected = getattr(np.fft, name)(x, axes)
            found = getattr(cyrt.fft, name)(cyrt.asarray(x), axes)
            assert np.array_equal(found.numpy(), expected)
