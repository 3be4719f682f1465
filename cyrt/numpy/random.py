"""Random functions with NumPy's names, and its generator; public as ``cyrt.random.<name>``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from cyrt.dtypes import DEFAULTS
from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array, check_flags, int_of
from cyrt.ops.copy import assign, astype
from cyrt.ops.creation import asarray
from cyrt.ops.functions import log
from cyrt.ops.gather import take
from cyrt.ops.inspection import finfo
from cyrt.ops.scan import cumulative_sum
from cyrt.ops.search import searchsorted
from cyrt.ops.sort import argsort
from cyrt.random import keys
from cyrt.random.distributions import Real, Shape, common_device, normal, randint, uniform
from cyrt.random.keys import Calls, Key, keyed, next_key
from cyrt.random.sampling import permutation
from cyrt.random.transformed import (
    exponential,
    f,
    logistic,
    negative_binomial,
    pareto,
    rayleigh,
    standard_cauchy,
    standard_t,
    triangular,
    wald,
    weibull,
)
from cyrt.random.variates import (
    beta,
    binomial,
    chisquare,
    dirichlet,
    gamma,
    geometric,
    gumbel,
    laplace,
    lognormal,
    multinomial,
    multivariate_normal,
    poisson,
    vonmises,
)
from cyrt.runtime.device import Device
from cyrt.tape import detach

_Device = Device | SupportsIndex | str | None


@keyed
def rand(
    *shape: SupportsIndex, dtype: Any = None, device: _Device = None, key: Key | None = None
) -> Array:
    """Return uniformly distributed numbers in [0, 1); see :func:`cyrt.random.uniform`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.seed(7)
    >>> cyrt.random.rand(2)
    Array([0.9513009 , 0.46322912], dtype=float32)
    """
    return uniform(shape=shape, dtype=dtype, device=device, key=key)


@keyed
def randn(
    *shape: SupportsIndex, dtype: Any = None, device: _Device = None, key: Key | None = None
) -> Array:
    """Return numbers of the standard normal distribution; see :func:`cyrt.random.normal`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.seed(7)
    >>> cyrt.round(cyrt.random.randn(2), 2)
    Array([-0.07,  0.31], dtype=float32)
    """
    return normal(shape=shape, dtype=dtype, device=device, key=key)


@keyed
def random(
    size: Shape | None = None, *, dtype: Any = None, device: _Device = None, key: Key | None = None
) -> Array:
    """Return uniformly distributed numbers in [0, 1), or without a size one number as an array.

    The other arguments are those of :func:`cyrt.random.uniform`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.random(2, key=cyrt.random.key(7))
    Array([0.9545971, 0.7501522], dtype=float32)
    """
    return uniform(size=size, dtype=dtype, device=device, key=key)


@keyed
def standard_normal(
    size: Shape | None = None, dtype: Any = None, *, device: _Device = None, key: Key | None = None
) -> Array:
    """Return numbers of the standard normal distribution, or without a size one number as an array.

    The other arguments are those of :func:`cyrt.random.normal`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.round(cyrt.random.standard_normal(2, key=cyrt.random.key(7)), 2)
    Array([-0. , -0.3], dtype=float32)
    """
    return normal(size=size, dtype=dtype, device=device, key=key)


@keyed
def choice(
    a: Any,
    size: Shape | None = None,
    replace: bool = True,
    p: Any = None,
    *,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Choose elements at random.

    Parameters
    ----------
    a : Array, sequence or int
        The elements, along the first axis; or an int n, which stands for the integers from 0 to
        n - 1.
    size : int or tuple of int, optional
        The result's shape; by default one element is chosen.
    replace : bool
        Whether an element may be chosen more than once.
    p : Array or sequence of float, optional
        The probabilities of the elements, one-dimensional; by default they are equal. An Array is
        copied to the host to be checked, which waits for the device. :func:`categorical`, which
        takes the logarithms of probabilities, does not wait.
    device : Device, optional
        Default: the device of an argument that is an array, otherwise the current device.
    key : Key, optional
        As for :func:`cyrt.random.uniform`.

    Raises
    ------
    ValueError
        There are no elements. With ``replace=False``, more are chosen than there are, or than have
        a probability above 0. The number of probabilities differs from that of the elements, a
        probability is negative or NaN, or their sum is not 1.

    Examples
    --------
    >>> import cyrt
    >>> primes = cyrt.asarray([2, 3, 5, 7])
    >>> cyrt.random.choice(primes, 3, replace=False, key=cyrt.random.key(7))
    Array([2, 5, 7], dtype=int64)
    """
    check_flags("choice", replace=replace)
    device = common_device("choice", device, a=a, p=p)
    given = p
    a, p = (
        asarray(each, device=device) if isinstance(each, (list, tuple)) else each for each in (a, p)
    )
    if hasattr(a, "__len__"):
        check_array(a, "choice: a")
    n = a.shape[0] if isinstance(a, Array) and a.ndim else int_of(a, "choice: a")
    shape = () if size is None else tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if n < 1:
        raise ValueError(f"choice: a: expected 1 or more to choose from, got {n}")
    if p is not None and check_array(p, "choice: p").shape != (n,):
        raise ValueError(f"choice: p: expected shape ({n},), got {p.shape}")
    possible = n if p is None else _count_possible(given, p)
    if not replace:
        if any(index(each) < 0 for each in shape):
            raise ValueError(f"choice: size: expected 0 or more, got {size}")
        wanted = math.prod(map(index, shape))
        if wanted > n:
            raise ValueError(
                f"choice: {wanted} of {n} elements cannot be chosen with replace=False"
            )
        if wanted > possible:
            raise ValueError(
                f"choice: p: {wanted} elements cannot be chosen with replace=False from {possible} "
                "whose probability is not 0"
            )
        if p is None:
            order = permutation(n, device=device, key=key)
        else:
            # Gumbel's noise next to the logarithms orders the elements as they would be chosen one
            # after the other: Efraimidis and Spirakis, Information Processing Letters 97 (2006).
            noise = gumbel(size=n, dtype="float64", device=device, key=key)
            order = argsort(noise + log(astype(p, "float64")), descending=True)
        positions = order[:wanted].reshape(shape)
    elif p is None:
        positions = randint(0, n, shape, device=device, key=key)
    else:
        rising = cumulative_sum(p if p.dtype == "float64" else astype(p, DEFAULTS["f"]))
        drawn = uniform(shape=shape, dtype=rising.dtype, device=device, key=key) * rising[-1]
        positions = searchsorted(rising[:-1], drawn, side="right")
    return take(a, positions, axis=0) if isinstance(a, Array) and a.ndim else positions


def _count_possible(given: Any, converted: Array) -> int:
    """Return how many probabilities are above 0. Raise an error unless they are probabilities, in
    the precision of their type."""
    dtype = converted.dtype
    if dtype.kind == "c":
        raise TypeError(f"choice: p: expected a real type, got {dtype}")
    if given is not converted or dtype.kind != "f":
        dtype = _dtype("float64")
    p = (
        detach(converted).numpy().astype(np.float64)
        if given is converted
        else np.asarray(given, float)
    )
    if not (p >= 0).all():
        raise ValueError(
            f"choice: p: expected probabilities of 0 or more, got {p[~(p >= 0)][0]} at index "
            f"{np.argmin(p >= 0)}"
        )
    total = p.sum()
    if abs(total - 1) > finfo(dtype).eps ** 0.5:
        raise ValueError(f"choice: p: expected probabilities whose sum is 1, got {total}")
    return int(np.count_nonzero(p))


@keyed
def shuffle(x: Array, axis: SupportsIndex = 0, *, key: Key | None = None) -> None:
    """Permute an array's slices along an axis, randomly and in place.

    Parameters
    ----------
    x : Array
        The array.
    axis : int
        The axis whose slices are permuted.
    key : Key, optional
        The key, on which alone the permutation depends. Default: the process's next key.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.arange(4)
    >>> cyrt.random.shuffle(x, key=cyrt.random.key(7))
    >>> x
    Array([0, 2, 3, 1], dtype=int64)
    """
    assign(x, permutation(check_array(x, "shuffle"), axis=axis, key=key))


class Generator:
    """A generator like NumPy's: each call uses the next key of a sequence. Threads may share it.

    Parameters
    ----------
    key : Key
        The key, on which alone all numbers depend; :func:`default_rng` makes it from a seed.

    Examples
    --------
    >>> import cyrt
    >>> rng = cyrt.random.default_rng(7)
    >>> rng.random(2), rng.integers(10)
    (Array([0.9513009 , 0.46322912], dtype=float32), Array(2, dtype=int64))
    """

    def __init__(self, key: Key) -> None:
        self._calls = Calls(key)

    def _call(self, function: Callable[..., Array], *args: Any, **options: Any) -> Array:
        found: Array = self._calls.call(function, *args, **options)
        return found

    @property
    def state(self) -> tuple[int, ...]:
        """A tuple of ints of 64 bits, without a sign, which determine the next numbers.

        They are the key, the number of the next call, and the numbers of the calls that raised an
        error, whose keys later calls use. A generator whose state is set to that of another gives
        the same numbers. Generators can also be pickled, copied, and saved by
        :func:`cyrt.save_checkpoint`.

        Examples
        --------
        >>> import cyrt
        >>> rng, other = cyrt.random.default_rng(7), cyrt.random.default_rng(1)
        >>> x = rng.random(2)
        >>> rng.state
        (7, 1)
        >>> other.state = rng.state
        >>> bool(other.random() == rng.random())
        True
        """
        return self._calls.state

    @state.setter
    def state(self, state: Sequence[int]) -> None:
        words = tuple(map(index, state))
        if len(words) < 2 or not all(0 <= each < 1 << 64 for each in words):
            raise ValueError(
                f"Generator: state: expected two or more ints from 0 to 2**64 - 1, "
                f"got {show(state)}"
            )
        self._calls = Calls(Key(words[0]), words[1], words[2:])

    def __getstate__(self) -> tuple[int, ...]:
        return self.state

    def __setstate__(self, state: Sequence[int]) -> None:
        self.state = state

    def random(self, size: Shape | None = None, dtype: Any = None) -> Array:
        """See :func:`cyrt.random.random`."""
        return self._call(random, size, dtype=dtype)

    def uniform(self, low: Real = 0.0, high: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.uniform`."""
        return self._call(uniform, low, high, size=size)

    def normal(self, loc: Real = 0.0, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.normal`."""
        return self._call(normal, loc, scale, size=size)

    def standard_normal(self, size: Shape | None = None, dtype: Any = None) -> Array:
        """See :func:`cyrt.random.standard_normal`."""
        return self._call(standard_normal, size, dtype)

    def exponential(self, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.exponential`."""
        return self._call(exponential, scale, size)

    def gamma(self, shape: Real, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.gamma`."""
        return self._call(gamma, shape, scale, size)

    def chisquare(self, df: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.chisquare`."""
        return self._call(chisquare, df, size)

    def beta(self, a: Real, b: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.beta`."""
        return self._call(beta, a, b, size)

    def dirichlet(self, alpha: Array | Sequence[float], size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.dirichlet`."""
        return self._call(dirichlet, alpha, size)

    def poisson(self, lam: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.poisson`."""
        return self._call(poisson, lam, size)

    def binomial(self, n: Real, p: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.binomial`."""
        return self._call(binomial, n, p, size)

    def geometric(self, p: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.geometric`."""
        return self._call(geometric, p, size)

    def multinomial(
        self, n: SupportsIndex | Array, pvals: Array | Sequence[float], size: Shape | None = None
    ) -> Array:
        """See :func:`cyrt.random.multinomial`."""
        return self._call(multinomial, n, pvals, size)

    def lognormal(self, mean: Real = 0.0, sigma: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.lognormal`."""
        return self._call(lognormal, mean, sigma, size)

    def laplace(self, loc: Real = 0.0, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.laplace`."""
        return self._call(laplace, loc, scale, size)

    def gumbel(self, loc: Real = 0.0, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.gumbel`."""
        return self._call(gumbel, loc, scale, size)

    def standard_cauchy(self, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.standard_cauchy`."""
        return self._call(standard_cauchy, size)

    def standard_t(self, df: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.standard_t`."""
        return self._call(standard_t, df, size)

    def weibull(self, a: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.weibull`."""
        return self._call(weibull, a, size)

    def pareto(self, a: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.pareto`."""
        return self._call(pareto, a, size)

    def rayleigh(self, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.rayleigh`."""
        return self._call(rayleigh, scale, size)

    def logistic(self, loc: Real = 0.0, scale: Real = 1.0, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.logistic`."""
        return self._call(logistic, loc, scale, size)

    def triangular(self, left: Real, mode: Real, right: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.triangular`."""
        return self._call(triangular, left, mode, right, size)

    def f(self, dfnum: Real, dfden: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.f`."""
        return self._call(f, dfnum, dfden, size)

    def wald(self, mean: Real, scale: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.wald`."""
        return self._call(wald, mean, scale, size)

    def vonmises(self, mu: Real, kappa: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.vonmises`."""
        return self._call(vonmises, mu, kappa, size)

    def negative_binomial(self, n: Real, p: Real, size: Shape | None = None) -> Array:
        """See :func:`cyrt.random.negative_binomial`."""
        return self._call(negative_binomial, n, p, size)

    def multivariate_normal(
        self,
        mean: Array | Sequence[float],
        cov: Array | Sequence[Sequence[float]],
        size: Shape | None = None,
    ) -> Array:
        """See :func:`cyrt.random.multivariate_normal`."""
        return self._call(multivariate_normal, mean, cov, size)

    def integers(
        self,
        low: SupportsIndex,
        high: SupportsIndex | None = None,
        size: Shape | None = None,
        dtype: Any = None,
        endpoint: bool = False,
    ) -> Array:
        """See :func:`cyrt.random.randint`; with `endpoint` the upper bound is included."""
        low, high = (0, low) if high is None else (low, high)
        check_flags("integers", endpoint=endpoint)
        return self._call(randint, low, index(high) + bool(endpoint), size=size, dtype=dtype)

    def choice(
        self, a: Any, size: Shape | None = None, replace: bool = True, p: Any = None
    ) -> Array:
        """See :func:`cyrt.random.choice`."""
        return self._call(choice, a, size, replace, p)

    def permutation(self, x: Array | SupportsIndex, axis: int = 0) -> Array:
        """See :func:`cyrt.random.permutation`."""
        return self._call(permutation, x, axis=axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """See :func:`cyrt.random.shuffle`."""
        self._calls.call(shuffle, x, axis)


def default_rng(seed: SupportsIndex | None = None) -> Generator:
    """Make a generator whose numbers depend only on a seed.

    Parameters
    ----------
    seed : int, optional
        As for :func:`cyrt.random.key`; by default a different seed each time.

    Returns
    -------
    Generator

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.default_rng(7).integers(10, size=3)
    Array([9, 4, 1], dtype=int64)
    """
    if seed is None:
        return Generator(next_key())
    return Generator(keys.key(seed))
