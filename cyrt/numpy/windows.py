"""Window functions: NumPy computes them on the host, in float64."""

from __future__ import annotations

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.creation import asarray

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(M: int) -> Array:
    """The Bartlett window, a triangle of M points, as float32.

    Parameters
    ----------
    M : int
        The number of points.

    Returns
    -------
    Array
        Shape (M,), float32, on the current device.

    Notes
    -----
    NumPy's ``numpy.bartlett`` computes it.
    """
    return asarray(np.bartlett(M), dtype="float32")


def blackman(M: int) -> Array:
    """The Blackman window of M points, as float32.

    Parameters
    ----------
    M : int
        The number of points.

    Returns
    -------
    Array
        Shape (M,), float32, on the current device.

    Notes
    -----
    NumPy's ``numpy.blackman`` computes it.
    """
    return asarray(np.blackman(M), dtype="float32")


def hamming(M: int) -> Array:
    """The Hamming window of M points, as float32.

    Parameters
    ----------
    M : int
        The number of points.

    Returns
    -------
    Array
        Shape (M,), float32, on the current device.

    Notes
    -----
    NumPy's ``numpy.hamming`` computes it.
    """
    return asarray(np.hamming(M), dtype="float32")


def hanning(M: int) -> Array:
    """The Hann window of M points, as float32.

    Parameters
    ----------
    M : int
        The number of points.

    Returns
    -------
    Array
        Shape (M,), float32, on the current device.

    Notes
    -----
    NumPy's ``numpy.hanning`` computes it.
    """
    return asarray(np.hanning(M), dtype="float32")


def kaiser(M: int, beta: float) -> Array:
    """The Kaiser window of M points, as float32; a greater beta makes it narrower.

    Parameters
    ----------
    M : int
        The number of points.
    beta : float
        The shape of the window.

    Returns
    -------
    Array
        Shape (M,), float32, on the current device.

    Notes
    -----
    NumPy's ``numpy.kaiser`` computes it.
    """
    return asarray(np.kaiser(M, beta), dtype="float32")
