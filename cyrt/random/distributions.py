"""Random numbers of several distributions; a number depends only on the key and on its index."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from cyrt.dtypes import DEFAULTS, DType
from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.ops.arguments import refuse_device
from cyrt.ops.copy import astype, check_devices
from cyrt.random.drawing import draw
from cyrt.random.keys import Key, bits_of, keyed
from cyrt.runtime.device import Device
from cyrt.tape import follows, refuse_as_number

Shape = SupportsIndex | Sequence[SupportsIndex]
Real = float | Array
_Device = Device | SupportsIndex | str | None


# -- arguments -------------------------------------------------------------------------------------


def real_type(dtype: Any, name: str) -> DType:
    found = DEFAULTS["f"] if dtype is None else _dtype(dtype)
    if found.kind != "f":
        raise TypeError(f"{name}: dtype: expected a real floating type, got {found}")
    return found


def _shape_advice(value: Any) -> str:
    return "; the result's shape goes by name" if isinstance(value, (tuple, list)) else ""


def _number(
    value: Any, name: str, what: str, *, finite: bool = True, expected: str = "a number"
) -> float:
    refuse_as_number(value, f"{name}: {what}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name}: {what}: expected {expected}, got {show(value)}{_shape_advice(value)}"
        ) from None
    if math.isnan(number) or (finite and math.isinf(number)):
        raise ValueError(f"{name}: {what}: expected a finite number, got {show(value)}")
    return number


def parameter(value: Any, name: str, what: str) -> Real:
    """Check a parameter: an Array, or a finite number."""
    if isinstance(value, Array):
        return value
    return _number(value, name, what, expected="a number or an Array")


def common_shape(name: str, shape: Shape, *parameters: Any) -> tuple[int, ...]:
    """Broadcast the caller's shape and the parameters that are arrays."""
    shapes = [
        tuple(shape) if isinstance(shape, Iterable) else (shape,),
        *(each.shape for each in parameters if isinstance(each, Array)),
    ]
    try:
        return np.broadcast_shapes(*shapes)
    except TypeError:
        raise TypeError(
            f"{name}: the result's shape: expected an int or a tuple of ints, got {show(shape)}"
        ) from None
    except ValueError:
        if any(index(size) < 0 for size in shapes[0]):
            raise ValueError(
                f"{name}: the result's shape: expected sizes of 0 or more, got {show(shape)}"
            ) from None
        raise ValueError(f"{name}: shapes {', '.join(map(str, shapes))} do not broadcast") from None


def common_device(name: str, device: _Device, **parameters: Any) -> _Device:
    """Return the device of the parameters that are arrays, otherwise the caller's."""
    check_devices(name, **parameters)
    for what, each in parameters.items():
        if isinstance(each, Array):
            if device is not None and Device(device) != each.device:
                refuse_device(f"{name}: {what}", each.device.index, Device(device).index)
            return each.device
    return device


def scale_and_shift(x: Array, loc: Real, scale: Real) -> Array:
    """Compute loc + scale * x in x's type, in place unless it is differentiated."""
    for each in (loc, scale):
        if isinstance(each, Array) and each.dtype.kind == "c":
            raise TypeError(f"expected real parameters, got an array of {each.dtype}")
    if follows([each for each in (loc, scale) if isinstance(each, Array)]):
        return astype(x * scale + loc, x.dtype, copy=False)
    x *= scale
    x += loc
    return x


# -- the functions ---------------------------------------------------------------------------------


@keyed
def uniform(
    low: Real = 0.0,
    high: Real = 1.0,
    shape: Shape = (),
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
    size: Shape | None = None,
) -> Array:
    """Return uniformly distributed numbers in [low, high).

    Parameters
    ----------
    low, high : float or Array
        The bounds; arrays are broadcast with the shape.
    shape : int or tuple of int
        The result's shape.
    dtype : DType, optional
        A real floating-point type, by default float32.
    device : Device, optional
        Default: the device of a bound that is an array, otherwise the current device.
    key : Key, optional
        The key, on which alone the numbers depend. Default: the process's next key.
    size : int or tuple of int, optional
        NumPy's name of the argument `shape`.

    Returns
    -------
    Array
        An array of numbers less than `high`; if bounds are arrays, rounding may give `high`.

    Raises
    ------
    ValueError
        `low` is greater than `high`, or the type cannot represent ``high - low``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.uniform(-1, 1, 3, key=cyrt.random.key(7))
    Array([ 0.90919423,  0.50030434, -0.7716453 ], dtype=float32)
    """
    name, each = "uniform", real_type(dtype, "uniform")
    shape = shape if size is None else size
    bits = bits_of(key, name)
    low, high = parameter(low, name, "low"), parameter(high, name, "high")
    if isinstance(low, Array) or isinstance(high, Array):
        shape = common_shape(name, shape, low, high)
        device = common_device(name, device, low=low, high=high)
        u = draw(name, bits, _range(0.0, 1.0, each.name), shape, each, device)
        return scale_and_shift(u, low, high - low)
    return draw(name, bits, _range(low, high, each.name), shape, each, device)


@functools.lru_cache(maxsize=256)
def _range(low: float, high: float, name: str) -> tuple[float, float, float]:
    """Return the lower bound, the width, and the largest number of the type below the upper
    bound."""
    dtype = _dtype(name)  # the hash of a name is cached
    if low > high:
        raise ValueError(f"uniform: expected low <= high, got {low} and {high}")
    compute = np.float64 if dtype.itemsize == 8 else np.float32
    with np.errstate(over="ignore"):
        width = compute(high) - compute(low)
        bound = dtype.numpy.type(high)
    if not np.isfinite(width) or not np.isfinite(bound):
        raise ValueError(f"uniform: {dtype} cannot hold numbers between {low} and {high}")
    most = np.nextafter(bound, dtype.numpy.type(-np.inf)) if low < high else bound
    return float(compute(low)), float(width), max(float(most), float(dtype.numpy.type(low)))


@keyed
def normal(
    loc: Real = 0.0,
    scale: Real = 1.0,
    shape: Shape = (),
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
    size: Shape | None = None,
) -> Array:
    """Return normally distributed numbers.

    Parameters
    ----------
    loc, scale : float or Array
        The mean and the standard deviation; arrays are broadcast with the shape.
    shape, dtype, device, key, size
        See :func:`uniform`.

    Returns
    -------
    Array
        An array of numbers within 6.8 standard deviations, or 9.5 for float64.

    Raises
    ------
    ValueError
        The scale is negative.

    Notes
    -----
    The method is that of Box and Muller, Annals of Mathematical Statistics 29 (1958).

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.normal(10, 0.5, 3, key=cyrt.random.key(7))
    >>> cyrt.round(x, 2)
    Array([10.  ,  9.85, 10.89], dtype=float32)
    """
    name, each = "normal", real_type(dtype, "normal")
    shape = shape if size is None else size
    bits = bits_of(key, name)
    loc, scale = parameter(loc, name, "loc"), parameter(scale, name, "scale")
    if not isinstance(scale, Array) and scale < 0:
        raise ValueError(f"normal: scale: expected 0 or more, got {scale}")
    if isinstance(loc, Array) or isinstance(scale, Array):
        shape = common_shape(name, shape, loc, scale)
        device = common_device(name, device, loc=loc, scale=scale)
        return scale_and_shift(draw(name, bits, (0.0, 1.0), shape, each, device), loc, scale)
    return draw(name, bits, (loc, scale), shape, each, device)


@keyed
def truncated_normal(
    lower: float,
    upper: float,
    shape: Shape = (),
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
) -> Array:
    """Return random numbers of the standard normal distribution between two bounds.

    Parameters
    ----------
    lower, upper : float
        The bounds in standard deviations; they may be infinite.
    shape, dtype, device, key
        See :func:`uniform`.

    Returns
    -------
    Array
        An array of numbers from `lower` to `upper`.

    Raises
    ------
    ValueError
        `lower` is not less than `upper`, or both are so far from 0 (38 and more) that the
        probability between them is 0 in float64.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.random.truncated_normal(0, float("inf"), 3, key=cyrt.random.key(7))
    >>> cyrt.round(x, 2)
    Array([0.32, 1.72, 0.26], dtype=float32)
    """
    name, each = "truncated_normal", real_type(dtype, "truncated_normal")
    bits = bits_of(key, name)
    low = _number(lower, name, "lower", finite=False)
    high = _number(upper, name, "upper", finite=False)
    if not low < high:
        raise ValueError(f"{name}: expected lower < upper, got {low} and {high}")
    # The distribution function is accurate on the side where it is small.
    sign = -1.0 if low + high > 0 else 1.0
    ends = sorted((sign * low, sign * high))
    below, up_to = (0.5 * math.erfc(-x / math.sqrt(2)) for x in ends)
    if not up_to > below:
        raise ValueError(f"{name}: float64 cannot tell the probability between {low} and {high}")
    return draw(name, bits, (below, up_to - below, sign, low, high), shape, each, device)


@keyed
def bernoulli(
    p: Real = 0.5, shape: Shape = (), *, device: _Device = None, key: Key | None = None
) -> Array:
    """Return random bools that are true with a probability p.

    Parameters
    ----------
    p : float or Array
        The probability, which has a precision of 32 bits. An array is broadcast with the shape; if
        its type is float32, the precision is 24 bits.
    shape, device, key
        See :func:`uniform`.

    Returns
    -------
    Array
        An array of bool.

    Raises
    ------
    ValueError
        p is a number outside [0, 1].

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.bernoulli(0.25, 4, key=cyrt.random.key(7))
    Array([False, False,  True,  True], dtype=bool)
    """
    name = "bernoulli"
    bits = bits_of(key, name)
    if isinstance(p, Array):
        each = p.dtype if p.dtype.itemsize == 8 and p.dtype.kind == "f" else DEFAULTS["f"]
        u = draw(
            "uniform",
            bits,
            _range(0.0, 1.0, each.name),
            common_shape(name, shape, p),
            each,
            common_device(name, device, p=p),
        )
        return u < p
    probability = _number(p, name, "p")
    if not 0 <= probability <= 1:
        raise ValueError(f"bernoulli: p: expected a probability from 0 to 1, got {probability}")
    return draw(name, bits, (round(probability * (1 << 32)),), shape, DEFAULTS["b"], device)


@keyed
def randint(
    low: SupportsIndex,
    high: SupportsIndex | None = None,
    shape: Shape = (),
    *,
    dtype: Any = None,
    device: _Device = None,
    key: Key | None = None,
    size: Shape | None = None,
) -> Array:
    """Return uniformly distributed integers in [low, high).

    Parameters
    ----------
    low, high : int
        The bounds; with one argument they are 0 and that argument.
    shape, device, key, size
        See :func:`uniform`.
    dtype : DType, optional
        An integer type, by default int64.

    Returns
    -------
    Array
        An array of integers.

    Raises
    ------
    ValueError
        `low` is not less than `high`, or the type cannot represent the integers.

    Notes
    -----
    All integers are equally likely. The method is that of Lemire, "Fast random integer generation
    in an interval", ACM TOMACS 29 (2019).

    Examples
    --------
    >>> import cyrt
    >>> cyrt.random.randint(1, 7, 4, key=cyrt.random.key(7))
    Array([6, 5, 1, 1], dtype=int64)
    """
    name = "randint"
    shape = shape if size is None else size
    low, high = (0, low) if high is None else (low, high)
    each = DEFAULTS["i"] if dtype is None else _dtype(dtype)
    if each.kind not in "iu":
        raise TypeError(f"{name}: dtype: expected an integer type, got {each}")
    bits = bits_of(key, name)
    for what, bound in (("low", low), ("high", high)):
        if isinstance(bound, Array) or not hasattr(bound, "__index__"):
            raise TypeError(
                f"{name}: {what}: expected an int, got {show(bound)}{_shape_advice(bound)}"
            )
    first, end = index(low), index(high)
    size = 8 * each.itemsize
    least = -(1 << size - 1) if each.kind == "i" else 0
    if not first < end:
        raise ValueError(f"{name}: expected low < high, got {first} and {end}")
    if first < least or end > least + (1 << size):
        raise ValueError(f"{name}: {each} does not hold the integers from {first} to {end - 1}")
    count = end - first
    wide = count > 1 << 32
    modulus = 1 << (64 if wide else 32)
    words = (first % (1 << 64), count % (1 << 64), modulus % count)
    return draw(name, bits, words, shape, each, device, kernel=f"uint{size}", variant=int(wide))
