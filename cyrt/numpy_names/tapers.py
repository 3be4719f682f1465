"""Weights that fade a signal out towards both ends; computed on the host, in float64."""

from __future__ import annotations

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.creation import asarray


def bartlett(M: int) -> Array:
    """A triangle of M points, 0 at both ends: float32."""
    return asarray(np.bartlett(M), dtype="float32")


def blackman(M: int) -> Array:
    """Blackman's weights of M points: float32."""
    return asarray(np.blackman(M), dtype="float32")


def hamming(M: int) -> Array:
    """Hamming's weights of M points: float32."""
    return asarray(np.hamming(M), dtype="float32")


def hanning(M: int) -> Array:
    """Hann's weights of M points, a cosine from 0 to 1 and back: float32."""
    return asarray(np.hanning(M), dtype="float32")


def kaiser(M: int, beta: float) -> Array:
    """Kaiser's weights of M points: the greater beta, the faster they fade; float32."""
    return asarray(np.kaiser(M, beta), dtype="float32")
