"""The lines and passes of a Fourier transform, and the factors that its kernels read.

Factors are computed in float64 from angles of at most an eighth of a turn, so that each is the
nearest number of its type, or the next one to it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Factors = np.ndarray[Any, np.dtype[np.complexfloating]]

RADICES = (8, 7, 5, 4, 3, 2)
# Lines of columns are shorter than others: a block transforms several, so that it reads whole
# sectors of memory.
LONGEST_COLUMN = 2048
_ALIGNED = 16  # bytes


def is_direct(n: int) -> bool:
    """Return whether the prime factors of a length are 2, 3, 5 and 7."""
    for prime in (2, 3, 5, 7):
        while n % prime == 0:
            n //= prime
    return n == 1


@functools.lru_cache(maxsize=1024)
def radices(n: int) -> tuple[int, ...]:
    """Return the radices of the passes over a line of n points."""
    if n == 1:
        return (1,)
    found = []
    while n > 1:
        # 16 is 4 * 4, not 8 * 2.
        radix = next(r for r in RADICES if n % r == 0 and not (r == 8 and n & -n == 16))
        found.append(radix)
        n //= radix
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def lines(n: int, longest: int) -> tuple[int, ...]:
    """Return the points of the lines of a direct transform, launch by launch: their product is n.

    Parameters
    ----------
    n : int
        The points of the transform, with no prime factors but 2, 3, 5 and 7.
    longest : int
        The most points of a line.
    """
    if n <= longest:
        return (n,)
    columns = [each for each in _divisors(n) if each <= min(longest, LONGEST_COLUMN)]
    found: list[tuple[int, ...]] = [(a, n // a) for a in columns if n // a <= longest]
    found = found or [
        (a, b, n // (a * b))
        for a in columns
        for b in columns
        if n % (a * b) == 0 and n // (a * b) <= longest
    ]
    return min(found, key=max)


def _divisors(n: int) -> list[int]:
    found = [1]
    for prime in (2, 3, 5, 7):
        powers = [1]
        while n % (powers[-1] * prime) == 0:
            powers.append(powers[-1] * prime)
        found = [each * power for each in found for power in powers]
    return found


@functools.lru_cache(maxsize=1024)
def convolution_length(n: int) -> int:
    """Return the least length, a power of 2 times a small odd number, of a convolution that gives a
    transform of n points."""
    least = 2 * n - 1
    return min(odd << max(0, math.ceil(math.log2(least / odd))) for odd in (1, 3, 5, 7, 9))


def roots(numerators: Any, n: int) -> Factors:
    """Return exp(-2 pi i k / n) for the integers k, complex128."""
    k = np.asarray(numerators, np.int64) % n
    quarter = (4 * k + n // 2) // n
    angle = (4 * k - quarter * n) / n * (np.pi / 2)
    cos, sin = np.cos(angle), np.sin(angle)
    quarter %= 4
    found: Factors = np.empty(k.shape, np.complex128)
    found.real = np.choose(quarter, (cos, -sin, -cos, sin))
    found.imag = np.choose(quarter, (-sin, -cos, sin, cos))
    return found


def chirp(n: int) -> Factors:
    """Return exp(-pi i k ** 2 / n) for k < n, complex128."""
    k = np.arange(n, dtype=np.int64)
    return roots(k * k, 2 * n)


def _roots_of_passes(n: int) -> Factors:
    """Return the factors of the passes over a line: pass by pass, those of point r of the
    butterflies, r from 1 on, for k below the product `done` of the radices before."""
    found, done = [], 1
    for radix in radices(n):
        r, k = np.arange(1, radix)[:, None], np.arange(done)
        found.append(roots(r * k, radix * done).ravel())
        done *= radix
    return np.concatenate(found)


@dataclass(frozen=True)
class Tables:
    """The factors of a transform in one piece of memory, with the offsets of its tables.

    Attributes
    ----------
    data : numpy.ndarray
        Bytes.
    points : int
        The points of the direct transforms: n, or those of the convolution.
    lines : tuple of int
        The points of the lines of each launch.
    roots : tuple of int
        The offsets of the factors of passes, by launch.
    high, low, low_bits : int
        The offsets of the factors between launches, and the bits of the index of the second one.
    chirp, spectrum, conjugate : int
        The offsets of the tables of a convolution: of the input, of the spectrum, of the result.
    half : int
        The offset of exp(-pi i k / n) for k < n, of a packed line.
    """

    data: np.ndarray[Any, np.dtype[np.uint8]]
    points: int
    lines: tuple[int, ...]
    roots: tuple[int, ...]
    high: int
    low: int
    low_bits: int
    chirp: int
    spectrum: int
    conjugate: int
    half: int


def is_packed(n: int, longest: int) -> bool:
    """Return whether n real numbers are transformed as a line of n / 2 complex points."""
    return n % 2 == 0 and n // 2 <= longest and is_direct(n // 2)


def tables(n: int, longest: int, dtype: str, packed: bool = False) -> Tables:
    """Compute the tables of a transform of n points in lines of at most `longest` points; `packed`:
    of a line of n points that are pairs of real numbers."""
    pieces: list[np.ndarray[Any, np.dtype[np.uint8]]] = []
    end = 0

    def put(values: Factors, kind: str = dtype) -> int:
        nonlocal end
        begin = end
        data = values.astype(kind).view(np.uint8)
        pieces.append(np.pad(data, (0, -len(data) % _ALIGNED)))
        end += len(pieces[-1])
        return begin

    points = n if is_direct(n) else convolution_length(n)
    split = lines(points, longest)
    starts = tuple(put(_roots_of_passes(each)) for each in split)
    high = low = bits = to_input = spectrum = to_result = half = 0
    if packed:
        half = put(roots(np.arange(n), 2 * n))
    if len(split) > 1:
        bits = (points.bit_length() + 1) // 2
        low = put(roots(np.arange(1 << bits), points), "complex128")
        high = put(roots(np.arange(-(-points // (1 << bits))) << bits, points), "complex128")
    if points != n:
        factors = chirp(n)
        kernel = np.zeros(points, np.complex128)
        kernel[:n] = factors.conj()
        kernel[points - n + 1 :] = kernel[n - 1 : 0 : -1]
        to_input = put(factors)
        spectrum = put(np.fft.fft(kernel) / points)
        to_result = put(factors.conj())
    data = np.concatenate(pieces)
    return Tables(data, points, split, starts, high, low, bits, to_input, spectrum, to_result, half)
