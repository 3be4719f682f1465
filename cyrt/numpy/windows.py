"""Window functions: NumPy computes them on the host, in float64."""

from __future__ import annotations

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.creation import asarray

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(M: int) -> Array:
    """The Bartlett window, a triangle of M points, as float32."""
    return asarray(np.bartlett(M), dtype="float32")


def blackman(M: int) -> Array:
    """The Blackman window of M points, as float32."""
    return asarray(np.blackman(M), dtype="float32")


def hamming(M: int) -> Array:
    """The Hamming window of M points, as float32."""
    return asarray(np.hamming(M), dtype="float32")


def hanning(M: int) -> Array:
    """The Hann window of M points, as float32."""
    return asarray(np.hanning(M), dtype="float32")


def kaiser(M: int, beta: float) -> Array:
    """The Kaiser window of M points, as float32; a greater beta makes it narrower."""
    return asarray(np.kaiser(M, beta), dtype="float32")
