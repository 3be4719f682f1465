"""Keys: what random numbers are a function of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from operator import index
from typing import SupportsIndex

from cyrt.kernels.generating import philox

_BITS = 1 << 64
# The last word of a counter: what comes of a key beside numbers; see kernels_cu/include/philox.cuh.
_SPLIT, _CALL = 2, 3


@dataclass(frozen=True, slots=True)
class Key:
    """What random numbers are a function of; made by `key` and `split`.

    Immutable, on the host, small; equal keys give equal numbers, on every device.

    Attributes
    ----------
    bits : int
        64 bits.
    """

    bits: int

    def __repr__(self) -> str:
        return f"Key({self.bits:#018x})"


def _seeded(seed: SupportsIndex) -> Key:
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"seed: expected an int, got {seed!r}")
    number = index(seed)
    if not -(_BITS >> 1) <= number < _BITS:
        raise ValueError(f"seed: expected an int of 64 bits, got {number}")
    return Key(number % _BITS)


def _derived(parent: int, number: int, purpose: int) -> int:
    low, high, _, _ = philox((number & 0xFFFFFFFF, number >> 32, 0, purpose), parent)
    return high << 32 | low


# What calls without a key take theirs from: a key's bits, and how many calls there were.
_default: tuple[int, Iterator[int]] = (int.from_bytes(os.urandom(8), "little"), count())


def key(seed: SupportsIndex) -> Key:
    """The key of a seed.

    Parameters
    ----------
    seed : int
        Of 64 bits, with or without a sign.

    Raises
    ------
    TypeError, ValueError
        It is no int, or has more bits.
    """
    return _seeded(seed)


def split(key: Key, n: SupportsIndex = 2) -> tuple[Key, ...]:
    """Keys of which the numbers have nothing to do with each other, nor with the given key's.

    Parameters
    ----------
    key : Key
    n : int
        How many.

    Returns
    -------
    tuple of Key
        The first ones are the same whatever n is.
    """
    parent = _check_key(key, "split")
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"split: n: expected an int, got {n!r}")
    if index(n) < 0:
        raise ValueError(f"split: n: expected 0 or more, got {n}")
    return tuple(Key(_derived(parent.bits, each, _SPLIT)) for each in range(index(n)))


def seed(seed: SupportsIndex) -> None:
    """Begin anew with what calls without a key give.

    Each such call takes the next of a sequence of keys, which all threads share: with several
    threads, which of them gets which depends on their timing. Until this is called the sequence
    is another one in each process.

    Parameters
    ----------
    seed : int
        As for `key`.
    """
    global _default
    _default = _seeded(seed).bits, count()


def of_call(parent: Key, number: int) -> Key:
    """The key of the call of that number, of those that a key serves."""
    return Key(_derived(parent.bits, number, _CALL))


def bits_of(key: Key | None, name: str) -> int:
    """The key's bits, or those of the process's next key where it is None."""
    if key is None:
        parent, calls = _default
        return _derived(parent, next(calls), _CALL)
    return _check_key(key, name).bits


def _check_key(key: Key, name: str) -> Key:
    if not isinstance(key, Key):
        raise TypeError(f"{name}: key: expected a Key, made by cyrt.random.key or "
                        f"cyrt.random.split, got {key!r}")
    return key
