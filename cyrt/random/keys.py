"""Keys, on which random numbers depend."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import wraps
from itertools import count
from operator import index
from typing import Any, SupportsIndex, TypeVar

from cyrt.builtin.random import philox
from cyrt.explaining import is_explained

_Function = TypeVar("_Function", bound=Callable[..., Any])
_BITS = 1 << 64
# The last word of a counter for keys that are derived; see kernels_cu/include/philox.cuh.
_SPLIT, _CALL = 2, 3


@dataclass(frozen=True, slots=True)
class Key:
    """A key, on which random numbers depend; `key` and `split` make keys.

    It is immutable and on the host. Equal keys give equal numbers on every device.

    Attributes
    ----------
    bits : int
        64 bits.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.key(7) == cyrt.random.Key(7)
    True
    """

    bits: int

    def __repr__(self) -> str:
        return f"Key({self.bits:#018x})"


def _read_seed(seed: SupportsIndex) -> Key:
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"seed: expected an int, got {seed!r}")
    number = index(seed)
    if not -(_BITS >> 1) <= number < _BITS:
        raise ValueError(f"seed: expected an int of 64 bits, got {number}")
    return Key(number % _BITS)


def _derive(parent: int, number: int, purpose: int) -> int:
    low, high, _, _ = philox((number & 0xFFFFFFFF, number >> 32, 0, purpose), parent)
    return high << 32 | low


class Calls:
    """Calls that use the keys of a sequence, one after the other.

    If a call raises an error, or is only explained, the next call uses its key.

    Parameters
    ----------
    parent : Key
        The sequence depends only on it.
    """

    def __init__(self, parent: Key) -> None:
        self._parent, self._numbers = parent, count()
        self._left: list[int] = []

    def copy(self) -> Calls:
        """Return the same sequence, from the next call on."""
        own = Calls(self._parent)
        own._numbers, own._left = copy(self._numbers), self._left.copy()
        return own

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function with the next key."""
        try:
            number = self._left.pop()
        except IndexError:
            number = next(self._numbers)
        try:
            key = Key(_derive(self._parent.bits, number, _CALL))
            result = function(*args, key=key, **options)
        except BaseException:
            self._left.append(number)
            raise
        if is_explained():
            self._left.append(number)
        return result


# Those without a key.
_default = Calls(Key(int.from_bytes(os.urandom(8), "little")))


def keyed(function: _Function) -> _Function:
    """Call a function of random numbers with the process's next key if the caller gives no key."""

    @wraps(function)
    def call(*args: Any, key: Key | None = None, **options: Any) -> Any:
        if key is None:
            return _default.call(function, *args, **options)
        return function(*args, key=key, **options)

    return call  # type: ignore[return-value]  # it takes what the function takes


def key(seed: SupportsIndex) -> Key:
    """Make a key from a seed.

    Parameters
    ----------
    seed : int
        An int of 64 bits, signed or unsigned.

    Raises
    ------
    TypeError, ValueError
        The seed is not an int, or has more bits.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.key(7)
    Key(0x0000000000000007)
    """
    return _read_seed(seed)


def split(key: Key, n: SupportsIndex = 2) -> tuple[Key, ...]:
    """Derive keys; their numbers are independent of each other and of those of the given key.

    Parameters
    ----------
    key : Key
    n : int
        The number of keys.

    Returns
    -------
    tuple of Key
        The first keys do not depend on n.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.split(cyrt.random.key(7))
    (Key(0xc949274536500fee), Key(0xac39d6b5092c163f))
    """
    parent = _check_key(key, "split")
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"split: n: expected an int, got {n!r}")
    if index(n) < 0:
        raise ValueError(f"split: n: expected 0 or more, got {n}")
    return tuple(Key(_derive(parent.bits, each, _SPLIT)) for each in range(index(n)))


def seed(seed: SupportsIndex) -> None:
    """Restart the sequence of keys for calls without a key.

    All threads share the sequence, so the key that a thread gets depends on their timing. Until
    this function is called, the sequence is different in each process.

    Parameters
    ----------
    seed : int
        An int of 64 bits, signed or unsigned, as for `key`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.seed(7)
    >>> cyrt.random.randint(10, size=4)
    Array([9, 4, 1, 4], dtype=int64)
    """
    global _default
    _default = Calls(_read_seed(seed))


def sequence() -> Calls:
    """Return the process's sequence of keys from the next call on, which stays as it is."""
    return _default.copy()


def use(calls: Calls) -> Calls:
    """Let the process use a copy of another sequence of keys; return the one that it used."""
    global _default
    used, _default = _default, calls.copy()
    return used


def bits_of(key: Key | None, name: str) -> int:
    """Return the bits of the key of a function that is `keyed`."""
    return _check_key(key, name).bits


@keyed
def next_key(*, key: Key | None = None) -> Key:
    """Return the process's next key."""
    return _check_key(key, "next_key")


def _check_key(key: Key | None, name: str) -> Key:
    if not isinstance(key, Key):
        raise TypeError(
            f"{name}: key: expected a Key, made by cyrt.random.key or "
            f"cyrt.random.split, got {key!r}"
        )
    return key
