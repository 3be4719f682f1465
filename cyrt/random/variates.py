"""Random numbers of further distributions, with NumPy's names and parameters.

Parameters are numbers or arrays, which are broadcast with each other and with the size. Numbers are
checked. Elements of arrays are not checked, because that would wait for the device: an invalid one
gives NaN, or -1 where the results are integers. A negative scale is a factor like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from cyrt.dtypes import DEFAULTS, DType
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array, check_real
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype
from cyrt.ops.creation import asarray, zeros
from cyrt.ops.functions import exp, isfinite, sigmoid
from cyrt.ops.manipulation import concat, stack
from cyrt.ops.matmul import matmul
from cyrt.ops.reduce import all as all_of
from cyrt.ops.reduce import max as greatest
from cyrt.ops.reduce import sum as total
from cyrt.ops.shapes import permute_dims
from cyrt.ops.ternary import where
from cyrt.random.distributions import (
    Real,
    Shape,
    common_device,
    common_shape,
    normal,
    parameter,
    real_type,
    scale_and_shift,
)
from cyrt.random.drawing import draw, draw_with
from cyrt.random.keys import Key, bits_of, keyed, split
from cyrt.runtime.device import Device
from cyrt.tape import detach, follows

_FLOAT64 = _dtype("float64")
_Device = Device | SupportsIndex | str | None
# The largest mean of counts, which are int64.
_MOST = 2.0**62


def check_parameter(
    name: str, what: str, value: Any, least: float, *, open_end: bool = False
) -> Real:
    """Check a parameter: an Array of a real type, or a finite number that is not below `least`, nor
    equal to it with `open_end`."""
    found = parameter(value, name, what)
    if isinstance(found, Array):
        check_real(found, f"{name}: {what}")
    elif found < least or (open_end and found == least):
        expected = f"more than {least:g}" if open_end else f"{least:g} or more"
        raise ValueError(f"{name}: {what}: expected {expected}, got {found}")
    return found


def refuse_gradient(name: str, what: str, value: Real) -> None:
    """Raise TypeError if a parameter is differentiated by which the numbers have no gradient."""
    if isinstance(value, Array) and follows([value]):
        raise TypeError(
            f"{name}: {what}: the numbers have no gradient with respect to this parameter; "
            "stop_gradient() makes a constant of it"
        )


def _drawn(
    op: str,
    bits: int,
    name: str,
    parameters: dict[str, Real],
    size: Shape | None,
    dtype: DType,
    device: _Device,
) -> Array:
    """Draw numbers whose parameters are arrays or numbers. Counts are constants."""
    shape = common_shape(name, () if size is None else size, *parameters.values())
    device = common_device(name, device, **parameters)
    values: list[Real] = []
    for what, each in parameters.items():
        if not isinstance(each, Array):
            values.append(each)
            continue
        if dtype.kind == "f":
            refuse_gradient(name, what, each)
        values.append(broadcast_to(astype(detach(each), _FLOAT64), shape).copy())
    return draw_with(op, bits, values, shape, dtype, device)


@keyed
def gamma(
    shape: Real,
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the gamma distribution.

    Parameters
    ----------
    shape, scale : float or Array
        The distribution's parameters: the shape is more than 0, and the scale 0 or more. The mean
        is their product.
    size : int or tuple of int, optional
        The result's shape, with which parameters that are arrays are broadcast; by default their
        common shape.
    dtype : DType, optional
        A real floating-point type, by default float32.
    device : Device, optional
        Default: the device of a parameter that is an array, otherwise the current device.
    key : Key, optional
        The key, on which alone the numbers depend. Default: the process's next key.

    Returns
    -------
    Array
        An array of numbers of 0 or more; NaN where an array's shape is not more than 0.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Notes
    -----
    The method is that of Marsaglia and Tsang, "A simple method for generating gamma variables",
    ACM TOMS 26 (2000).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.gamma(2.0, 3.0, 10_000, key=cyrt.random.key(7))
    >>> 5.8 < cyrt.mean(x).item() < 6.2
    True
    """
    name, each = "gamma", real_type(dtype, "gamma")
    bits = bits_of(key, name)
    shape = check_parameter(name, "shape", shape, 0, open_end=True)
    scale = check_parameter(name, "scale", scale, 0)
    parameters = {"shape": shape, "scale": scale}
    size = common_shape(name, () if size is None else size, shape, scale)
    device = common_device(name, device, **parameters)
    logs = _drawn("log_gamma", bits, name, {"shape": shape}, size, each, device)
    return scale_and_shift(exp(logs, out=logs), 0.0, scale)


@keyed
def chisquare(
    df: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the chi-square distribution.

    Parameters
    ----------
    df : float or Array
        The degrees of freedom, more than 0.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of numbers of 0 or more; NaN where an element of `df` is not more than 0.

    Raises
    ------
    TypeError
        `df` is not real.
    ValueError
        A number is not more than 0, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.chisquare(4, 10_000, key=cyrt.random.key(7))
    >>> 3.8 < cyrt.mean(x).item() < 4.2
    True
    """
    found = check_parameter("chisquare", "df", df, 0, open_end=True)
    refuse_gradient("chisquare", "df", found)
    return gamma(found * 0.5, 2.0, size, dtype=dtype, device=device, key=key)


@keyed
def beta(
    a: Real,
    b: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the beta distribution.

    Parameters
    ----------
    a, b : float or Array
        The distribution's parameters, more than 0. The mean is ``a / (a + b)``.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of numbers from 0 to 1; NaN where an element of a parameter is not more than 0.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        A number is not more than 0, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.beta(1, 3, 10_000, key=cyrt.random.key(7))
    >>> 0.24 < cyrt.mean(x).item() < 0.26
    True
    """
    name, each = "beta", real_type(dtype, "beta")
    bits_of(key, name)
    a = check_parameter(name, "a", a, 0, open_end=True)
    b = check_parameter(name, "b", b, 0, open_end=True)
    size = common_shape(name, () if size is None else size, a, b)
    device = common_device(name, device, a=a, b=b)
    first, second = split(key)  # type: ignore[arg-type]  # `keyed` gives one
    difference = _drawn("log_gamma", first.bits, name, {"a": a}, size, each, device)
    difference -= _drawn("log_gamma", second.bits, name, {"b": b}, size, each, device)
    return sigmoid(difference)


@keyed
def dirichlet(
    alpha: Array | Sequence[float],
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random vectors of the Dirichlet distribution.

    Parameters
    ----------
    alpha : Array or sequence of float
        Shape (..., k): the parameters, more than 0.
    size : int or tuple of int, optional
        The shape of the result without its last axis. `alpha` without its last axis is broadcast
        with it; by default it is the shape of that.
    dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        Shape (*size, k): numbers from 0 to 1, whose sum along the last axis is 1.

    Raises
    ------
    TypeError
        The parameters are not real.
    ValueError
        alpha has no dimension or no elements along its last one; a number of a sequence is not more
        than 0; or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.dirichlet([1.0, 2.0, 5.0], 4, key=cyrt.random.key(7))
    >>> x.shape, bool(cyrt.allclose(cyrt.sum(x, axis=-1), 1))
    ((4, 3), True)
    """
    name, each = "dirichlet", real_type(dtype, "dirichlet")
    bits = bits_of(key, name)
    if isinstance(alpha, (list, tuple)):
        for number in alpha:
            if not isinstance(number, (list, tuple)):
                check_parameter(name, "alpha", number, 0, open_end=True)
        alpha = asarray(alpha, dtype=_FLOAT64, device=device)
    array = check_real(alpha, f"{name}: alpha")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name}: alpha: expected shape (..., k), k > 0, got {array.shape}")
    outer = common_shape(name, () if size is None else size, array[..., 0])
    shape = (*outer, array.shape[-1])
    logs = _drawn("log_gamma", bits, name, {"alpha": array}, shape, each, device)
    # Logarithms of small shapes are large: their differences have smaller rounding errors.
    logs -= greatest(logs, axis=-1, keepdims=True)
    numbers = exp(logs, out=logs)
    numbers /= total(numbers, axis=-1, keepdims=True)
    return numbers


@keyed
def vonmises(
    mu: Real,
    kappa: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random angles of the von Mises distribution, the normal one on a circle.

    Parameters
    ----------
    mu : float or Array
        The most probable angle, in radians.
    kappa : float or Array
        The concentration, 0 or more.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of angles in [-pi, pi]; NaN where an element of `kappa` is less than 0.

    Raises
    ------
    TypeError
        A parameter is not real, or `kappa` is differentiated: there is no gradient with respect to
        it.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Notes
    -----
    The method is that of Best and Fisher, "Efficient simulation of the von Mises distribution",
    Applied Statistics 28 (1979).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.vonmises(1.0, 4.0, size=10_000, key=cyrt.random.key(7))
    >>> 0.97 < cyrt.mean(x).item() < 1.03
    True
    """
    name, each = "vonmises", real_type(dtype, "vonmises")
    bits = bits_of(key, name)
    mu = check_parameter(name, "mu", mu, -math.inf)
    kappa = check_parameter(name, "kappa", kappa, 0)
    if not isinstance(mu, Array):
        return _drawn("von_mises", bits, name, {"mu": mu, "kappa": kappa}, size, each, device)
    center = detach(mu)
    found = _drawn("von_mises", bits, name, {"mu": center, "kappa": kappa}, size, each, device)
    # The angles move with the center; what is added is 0.
    return scale_and_shift(found, mu - center, 1.0) if follows([mu]) else found


@keyed
def poisson(
    lam: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random counts of the Poisson distribution.

    Parameters
    ----------
    lam : float or Array
        The mean, from 0 to 2**62.
    size, device, key
        See :func:`gamma`.
    dtype : DType, optional
        An integer type, by default int64. The counts are cast to it.

    Returns
    -------
    Array
        An array of integers; -1 where an element of `lam` is negative or NaN.

    Raises
    ------
    TypeError
        `lam` is not real, or the type is no integer type.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Notes
    -----
    The method for means of 10 and more is that of Hörmann, "The transformed rejection method for
    generating Poisson random variables", Insurance: Mathematics and Economics 12 (1993).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.poisson(4.0, 10_000, key=cyrt.random.key(7))
    >>> 3.9 < cyrt.mean(x).item() < 4.1
    True
    """
    name, each = "poisson", _integer_type(dtype, "poisson")
    bits = bits_of(key, name)
    lam = check_parameter(name, "lam", lam, 0)
    if not isinstance(lam, Array) and lam > _MOST:
        raise ValueError(f"{name}: lam: expected 2**62 or less, got {lam}")
    found = _drawn("poisson", bits, name, {"lam": lam}, size, DEFAULTS["i"], device)
    return astype(found, each, copy=False)


@keyed
def binomial(
    n: Real,
    p: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random counts of successes in n trials: the binomial distribution.

    Parameters
    ----------
    n : int or Array
        The number of trials, 0 or more, below 2**53.
    p : float or Array
        The probability of a success.
    size, device, key
        See :func:`gamma`.
    dtype : DType, optional
        An integer type, by default int64. The counts are cast to it.

    Returns
    -------
    Array
        An array of integers from 0 to n; -1 where an element of a parameter is out of its range.

    Raises
    ------
    TypeError
        A parameter is not real, or the type is no integer type.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Notes
    -----
    The method for means of 10 and more is that of Hörmann, "The generation of binomial random
    variates", Journal of Statistical Computation and Simulation 46 (1993).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.binomial(20, 0.3, 10_000, key=cyrt.random.key(7))
    >>> 5.9 < cyrt.mean(x).item() < 6.1
    True
    """
    name, each = "binomial", _integer_type(dtype, "binomial")
    bits = bits_of(key, name)
    n, p = _trials(name, n), check_parameter(name, "p", p, 0)
    if not isinstance(p, Array) and p > 1:
        raise ValueError(f"{name}: p: expected a probability from 0 to 1, got {p}")
    found = _drawn("binomial", bits, name, {"n": n, "p": p}, size, DEFAULTS["i"], device)
    return astype(found, each, copy=False)


@keyed
def geometric(
    p: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random counts of trials up to the first success: the geometric distribution.

    Parameters
    ----------
    p : float or Array
        The probability of a success, above 0. The mean is ``1 / p``.
    size, device, key
        See :func:`gamma`.
    dtype : DType, optional
        An integer type, by default int64. The counts are cast to it.

    Returns
    -------
    Array
        An array of integers from 1 to 2**63 - 1; -1 where an element of `p` is out of its range.

    Raises
    ------
    TypeError
        `p` is not real, or the type is no integer type.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.geometric(0.25, 10_000, key=cyrt.random.key(7))
    >>> 3.9 < cyrt.mean(x).item() < 4.1
    True
    """
    name, each = "geometric", _integer_type(dtype, "geometric")
    bits = bits_of(key, name)
    p = check_parameter(name, "p", p, 0, open_end=True)
    if not isinstance(p, Array) and p > 1:
        raise ValueError(f"{name}: p: expected a probability above 0, up to 1, got {p}")
    found = _drawn("geometric", bits, name, {"p": p}, size, DEFAULTS["i"], device)
    return astype(found, each, copy=False)


@keyed
def multinomial(
    n: SupportsIndex | Array,
    pvals: Array | Sequence[float],
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return how often each of k results occurs in n random trials: the multinomial distribution.

    Parameters
    ----------
    n : int or Array
        The number of trials, 0 or more, below 2**53.
    pvals : Array or sequence of float
        Shape (..., k): the probabilities of the results, 0 or more, whose sum along the last axis
        is 1. The probabilities of an Array are divided by their sum.
    size : int or tuple of int, optional
        The shape of the result without its last axis. `n`, and `pvals` without its last axis, are
        broadcast with it; by default it is their common shape.
    device, key
        See :func:`gamma`.
    dtype : DType, optional
        An integer type, by default int64. The counts are cast to it.

    Returns
    -------
    Array
        Shape (*size, k): integers of 0 or more, whose sum along the last axis is n. They are -1
        where the elements of an array are out of their range.

    Raises
    ------
    TypeError
        A parameter is not real, or the type is no integer type.
    ValueError
        A number is out of its range, `pvals` has no dimension or no elements along its last one,
        the sum of a sequence is not 1, or the shapes do not broadcast.

    Notes
    -----
    The results are divided into halves, until each is alone. The number of trials in the first half
    has a binomial distribution, which takes ``ceil(log2(k))`` launches of :func:`binomial`.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.multinomial(10, [0.5, 0.25, 0.25], 4, key=cyrt.random.key(7))
    >>> x.shape, x.sum(axis=-1).tolist()
    ((4, 3), [10, 10, 10, 10])
    """
    name, each = "multinomial", _integer_type(dtype, "multinomial")
    bits_of(key, name)
    number = _trials(name, n)
    device = common_device(name, device, n=number, pvals=pvals)
    if not isinstance(pvals, Array):
        _check_probabilities(name, pvals)
        pvals = asarray(pvals, dtype=_FLOAT64, device=device)
    p = astype(detach(check_real(pvals, f"{name}: pvals")), _FLOAT64)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ValueError(f"{name}: pvals: expected shape (..., k), k > 0, got {p.shape}")
    outer = common_shape(name, () if size is None else size, number, p[..., 0])
    k = p.shape[-1]
    levels = (k - 1).bit_length()
    filled = zeros((*p.shape[:-1], (1 << levels) - k), _FLOAT64, device=p.device)
    sums = [concat([p, filled], axis=-1)]  # element i: of 2**i results side by side
    for _ in range(levels):
        sums.append(sums[-1][..., 0::2] + sums[-1][..., 1::2])
    trials = number if isinstance(number, Array) else int(number)
    counts = broadcast_to(asarray(trials, dtype=DEFAULTS["i"], device=p.device), outer)[..., None]
    for level, own in enumerate(split(key, levels)):  # type: ignore[arg-type]  # `keyed` gives one
        halves, both = sums[levels - 1 - level], sums[levels - level]
        # Results that both have the probability 0 share no trials: any number but 0 / 0 will do.
        chance = halves[..., 0::2] / where(both > 0, both, 1.0)
        first = binomial(counts, chance, counts.shape, key=own)
        counts = stack([first, counts - first], axis=-1).reshape((*outer, 2 << level))
    valid = all_of(p >= 0, axis=-1, keepdims=True) & (sums[-1] > 0) & isfinite(sums[-1])
    if isinstance(number, Array):
        valid = valid & ((number >= 0) & (number < 2**53))[..., None]
    return astype(where(valid, counts[..., :k], -1), each, copy=False)


def _trials(name: str, n: Any) -> Real:
    found = check_parameter(name, "n", n, 0)
    if not isinstance(found, Array) and (found >= 2**53 or found != math.floor(found)):
        raise ValueError(f"{name}: n: expected an integer below 2**53, got {found}")
    return found


def _check_probabilities(name: str, pvals: Any) -> None:
    """Raise ValueError unless numbers are of 0 or more, and their sum along the last axis is 1."""
    try:
        p = np.asarray(pvals, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: pvals: expected numbers: {error}") from None
    if not (p >= 0).all():
        raise ValueError(
            f"{name}: pvals: expected probabilities of 0 or more, got {p[~(p >= 0)][0]}"
        )
    totals = p.sum(-1, keepdims=True) if p.ndim else np.ones(1)
    away = abs(totals - 1)
    if p.size and not away.max() < 1e-6:
        raise ValueError(
            f"{name}: pvals: expected probabilities whose sum is 1, got "
            f"{totals.flat[np.argmax(away)]}"
        )


def _integer_type(dtype: Any, name: str) -> DType:
    found = DEFAULTS["i"] if dtype is None else _dtype(dtype)
    if found.kind not in "iu":
        raise TypeError(f"{name}: dtype: expected an integer type, got {found}")
    return found


def _placed(
    name: str,
    words: tuple[float, float],
    loc: Real,
    scale: Real,
    size: Shape | None,
    dtype: Any,
    device: _Device,
    bits: int,
) -> Array:
    """Draw numbers of a distribution with a location and a scale; `words` are the kernel's."""
    loc, scale = (
        check_parameter(name, "loc", loc, -math.inf),
        check_parameter(name, "scale", scale, 0),
    )
    shape = common_shape(name, () if size is None else size, loc, scale)
    device = common_device(name, device, loc=loc, scale=scale)
    return scale_and_shift(
        draw(name, bits, words, shape, real_type(dtype, name), device), loc, scale
    )


@keyed
def laplace(
    loc: Real = 0.0,
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Laplace distribution, the double exponential one.

    Parameters
    ----------
    loc, scale : float or Array
        The mean, and the mean distance from it, 0 or more.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of real numbers.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        The scale is negative, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.laplace(3.0, 2.0, 10_000, key=cyrt.random.key(7))
    >>> 2.9 < cyrt.median(x).item() < 3.1
    True
    """
    bits = bits_of(key, "laplace")
    return _placed("laplace", (0.0, 1.0), loc, scale, size, dtype, device, bits)


@keyed
def gumbel(
    loc: Real = 0.0,
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Gumbel distribution, that of the largest of many numbers.

    Parameters
    ----------
    loc, scale : float or Array
        The mode, and the scale, 0 or more.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of real numbers.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        The scale is negative, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.gumbel(size=10_000, key=cyrt.random.key(7))
    >>> 0.55 < cyrt.mean(x).item() < 0.61
    True
    """
    bits = bits_of(key, "gumbel")
    return _placed("gumbel", (0.0, 1.0), loc, scale, size, dtype, device, bits)


@keyed
def lognormal(
    mean: Real = 0.0,
    sigma: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers whose logarithms have a normal distribution.

    Parameters
    ----------
    mean, sigma : float or Array
        The mean and the standard deviation of the logarithms. The mean of the numbers is
        ``exp(mean + sigma**2 / 2)``.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of numbers of 0 or more.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        `sigma` is negative, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.lognormal(1.0, 0.5, 10_000, key=cyrt.random.key(7))
    >>> 0.98 < cyrt.log(cyrt.median(x)).item() < 1.02
    True
    """
    mean = check_parameter("lognormal", "mean", mean, -math.inf)
    sigma = check_parameter("lognormal", "sigma", sigma, 0)
    return exp(normal(mean, sigma, size=size, dtype=dtype, device=device, key=key))


@keyed
def multivariate_normal(
    mean: Array | Sequence[float],
    cov: Array | Sequence[Sequence[float]],
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random vectors of a multivariate normal distribution.

    Parameters
    ----------
    mean : Array or sequence of float
        Shape (k,): the means.
    cov : Array or sequence
        Shape (k, k): the covariance matrix, symmetric and positive semidefinite. It is factored on
        the host, so the call waits for the device if it is an Array.
    size : int or tuple of int, optional
        The shape of the result without its last axis; by default one vector is returned.
    dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        The vectors, of shape (*size, k).

    Raises
    ------
    ValueError
        The shapes do not fit, or the matrix is not finite, symmetric and positive semidefinite.

    Examples
    --------
    >>> import cyrt
    >>> mean, cov = [0.0, 5.0], [[1.0, 0.5], [0.5, 2.0]]
    >>> x = cyrt.random.multivariate_normal(mean, cov, 1000, key=cyrt.random.key(7))
    >>> x.shape
    (1000, 2)
    """
    name, each = "multivariate_normal", real_type(dtype, "multivariate_normal")
    bits_of(key, name)
    device = common_device(name, device, mean=mean, cov=cov)
    if isinstance(cov, Array) and follows([cov]):
        raise TypeError(
            f"{name}: cov: it is factored on the host, and has no gradient; stop_gradient() makes "
            "a constant of it"
        )
    matrix = np.asarray(cov.numpy() if isinstance(cov, Array) else cov, np.float64)
    center = mean if isinstance(mean, Array) else asarray(mean, dtype=each, device=device)
    k = check_array(center, f"{name}: mean").shape[-1] if center.ndim else 0
    if center.ndim != 1 or matrix.shape != (k, k):
        raise ValueError(
            f"{name}: expected mean of shape (k,) and cov of shape (k, k), got {center.shape} and "
            f"{matrix.shape}"
        )
    factor = asarray(_factor(name, matrix), dtype=each, device=device)
    outer = common_shape(name, () if size is None else size)
    z = normal(shape=(*outer, k), dtype=each, device=device, key=key)
    return scale_and_shift(matmul(z, permute_dims(factor, (1, 0))), center, 1.0)


def _factor(name: str, matrix: np.ndarray) -> np.ndarray:
    """Return f such that ``f @ f.T`` is a covariance matrix."""
    size = np.abs(matrix).max(initial=0)
    if not np.isfinite(size):
        raise ValueError(f"{name}: cov: expected finite numbers")
    if np.abs(matrix - matrix.T).max(initial=0) > 1e-6 * size:
        raise ValueError(f"{name}: cov: expected a symmetric matrix")
    values, vectors = np.linalg.eigh(matrix)
    if values.min(initial=0) < -1e-6 * size:
        raise ValueError(
            f"{name}: cov: expected a positive semidefinite matrix, its least eigenvalue is "
            f"{values.min():g}"
        )
    factor: np.ndarray = vectors * np.sqrt(np.maximum(values, 0))
    return factor
