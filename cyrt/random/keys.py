"""Keys, on which random numbers depend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from itertools import count
from operator import index
from threading import local
from typing import Any, NoReturn, SupportsIndex, TypeVar

from cyrt.builtin.random import philox
from cyrt.error_text import show
from cyrt.explaining import is_explained

_Function = TypeVar("_Function", bound=Callable[..., Any])
_BITS = 1 << 64
# The last word of a counter for keys that are derived; see kernels_cu/include/philox.cuh.
_SPLIT, _CALL, _FOLD = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Key:
    """A key, on which random numbers depend; :func:`key` and :func:`split` make keys.

    A key is immutable and on the host. Equal keys give equal numbers on every device.

    Attributes
    ----------
    bits : int
        The key's 64 bits, an int without a sign.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.key(7) == cyrt.random.Key(7)
    True
    """

    bits: int

    def __repr__(self) -> str:
        return f"Key({self.bits:#018x})"


def _bits_of_int(value: SupportsIndex, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected an int, got {show(value)}")
    number = index(value)
    if not -(_BITS >> 1) <= number < _BITS:
        raise ValueError(f"{name}: expected an int of 64 bits, got {number}")
    return number % _BITS


def _read_seed(seed: SupportsIndex) -> Key:
    return Key(_bits_of_int(seed, "seed"))


def _derive(parent: int, number: int, purpose: int) -> int:
    low, high, _, _ = philox((number & 0xFFFFFFFF, number >> 32, 0, purpose), parent)
    return high << 32 | low


class _Thread(local):
    """The keys that a thread's calls have used, and those that they are to use again."""

    used: list[Key] | None = None
    again: list[Key] | None = None  # the next one is the last


_thread = _Thread()


@contextmanager
def noted() -> Iterator[list[Key]]:
    """Yield a list to which this thread appends the key of each call without the argument `key`."""
    outer, own = _thread.used, list[Key]()
    _thread.used = own
    try:
        yield own
    finally:
        _thread.used = outer
        if outer is not None:
            outer += own


@contextmanager
def used_again(used: list[Key]) -> Iterator[None]:
    """Let the calls of this thread without the argument `key` use the keys that an earlier run has
    noted, in their order. No sequence of keys advances.

    Raises
    ------
    RuntimeError
        There are more calls, or fewer.
    """
    before, left = (_thread.used, _thread.again), used[::-1]
    _thread.used, _thread.again = None, left
    try:
        yield
        if left:
            _refuse_other_calls("fewer")
    finally:
        _thread.used, _thread.again = before


def _refuse_other_calls(count: str) -> NoReturn:
    raise RuntimeError(
        "a function that is computed again for its gradient asked for random numbers "
        f"{count} times than before; it must compute the same again"
    )


class Calls:
    """Calls that use the keys of a sequence, one after the other.

    If a call raises an error, or is only explained, the next call uses its key.

    Parameters
    ----------
    parent : Key
        The key on which alone the sequence depends.
    """

    def __init__(self, parent: Key, first: int = 0, left: Iterable[int] = ()) -> None:
        self._parent, self._numbers = parent, count(first)
        self._left = list(left)

    @property
    def state(self) -> tuple[int, ...]:
        """The bits of the parent, the number of the next call, and the numbers of the calls whose
        keys other calls will use."""
        # A counter is read without advancing it by its text alone.
        return self._parent.bits, int(repr(self._numbers)[len("count(") : -1]), *self._left

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function with the next key."""
        again = _thread.again
        if again is None:
            key, result = self._call(function, args, options)
        else:
            if not again:
                _refuse_other_calls("more")
            key = again[-1]
            result = function(*args, key=key, **options)
            again.pop()
        if _thread.used is not None:
            _thread.used.append(key)
        return result

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Key, Any]:
        """Return the next key of the sequence, and the result of a call with it."""
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
        return key, result


# Those without a key. The first one makes it: processes that were forked before have their own.
_default: Calls | None = None


def _process_calls() -> Calls:
    global _default
    if _default is None:
        _default = Calls(Key(int.from_bytes(os.urandom(8), "little")))
    return _default


def keyed(function: _Function) -> _Function:
    """Call a function of random numbers with the process's next key if the caller gives no key."""

    @wraps(function)
    def call(*args: Any, key: Key | None = None, **options: Any) -> Any:
        try:
            if key is None:
                return _process_calls().call(function, *args, **options)
            return function(*args, key=key, **options)
        except TypeError:
            if any(isinstance(each, Key) for each in args):
                _refuse_position(function)
            raise

    return call  # type: ignore[return-value]  # it takes what the function takes


def _refuse_position(function: Callable[..., Any]) -> NoReturn:
    """Raise a TypeError if a key is passed by position, as in JAX."""
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
    names = [each.name for each in signature(function).parameters.values() if each.kind in kinds]
    raise TypeError(
        f"{function.__name__}: the key is given by name, {function.__name__}(..., key=key); the "
        f"arguments by position are {', '.join(names)}"
    ) from None


def key(seed: SupportsIndex) -> Key:
    """Make a key from a seed.

    Parameters
    ----------
    seed : int
        An int of 64 bits, signed or unsigned.

    Returns
    -------
    Key

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
    """Derive keys from a key.

    The numbers of the new keys are independent of each other and of those of `key`.

    Parameters
    ----------
    key : Key
        The key to derive from.
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
        raise TypeError(f"split: n: expected an int, got {show(n)}")
    if index(n) < 0:
        raise ValueError(f"split: n: expected 0 or more, got {n}")
    return tuple(Key(_derive(parent.bits, each, _SPLIT)) for each in range(index(n)))


def fold_in(key: Key, data: SupportsIndex) -> Key:
    """Derive a key from a key and a number, such as that of a step, a layer or a device.

    Parameters
    ----------
    key : Key
        The key to derive from.
    data : int
        An int of 64 bits, signed or unsigned.

    Returns
    -------
    Key
        A key for each value of `data`. Its random numbers are independent of those of the keys for
        other values, of those of `key`, and of those of the keys that :func:`split` derives.

    Raises
    ------
    TypeError, ValueError
        `key` is not a Key, or `data` is not an int, or has more bits.

    Notes
    -----
    This does what ``jax.random.fold_in`` does, but gives other keys: the first 64 bits of
    Philox4x32-10 with the counter ``(data % 2**32, data // 2**32, 0, 4)``.

    Examples
    --------
    >>> import cyrt
    >>> key = cyrt.random.key(7)
    >>> [cyrt.random.fold_in(key, step) for step in range(2)]
    [Key(0xc924333d184cc830), Key(0x6bb70dfbc713d1b7)]
    """
    bits = _bits_of_int(data, "fold_in: data")
    return Key(_derive(_check_key(key, "fold_in").bits, bits, _FOLD))


def seed(seed: SupportsIndex) -> None:
    """Restart the sequence of keys for calls without a key.

    All threads share the sequence, so the key that a thread gets depends on their timing. Until
    this function is called, the sequence is different in each process.

    Parameters
    ----------
    seed : int
        An int of 64 bits, signed or unsigned, as for :func:`key`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.seed(7)
    >>> cyrt.random.randint(10, size=4)
    Array([9, 4, 1, 4], dtype=int64)
    """
    global _default
    _default = Calls(_read_seed(seed))


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
            f"cyrt.random.split, got {show(key)}"
        )
    return key
