"""Elementwise functions that are composed of those of the array API standard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.numpy.coercion import accept_numbers, as_array_like, promote_pair, to_inexact
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array, check_flags, check_real
from cyrt.ops.copy import assign, astype, check_devices
from cyrt.ops.creation import zeros_like
from cyrt.ops.inspection import finfo
from cyrt.ops.ternary import clip, where
from cyrt.ops.views import view_as
from cyrt.tape import differentiable

# For error messages: the types in which a function can compute, beside its own type.
_OR = {"float64": " or complex128", "complex128": ""}

__all__ = [
    "angle",
    "deg2rad",
    "degrees",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "heaviside",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "rad2deg",
    "radians",
    "real_if_close",
    "rint",
    "sinc",
]


@accept_numbers(1)
def rint(x: Array, /) -> Array:
    """Round to whole numbers, halves to even numbers; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Numbers of any numeric type; bool and integers are converted to float32. The result for a
        number is a NumPy number.

    Returns
    -------
    Array
        x's shape.
    """
    return elementary.round(to_inexact(check_array(x, "rint: x")))


@accept_numbers(1)
def fix(x: Array) -> Array:
    """The nearest whole numbers towards 0, in x's type.

    Parameters
    ----------
    x : Array or number
        Numbers of a real type. The result for a number is a NumPy number.

    Returns
    -------
    Array
        x's shape and type.
    """
    if check_real(x, "fix: x").dtype == "bool":
        raise TypeError("fix: x: expected numbers, got bool")
    return elementary.trunc(x)


@accept_numbers(1)
def degrees(x: Array, /) -> Array:
    """Convert radians to degrees; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Angles in radians, of a floating-point type; bool and integers are converted to float32. The
        result for a number is a NumPy number.

    Returns
    -------
    Array
        x's shape.
    """
    return to_inexact(check_array(x, "degrees: x")) * (180 / math.pi)


@accept_numbers(1)
def radians(x: Array, /) -> Array:
    """Convert degrees to radians; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Angles in degrees, of a floating-point type; bool and integers are converted to float32. The
        result for a number is a NumPy number.

    Returns
    -------
    Array
        x's shape.
    """
    return to_inexact(check_array(x, "radians: x")) * (math.pi / 180)


rad2deg, deg2rad = degrees, radians


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """The results of :func:`cyrt.floor_divide` and :func:`cyrt.remainder`, a tuple.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers
        The dividends and the divisors, of real types; they broadcast.

    Returns
    -------
    tuple of Array
        The quotients, rounded towards minus infinity, and the remainders, with the sign of x2.
    """
    check_devices("divmod", x1=x1, x2=x2)
    return elementary.floor_divide(x1, x2), elementary.remainder(x1, x2)


@accept_numbers(1)
def fabs(x: Array, /) -> Array:
    """Absolute values; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Numbers of any numeric type; bool and integers are converted to float32. The result for a
        number is a NumPy number.

    Returns
    -------
    Array
        x's shape.
    """
    return elementary.abs(to_inexact(check_array(x, "fabs: x")))


@differentiable
@accept_numbers(1)
def modf(x: Array, /) -> tuple[Array, Array]:
    """The fractional and whole parts, both with x's sign; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Numbers of a real type; bool and integers are converted to float32.

    Returns
    -------
    tuple of Array
        The fractional parts and the whole parts, of x's shape. The fractional part of an infinity
        is 0.
    """
    x = to_inexact(check_array(x, "modf: x"))
    whole = elementary.trunc(x)
    rest = where(elementary.isinf(x), 0, x - whole)
    return elementary.copysign(rest, x), whole


@differentiable
@accept_numbers(1)
def frexp(x: Array, /) -> tuple[Array, Array]:
    """Split numbers into mantissas, with absolute values from 0.5 to 1, and exponents of 2.

    Parameters
    ----------
    x : Array
        A real type; integers are converted to float32.

    Returns
    -------
    mantissa : Array
        An array of x's type. Where x is 0, infinite or NaN, the mantissa is x.
    exponent : Array
        An array of int32; 0 where x is 0, infinite or NaN. ``ldexp(mantissa, exponent)`` is x.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.frexp(cyrt.asarray([3.0, 0.25]))
    (Array([0.75, 0.5 ], dtype=float32), Array([ 2, -1], dtype=int32))
    """
    x = to_inexact(check_array(x, "frexp: x"))
    if x.dtype.kind == "c":
        raise TypeError(f"frexp: x: expected a real type, got {x.dtype}")
    wide = astype(x, "float64", copy=False)
    small = elementary.abs(wide) < 2.0**-1000  # subnormal numbers have other bits
    bits = view_as(where(small, wide * 2.0**100, wide), "int64")
    whole = (wide == 0) | elementary.logical_not(elementary.isfinite(wide))
    exponent = ((bits >> 52) & 0x7FF) - 1022 - where(small, 100, 0)
    mantissa = view_as((bits & ~(0x7FF << 52)) | (1022 << 52), "float64")
    return (
        astype(where(whole, wide, mantissa), x.dtype, copy=False),
        astype(where(whole, 0, exponent), "int32"),
    )


@accept_numbers(2)
def ldexp(x1: Any, x2: Any, /) -> Array:
    """x1 times 2 to the power of x2.

    Parameters
    ----------
    x1 : Array or number
        Real numbers; integers are converted to float32.
    x2 : Array or number
        Integers. At least one of the two is an Array.
    """
    like = check_array(x1 if isinstance(x1, Array) else x2, "ldexp: x1 or x2")
    check_devices("ldexp", x1=x1, x2=x2)
    x1, x2 = (as_array_like(like, each, "ldexp: x1 or x2") for each in (x1, x2))
    if x2.dtype.kind not in "biu":
        raise TypeError(f"ldexp: x2: expected integers, got {x2.dtype}")
    x1 = to_inexact(x1)
    # This takes several steps, because the power alone may overflow float64.
    result, wide = astype(x1, "float64", copy=False), clip(astype(x2, "float64"), -4000, 4000)
    for _ in range(4):
        step = elementary.trunc(clip(wide, -1000, 1000))
        result, wide = result * elementary.exp2(step), wide - step
    return astype(result, x1.dtype, copy=False)


@accept_numbers(2)
def float_power(x1: Any, x2: Any, /, *, dtype: Any = None) -> Array:
    """x1 to the power of x2, computed in float64 or complex128.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
    dtype : DType, optional
        The type of the computation, float64 or complex128. Default: the one that holds both.
    """
    wide = "complex128" if promote_pair(x1, x2, "float_power")[0].dtype.kind == "c" else "float64"
    if dtype is not None:
        chosen = _dtype(dtype).name
        if chosen not in ("float64", "complex128") or (chosen, wide) == ("float64", "complex128"):
            raise TypeError(f"float_power: dtype: expected {wide}{_OR[wide]}, got {chosen}")
        wide = chosen
    if not isinstance(x2, Array):
        # `pow` takes the square root for the number 0.5, as NumPy's `power` does. NumPy's
        # `float_power` does not: its results for -0 and minus infinity are 0 and infinity.
        x2 = as_array_like(x1, x2, "float_power: x2", wide)
    return elementary.pow(
        *(astype(each, wide, copy=False) if isinstance(each, Array) else each for each in (x1, x2))
    )


def real_if_close(a: Array, tol: float = 100) -> Array:
    """The real parts if all imaginary parts are near 0, otherwise `a`; the call waits for the
    values.

    Parameters
    ----------
    a : Array
    tol : float
        The largest imaginary part; a number greater than 1 is in units of the type's eps.
    """
    if check_array(a, "real_if_close: a").dtype.kind != "c":
        return a
    near = tol * finfo(a.dtype).eps if tol > 1 else tol
    return a.real if reduce.all(elementary.abs(a.imag) < near) else a


@differentiable
@accept_numbers(2)
def fmod(x1: Any, x2: Any, /, *, dtype: Any = None) -> Array:
    """The remainder of a division that is rounded towards 0; it has the sign of x1.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Real numbers. Division by 0 gives 0 for integers and NaN for floats.
    dtype : DType, optional
        Type to which both are cast first, within their kind.
    """
    x1, x2 = promote_pair(x1, x2, "fmod")
    if dtype is not None:
        chosen = _dtype(dtype)
        if "buifc".index(chosen.kind) < "buifc".index(x1.dtype.kind) or chosen.kind in "bc":
            raise TypeError(f"fmod: dtype: operands of {x1.dtype} are not computed in {chosen}")
        x1, x2 = (astype(each, chosen, copy=False) for each in (x1, x2))
    if x1.dtype.kind == "f":
        return elementary.copysign(elementary.remainder(elementary.abs(x1), elementary.abs(x2)), x1)
    rest = elementary.remainder(x1, x2)
    return where((rest != 0) & ((x1 < 0) != (x2 < 0)), rest - x2, rest)


@accept_numbers(2)
def fmax(x1: Any, x2: Any, /) -> Array:
    """The greater of two numbers; a NaN is ignored if the other one is a number.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Real numbers.
    """
    return _ignore_nan(elementary.maximum, *_real_pair(x1, x2, "fmax"))


@accept_numbers(2)
def fmin(x1: Any, x2: Any, /) -> Array:
    """The lesser of two numbers; see :func:`cyrt.fmax`.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Real numbers; they broadcast.

    Returns
    -------
    Array
        The lesser numbers, of the broadcast shape and the promoted type.
    """
    return _ignore_nan(elementary.minimum, *_real_pair(x1, x2, "fmin"))


def _real_pair(x1: Any, x2: Any, name: str) -> tuple[Array, Array]:
    x1, x2 = promote_pair(x1, x2, name)
    return check_real(x1, f"{name}: x1 or x2"), x2


def _ignore_nan(function: Callable[..., Array], x1: Array, x2: Array) -> Array:
    chosen = function(x1, x2)
    if chosen.dtype.kind != "f":
        return chosen
    return where(elementary.isnan(x1), x2, where(elementary.isnan(x2), x1, chosen))


@accept_numbers(2)
def heaviside(x1: Any, x2: Any, /) -> Array:
    """The step function: 0 where x1 is below 0, x2 where it is 0, 1 where it is above 0.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Real numbers; integers are converted to float32.
    """
    x1, x2 = (to_inexact(each) for each in promote_pair(x1, x2, "heaviside"))
    return where(x1 == 0, x2, where(elementary.isnan(x1), x1, astype(x1 > 0, x1.dtype)))


@accept_numbers(1)
def sinc(x: Array) -> Array:
    """``sin(pi * x) / (pi * x)``, and 1 at 0; integers are converted to float32.

    Parameters
    ----------
    x : Array or number
        Numbers of a floating-point type; bool and integers are converted to float32.

    Returns
    -------
    Array
        x's shape.
    """
    x = to_inexact(check_array(x, "sinc: x"))
    angles, zero = x * math.pi, x == 0
    # The parabola at 0 has the derivatives of the function, and the quotient there is not 0 / 0.
    near = 1 - angles * angles / 6
    return where(zero, near, elementary.sin(angles) / where(zero, 1, angles))


@differentiable
@accept_numbers(2)
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """``log2(2**x1 + 2**x2)`` without overflow of the powers.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Real numbers; integers are converted to float32.
    """
    x1, x2 = (to_inexact(each) for each in promote_pair(x1, x2, "logaddexp2"))
    apart = elementary.log1p(elementary.exp2(-elementary.abs(x1 - x2))) / math.log(2)
    return where(x1 == x2, x1 + 1, elementary.maximum(x1, x2) + apart)


@accept_numbers(1)
def angle(z: Array, deg: bool = False) -> Array:
    """The angles of complex numbers, from -pi to pi; 0 or pi for real numbers.

    Parameters
    ----------
    z : Array
    deg : bool
        Whether the result is in degrees instead of radians.
    """
    check_flags("angle", deg=deg)
    z = to_inexact(check_array(z, "angle: z"))
    imaginary = z.imag if z.dtype.kind == "c" else zeros_like(z)
    found = elementary.atan2(imaginary, z.real)
    return degrees(found) if deg else found


@accept_numbers(1)
def nan_to_num(
    x: Array,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """Replace NaN and infinities by numbers, in both parts of complex numbers.

    Parameters
    ----------
    x : Array
        Integers and bool are returned unchanged.
    copy : bool
        Whether the result is a copy; otherwise x is changed in place.
    nan, posinf, neginf : float
        The replacements; by default 0, and the greatest and the lowest number of the type.
    """
    check_flags("nan_to_num", copy=copy)
    check_array(x, "nan_to_num: x")
    check_devices("nan_to_num", x=x, nan=nan, posinf=posinf, neginf=neginf)
    result = astype(x, x.dtype, copy=copy)
    if result.dtype.kind not in "fc":
        return result
    limits = finfo(result.dtype)
    most = limits.max if posinf is None else posinf
    least = limits.min if neginf is None else neginf
    for part in (result.real, result.imag) if result.dtype.kind == "c" else (result,):
        finite = where(
            elementary.isnan(part),
            nan,
            where(part == math.inf, most, where(part == -math.inf, least, part)),
        )
        assign(part, finite)
    return result


@accept_numbers(1)
def isreal(x: Array) -> Array:
    """Whether the imaginary part is 0.

    Parameters
    ----------
    x : Array or number
        Numbers of any type.

    Returns
    -------
    Array
        An array of bool, of x's shape.
    """
    return elementary.logical_not(iscomplex(x))


@accept_numbers(1)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary part is not 0.

    Parameters
    ----------
    x : Array or number
        Numbers of any type.

    Returns
    -------
    Array
        An array of bool, of x's shape.
    """
    if check_array(x, "iscomplex: x").dtype.kind != "c":
        return zeros_like(x, dtype="bool")
    return x.imag != 0


@accept_numbers(1)
def isposinf(x: Array) -> Array:
    """Whether elements of a real type are plus infinity.

    Parameters
    ----------
    x : Array or number
        Numbers of a real type.

    Returns
    -------
    Array
        An array of bool, of x's shape.

    Raises
    ------
    TypeError
        x is complex.
    """
    return _equals_infinity(x, "isposinf", math.inf)


@accept_numbers(1)
def isneginf(x: Array) -> Array:
    """Whether elements of a real type are minus infinity.

    Parameters
    ----------
    x : Array or number
        Numbers of a real type.

    Returns
    -------
    Array
        An array of bool, of x's shape.

    Raises
    ------
    TypeError
        x is complex.
    """
    return _equals_infinity(x, "isneginf", -math.inf)


def _equals_infinity(x: Array, name: str, infinity: float) -> Array:
    if check_array(x, f"{name}: x").dtype.kind == "c":
        raise TypeError(f"{name}: complex numbers have no signed infinity, got {x.dtype}")
    return x == infinity
