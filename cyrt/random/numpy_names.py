"""NumPy's other names of random functions, and its generator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod
from operator import index
from typing import Any, SupportsIndex

from cyrt.dtypes import DEFAULTS
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import assign, astype
from cyrt.ops.creation import asarray
from cyrt.ops.functions import log1p
from cyrt.ops.scan import cumulative_sum
from cyrt.ops.search import searchsorted
from cyrt.ops.take import take
from cyrt.random import keys
from cyrt.random.distributions import (
    Real,
    Shape,
    common_device,
    normal,
    parameter,
    randint,
    uniform,
)
from cyrt.random.keys import Key
from cyrt.random.sampling import permutation


def rand(*shape: SupportsIndex) -> Array:
    """Numbers evenly spread over [0, 1); see :func:`cyrt.random.uniform`."""
    return uniform(shape=shape)


def randn(*shape: SupportsIndex) -> Array:
    """Numbers of the standard normal distribution; see :func:`cyrt.random.normal`."""
    return normal(shape=shape)


def random(size: Shape | None = None, *, dtype: Any = None, key: Key | None = None) -> Array:
    """Numbers evenly spread over [0, 1); of no dimensions where no size is given."""
    return uniform(size=size, dtype=dtype, key=key)


def standard_normal(
    size: Shape | None = None, dtype: Any = None, *, key: Key | None = None,
) -> Array:
    """Numbers of the standard normal distribution; of no dimensions where no size is given."""
    return normal(size=size, dtype=dtype, key=key)


def exponential(
    scale: Real = 1.0, size: Shape | None = None, *, dtype: Any = None, key: Key | None = None,
) -> Array:
    """Exponentially distributed numbers.

    Parameters
    ----------
    scale : float or Array
        Their mean; an array is broadcast with the size.
    size : int or tuple of int, optional
        The shape; the scale's where left out.
    dtype, key
        As for :func:`cyrt.random.uniform`.

    Raises
    ------
    ValueError
        The scale is negative, or not finite.
    """
    scale = parameter(scale, "exponential", "scale")
    if not isinstance(scale, Array) and scale < 0:
        raise ValueError(f"exponential: scale: expected 0 or more, got {scale}")
    if size is None:
        size = scale.shape if isinstance(scale, Array) else ()
    return -scale * log1p(-uniform(shape=size, dtype=dtype, key=key,
                                   device=common_device(None, scale)))


def choice(
    a: Array | Sequence[float] | SupportsIndex, size: Shape | None = None, replace: bool = True,
    p: Array | Sequence[float] | None = None, *, key: Key | None = None,
) -> Array:
    """Elements chosen at random.

    Parameters
    ----------
    a : Array, sequence or int
        What is chosen from, along the first axis; or how many integers, from 0.
    size : int or tuple of int, optional
        How many, in which shape; one where left out.
    replace : bool
        Whether an element may be chosen again.
    p : Array or sequence of float, optional
        The probabilities of the elements, of one dimension; equal ones where left out.
    key : Key, optional
        As for :func:`cyrt.random.uniform`.

    Raises
    ------
    ValueError
        Nothing to choose from, more than there are and none may be chosen again, as many
        probabilities as elements are not given, or probabilities with ``replace=False``.
    """
    device = common_device(None, a, p)
    a, p = (asarray(each, device=device) if isinstance(each, (list, tuple)) else each
            for each in (a, p))
    if hasattr(a, "__len__"):
        check_array(a, "choice: a")
    n = a.shape[0] if isinstance(a, Array) and a.ndim else index(a)
    shape = () if size is None else tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if n < 1:
        raise ValueError(f"choice: a: expected 1 or more to choose from, got {n}")
    if p is not None and (check_array(p, "choice: p").shape != (n,) or not replace):
        raise ValueError(f"choice: p: expected shape ({n},) and replace=True, got shape "
                         f"{p.shape} and replace={replace}")
    if not replace:
        if any(index(each) < 0 for each in shape):
            raise ValueError(f"choice: size: expected 0 or more, got {size}")
        wanted = prod(map(index, shape))
        if wanted > n:
            raise ValueError(f"choice: {wanted} of {n} elements cannot be chosen with "
                             "replace=False")
        places = permutation(n, device=device, key=key)[:wanted].reshape(shape)
    elif p is None:
        places = randint(0, n, shape, device=device, key=key)
    else:
        rising = cumulative_sum(p if p.dtype == "float64" else astype(p, DEFAULTS["f"]))
        drawn = uniform(shape=shape, dtype=rising.dtype, device=device, key=key) * rising[-1]
        places = searchsorted(rising[:-1], drawn, side="right")
    return take(a, places, axis=0) if isinstance(a, Array) and a.ndim else places


def shuffle(x: Array, axis: SupportsIndex = 0, *, key: Key | None = None) -> None:
    """Put an array's elements, or slices along an axis, in a random order, in place."""
    assign(x, permutation(check_array(x, "shuffle"), axis=axis, key=key))


class Generator:
    """NumPy's generator: a sequence of keys, each the one of a call. Threads may share it.

    Parameters
    ----------
    key : Key
        What all numbers are a function of; made by :func:`default_rng`.
    """

    def __init__(self, key: Key) -> None:
        self._key, self._calls = key, count()

    def _next(self) -> Key:
        return keys.of_call(self._key, next(self._calls))

    def random(self, size: Shape | None = None, dtype: Any = None) -> Array:
        """See :func:`cyrt.random.random`."""
        return random(size, dtype=dtype, key=self._next())

    def uniform(self, low: Real = 0.0, high: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.uniform`."""
        return uniform(low, high, size=size, key=self._next())

    def normal(self, loc: Real = 0.0, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.normal`."""
        return normal(loc, scale, size=size, key=self._next())

    def standard_normal(self, size: Shape | None = None, dtype: Any = None) -> Array:
        """See :func:`cyrt.random.standard_normal`."""
        return standard_normal(size, dtype, key=self._next())

    def exponential(self, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.exponential`."""
        return exponential(scale, size, key=self._next())

    def integers(
        self, low: SupportsIndex, high: SupportsIndex | None = None, size: Shape | None = None,
        dtype: Any = None, endpoint: bool = False,
    ) -> Array:
        """See :func:`cyrt.random.randint`; with `endpoint` the upper bound is among them."""
        low, high = (0, low) if high is None else (low, high)
        return randint(low, index(high) + bool(endpoint), size=size, dtype=dtype,
                       key=self._next())

    def choice(
        self, a: Array | Sequence[float] | SupportsIndex, size: Shape | None = None,
        replace: bool = True, p: Array | Sequence[float] | None = None,
    ) -> Array:
        """See :func:`cyrt.random.choice`."""
        return choice(a, size, replace, p, key=self._next())

    def permutation(self, x: Array | SupportsIndex, axis: int = 0) -> Array:
        """See :func:`cyrt.random.permutation`."""
        return permutation(x, axis=axis, key=self._next())

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """See :func:`cyrt.random.shuffle`."""
        shuffle(x, axis, key=self._next())


def default_rng(seed: SupportsIndex | None = None) -> Generator:
    """A generator whose numbers are a function of a seed alone.

    Parameters
    ----------
    seed : int, optional
        As for :func:`cyrt.random.key`; another one each time where left out.
    """
    if seed is None:
        return Generator(keys.Key(keys.bits_of(None, "default_rng")))
    return Generator(keys.key(seed))
