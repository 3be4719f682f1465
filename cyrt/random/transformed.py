"""Random numbers that a formula computes from those of other distributions.

Names and parameters are NumPy's. Parameters may be arrays, as in :mod:`cyrt.random.variates`; their
elements are not checked, and formulas such as ``scale * x`` also take invalid ones.
"""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

from cyrt.ndarray import Array
from cyrt.ops.functions import expm1, log1p, pow, sqrt
from cyrt.ops.ternary import where
from cyrt.random.distributions import (
    Real,
    Shape,
    common_device,
    common_shape,
    normal,
    real_type,
    scale_and_shift,
    uniform,
)
from cyrt.random.keys import Key, bits_of, keyed, split
from cyrt.random.variates import check_parameter, chisquare, gamma, gumbel, poisson, refuse_gradient
from cyrt.runtime.device import Device
from cyrt.tape import detach

_Device = Device | SupportsIndex | str | None
# The lower bound of the uniform numbers, since the root has no derivative at 0. Numbers above 0
# stay as they are: the sum rounds to them.
_LEAST_ROOT = 1e-30


def _options(
    name: str, size: Shape | None, dtype: Any, device: _Device, key: Any, **parameters: Real
) -> dict[str, Any]:
    """Return the arguments of the draws: the common shape of size and parameters, the type, the
    device and the key."""
    bits_of(key, name)
    shape = common_shape(name, () if size is None else size, *parameters.values())
    device = common_device(name, device, **parameters)
    return {"size": shape, "dtype": real_type(dtype, name), "device": device, "key": key}


def _halves(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of two independent draws."""
    first, second = split(options["key"])
    return {**options, "key": first}, {**options, "key": second}


def _cast(x: Any, options: dict[str, Any]) -> Array:
    """Return the numbers in the type of the draws; parameters of another type promote them."""
    found: Array = x.astype(options["dtype"], copy=False)
    return found


@keyed
def exponential(
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the exponential distribution.

    Parameters
    ----------
    scale : float or Array
        The mean, 0 or more.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of numbers of 0 or more.

    Raises
    ------
    TypeError
        The scale is not real.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.round(cyrt.random.exponential(2, 3, key=cyrt.random.key(7)), 2)
    Array([6.18, 2.77, 0.24], dtype=float32)
    """
    scale = check_parameter("exponential", "scale", scale, 0)
    options = _options("exponential", size, dtype, device, key, scale=scale)
    return scale_and_shift(-log1p(-uniform(0.0, 1.0, **options)), 0.0, scale)


@keyed
def standard_cauchy(
    size: Shape | None = None, *, dtype: Any = None, device: _Device = None, key: Key | None = None
) -> Array:
    """Return random numbers of the standard Cauchy distribution, quotients of normal numbers.

    Parameters
    ----------
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of real numbers.

    Raises
    ------
    TypeError
        The type is not a real floating-point type.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.standard_cauchy(size=10_000, key=cyrt.random.key(7))
    >>> -0.1 < cyrt.median(x).item() < 0.1
    True
    """
    first, second = _halves(_options("standard_cauchy", size, dtype, device, key))
    return normal(0.0, 1.0, **first) / normal(0.0, 1.0, **second)


@keyed
def standard_t(
    df: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of Student's t distribution.

    Parameters
    ----------
    df : float or Array
        The degrees of freedom, more than 0.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.standard_t(8.0, size=10_000, key=cyrt.random.key(7))
    >>> -0.1 < cyrt.mean(x).item() < 0.1
    True
    """
    df = check_parameter("standard_t", "df", df, 0, open_end=True)
    refuse_gradient("standard_t", "df", df)
    options = _options("standard_t", size, dtype, device, key, df=df)
    first, second = _halves(options)
    return _cast(normal(0.0, 1.0, **first) / sqrt(chisquare(df, **second) / df), options)


@keyed
def weibull(
    a: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Weibull distribution with the scale 1.

    Parameters
    ----------
    a : float or Array
        The shape, more than 0.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.weibull(1.0, size=10_000, key=cyrt.random.key(7))
    >>> 0.95 < cyrt.mean(x).item() < 1.05
    True
    """
    a = check_parameter("weibull", "a", a, 0, open_end=True)
    options = _options("weibull", size, dtype, device, key, a=a)
    return _cast(pow(exponential(**options), 1.0 / a), options)


@keyed
def pareto(
    a: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Pareto II (Lomax) distribution, which begins at 0 as in NumPy.

    Parameters
    ----------
    a : float or Array
        The shape, more than 0.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.pareto(5.0, size=10_000, key=cyrt.random.key(7))
    >>> 0.23 < cyrt.mean(x).item() < 0.27
    True
    """
    a = check_parameter("pareto", "a", a, 0, open_end=True)
    options = _options("pareto", size, dtype, device, key, a=a)
    return _cast(expm1(exponential(**options) / a), options)


@keyed
def rayleigh(
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Rayleigh distribution.

    Parameters
    ----------
    scale : float or Array
        The mode, 0 or more.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.rayleigh(2.0, size=10_000, key=cyrt.random.key(7))
    >>> 2.4 < cyrt.mean(x).item() < 2.6
    True
    """
    scale = check_parameter("rayleigh", "scale", scale, 0)
    options = _options("rayleigh", size, dtype, device, key, scale=scale)
    return scale_and_shift(sqrt(2.0 * exponential(**options)), 0.0, scale)


@keyed
def logistic(
    loc: Real = 0.0,
    scale: Real = 1.0,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the logistic distribution, differences of Gumbel's numbers.

    Parameters
    ----------
    loc, scale : float or Array
        The mean, and the scale, 0 or more.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.logistic(3.0, size=10_000, key=cyrt.random.key(7))
    >>> 2.9 < cyrt.mean(x).item() < 3.1
    True
    """
    loc = check_parameter("logistic", "loc", loc, -math.inf)
    scale = check_parameter("logistic", "scale", scale, 0)
    options = _options("logistic", size, dtype, device, key, loc=loc, scale=scale)
    first, second = _halves(options)
    return scale_and_shift(gumbel(**first) - gumbel(**second), loc, scale)


@keyed
def triangular(
    left: Real,
    mode: Real,
    right: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the triangular distribution.

    Parameters
    ----------
    left, mode, right : float or Array
        The smallest number, the most probable one and the largest, in this order; left is less
        than right.
    size, dtype, device, key
        See :func:`gamma`.

    Returns
    -------
    Array
        An array of numbers from `left` to `right`.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.triangular(0.0, 1.0, 2.0, size=10_000, key=cyrt.random.key(7))
    >>> 0.97 < cyrt.mean(x).item() < 1.03
    True
    """
    name = "triangular"
    left, mode, right = (
        check_parameter(name, what, each, -math.inf)
        for what, each in (("left", left), ("mode", mode), ("right", right))
    )
    if not any(isinstance(each, Array) for each in (left, mode, right)) and not (
        left <= mode <= right and left < right
    ):
        raise ValueError(
            f"{name}: expected left <= mode <= right and left < right, got {left}, {mode}, {right}"
        )
    options = _options(name, size, dtype, device, key, left=left, mode=mode, right=right)
    u, width = uniform(_LEAST_ROOT, 1.0, **options), right - left
    rises = u * width < mode - left
    # The root that is not chosen may be that of 0, which has no derivative.
    found = where(
        rises,
        left + sqrt(where(rises, u * (width * (mode - left)), 1.0)),
        right - sqrt(where(rises, 1.0, (1.0 - u) * (width * (right - mode)))),
    )
    return _cast(found, options)


@keyed
def f(
    dfnum: Real,
    dfden: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the F distribution, quotients of chi-square numbers.

    Parameters
    ----------
    dfnum, dfden : float or Array
        The degrees of freedom of the numerator and of the denominator, more than 0.
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
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.f(5.0, 12.0, size=10_000, key=cyrt.random.key(7))
    >>> 1.15 < cyrt.mean(x).item() < 1.25
    True
    """
    dfnum = check_parameter("f", "dfnum", dfnum, 0, open_end=True)
    dfden = check_parameter("f", "dfden", dfden, 0, open_end=True)
    refuse_gradient("f", "dfnum", dfnum)
    refuse_gradient("f", "dfden", dfden)
    options = _options("f", size, dtype, device, key, dfnum=dfnum, dfden=dfden)
    first, second = _halves(options)
    return _cast(
        (chisquare(dfnum, **first) / dfnum) / (chisquare(dfden, **second) / dfden), options
    )


@keyed
def wald(
    mean: Real,
    scale: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the Wald distribution, the inverse Gaussian one.

    Parameters
    ----------
    mean, scale : float or Array
        The mean and the scale, more than 0.
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
        A number is out of its range, or the shapes do not broadcast.

    Notes
    -----
    The method is that of Michael, Schucany and Haas, "Generating random variates using
    transformations with multiple roots", The American Statistician 30 (1976).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.wald(2.0, 8.0, size=10_000, key=cyrt.random.key(7))
    >>> 1.95 < cyrt.mean(x).item() < 2.05
    True
    """
    mean = check_parameter("wald", "mean", mean, 0, open_end=True)
    scale = check_parameter("wald", "scale", scale, 0, open_end=True)
    options = _options("wald", size, dtype, device, key, mean=mean, scale=scale)
    first, second = _halves(options)
    half = normal(0.0, 1.0, **first) ** 2 * (mean / (2.0 * scale))
    # The larger root, relative to the mean; the smaller one is its reciprocal.
    root = 1.0 + half + sqrt(half * (half + 2.0))
    is_small = uniform(0.0, 1.0, **second) * (1.0 + root) <= root
    return _cast(mean * where(is_small, 1.0 / root, root), options)


@keyed
def negative_binomial(
    n: Real,
    p: Real,
    size: Shape | None = None,
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random counts of failures before n successes, in trials with the probability p.

    Parameters
    ----------
    n : float or Array
        The number of successes, more than 0.
    p : float or Array
        The probability of a success: more than 0, 1 or less.
    size, dtype, device, key
        See :func:`poisson`.

    Returns
    -------
    Array
        An array of integers of 0 or more.

    Raises
    ------
    TypeError
        A parameter is not real.
    ValueError
        A number is out of its range, or the shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.negative_binomial(4, 0.5, size=10_000, key=cyrt.random.key(7))
    >>> 3.8 < cyrt.mean(x).item() < 4.2
    True
    """
    name = "negative_binomial"
    n = check_parameter(name, "n", n, 0, open_end=True)
    p = check_parameter(name, "p", p, 0, open_end=True)
    if not isinstance(p, Array) and p > 1:
        raise ValueError(f"{name}: p: expected 1 or less, got {p}")
    n, p = (detach(each) if isinstance(each, Array) else each for each in (n, p))
    first, second = _halves(_options(name, size, "float64", device, key, n=n, p=p))
    means = gamma(n, (1.0 - p) / p, **first)
    return poisson(means, dtype=dtype, key=second["key"])
