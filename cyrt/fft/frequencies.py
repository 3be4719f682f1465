"""The frequencies of the results of Fourier transforms, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, SupportsIndex

from cyrt.dtypes import DEFAULTS
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.ops.arange import arange
from cyrt.ops.arguments import axes_of, check_array, int_of, type_name
from cyrt.ops.copy import astype
from cyrt.ops.manipulation import roll


def fftfreq(n: SupportsIndex, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of the results of :func:`cyrt.fft.fft`.

    Parameters
    ----------
    n : int
        The length of the transform.
    d : float
        The distance between samples; frequencies are in cycles per unit of it.
    dtype : DType, optional
        A real floating-point type, by default float32.
    device : Device, optional
        By default the current one.

    Returns
    -------
    Array
        Shape (n,): 0, 1, ..., -2, -1, each divided by ``n * d``.

    Raises
    ------
    ValueError
        n is less than 1.
    ZeroDivisionError
        d is 0.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.fft.fftfreq(5, d=0.1)
    Array([ 0.,  2.,  4., -4., -2.], dtype=float32)
    """
    return ifftshift(_multiples("fftfreq", n, d, dtype, device, whole=True))


def rfftfreq(
    n: SupportsIndex, /, d: float = 1.0, *, dtype: Any = None, device: Any = None
) -> Array:
    """Return the frequencies of the results of :func:`cyrt.fft.rfft`.

    Parameters
    ----------
    n : int
        The length of the transform.
    d, dtype, device
        As for :func:`cyrt.fft.fftfreq`.

    Returns
    -------
    Array
        Shape (n // 2 + 1,): 0, 1, ..., n // 2, each divided by ``n * d``.

    Raises
    ------
    ValueError
        n is less than 1.
    ZeroDivisionError
        d is 0.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.fft.rfftfreq(5, d=0.1)
    Array([0., 2., 4.], dtype=float32)
    """
    return _multiples("rfftfreq", n, d, dtype, device, whole=False)


def _multiples(name: str, n: Any, d: float, dtype: Any, device: Any, *, whole: bool) -> Array:
    """Return frequencies in ascending order, from the lowest one or from 0."""
    points = int_of(n, f"{name}: n")
    if points < 1:
        raise ValueError(f"{name}: n: expected 1 or more points, got {points}")
    if not isinstance(d, Real):
        raise TypeError(f"{name}: d: expected a number, got {type_name(d)}")
    kind = DEFAULTS["f"] if dtype is None else _dtype(dtype)
    if kind.kind != "f":
        raise TypeError(f"{name}: dtype: expected a real floating-point type, got {kind}")
    # Types of 16 bits do not have all of the integers.
    wide = DEFAULTS["f"] if kind.itemsize < 4 else kind
    first, end = (-(points // 2), (points + 1) // 2) if whole else (0, points // 2 + 1)
    found = arange(first, end, dtype=wide, device=device) * (1.0 / (points * d))
    return found if wide is kind else astype(found, kind)


def fftshift(x: Array, /, axes: int | Sequence[int] | None = None) -> Array:
    """Move the frequency 0 from the first place to the middle.

    Parameters
    ----------
    x : Array
        An array of any type.
    axes : int or sequence of int, optional
        The axes of frequencies; by default all.

    Returns
    -------
    Array
        A new array of x's shape and type.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.fft.fftshift(cyrt.fft.fftfreq(5, d=0.1))
    Array([-4., -2.,  0.,  2.,  4.], dtype=float32)
    """
    return _rolled("fftshift", x, axes, forward=True)


def ifftshift(x: Array, /, axes: int | Sequence[int] | None = None) -> Array:
    """Move the frequency 0 from the middle to the first place: the inverse of
    :func:`cyrt.fft.fftshift`.

    Parameters
    ----------
    x : Array
        An array of any type.
    axes : int or sequence of int, optional
        The axes of frequencies; by default all.

    Returns
    -------
    Array
        A new array of x's shape and type.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.arange(5)
    >>> cyrt.fft.ifftshift(cyrt.fft.fftshift(x))
    Array([0, 1, 2, 3, 4], dtype=int64)
    """
    return _rolled("ifftshift", x, axes, forward=False)


def _rolled(name: str, x: Any, axes: Any, *, forward: bool) -> Array:
    array = check_array(x, f"{name}: x")
    along = axes_of(axes, array.ndim, f"{name}: axes")
    halves = [array.shape[axis] // 2 for axis in along]
    return roll(array, tuple(half if forward else -half for half in halves), along)
