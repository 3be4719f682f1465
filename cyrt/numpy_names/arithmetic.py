"""NumPy's functions element by element that are made of the standard's."""

from __future__ import annotations

import math
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import array_beside, inexact, of_numbers, pair
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import assign, astype
from cyrt.ops.creation import zeros_like
from cyrt.ops.inspection import finfo
from cyrt.ops.ternary import clip, where


@of_numbers(1)
def rint(x: Array, /) -> Array:
    """The nearest whole numbers, halves to the even one; integers are computed in float32."""
    return elementary.round(inexact(check_array(x, "rint: x")))


@of_numbers(1)
def fix(x: Array) -> Array:
    """The nearest whole numbers towards 0, of x's type."""
    return elementary.trunc(x)


@of_numbers(1)
def degrees(x: Array, /) -> Array:
    """Radians in degrees; integers are computed in float32."""
    return inexact(check_array(x, "degrees: x")) * (180 / math.pi)


@of_numbers(1)
def radians(x: Array, /) -> Array:
    """Degrees in radians; integers are computed in float32."""
    return inexact(check_array(x, "radians: x")) * (math.pi / 180)


rad2deg, deg2rad = degrees, radians


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """What :func:`cyrt.floor_divide` and :func:`cyrt.remainder` give, a tuple."""
    return elementary.floor_divide(x1, x2), elementary.remainder(x1, x2)


@of_numbers(1)
def fabs(x: Array, /) -> Array:
    """Absolute values; integers are computed in float32."""
    return elementary.abs(inexact(check_array(x, "fabs: x")))


@of_numbers(1)
def modf(x: Array, /) -> tuple[Array, Array]:
    """What is behind the point and what is before it, each with x's sign; integers are computed
    in float32."""
    x = inexact(check_array(x, "modf: x"))
    whole = elementary.trunc(x)
    rest = where(elementary.isinf(x), 0, x - whole)
    return elementary.copysign(rest, x), whole


@of_numbers(2)
def ldexp(x1: Any, x2: Any, /) -> Array:
    """x1 times 2 to the power of x2.

    Parameters
    ----------
    x1 : Array or number
        Of a real type; integers are computed in float32.
    x2 : Array or number, at least one Array
        Integers.
    """
    like = check_array(x1 if isinstance(x1, Array) else x2, "ldexp: x1 or x2")
    x1, x2 = (array_beside(like, each, "ldexp: x1 or x2") for each in (x1, x2))
    if x2.dtype.kind not in "biu":
        raise TypeError(f"ldexp: x2: expected integers, got {x2.dtype}")
    x1 = inexact(x1)
    # In several steps: a power alone may be beyond what float64 holds.
    result, wide = astype(x1, "float64", copy=False), clip(astype(x2, "float64"), -4000, 4000)
    for _ in range(4):
        step = elementary.trunc(clip(wide, -1000, 1000))
        result, wide = result * elementary.exp2(step), wide - step
    return astype(result, x1.dtype, copy=False)


@of_numbers(2)
def float_power(x1: Any, x2: Any, /) -> Array:
    """x1 to the power of x2, computed in float64 or complex128."""
    wide = "complex128" if pair(x1, x2, "float_power")[0].dtype.kind == "c" else "float64"
    return elementary.pow(*(astype(each, wide, copy=False) if isinstance(each, Array) else each
                            for each in (x1, x2)))


def real_if_close(a: Array, tol: float = 100) -> Array:
    """The real parts, where all imaginary ones are near 0, which it waits for; else a itself.

    Parameters
    ----------
    a : Array
    tol : float
        How near: in units of the type's eps where more than 1.
    """
    if check_array(a, "real_if_close: a").dtype.kind != "c":
        return a
    near = tol * finfo(a.dtype).eps if tol > 1 else tol
    return a.real if reduce.all(elementary.abs(a.imag) < near) else a


@of_numbers(2)
def fmod(x1: Any, x2: Any, /) -> Array:
    """What a division rounded towards 0 leaves; has the sign of x1.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Of a real type. An integer's by 0 is 0, a float's NaN.
    """
    x1, x2 = pair(x1, x2, "fmod")
    if x1.dtype.kind == "f":
        return elementary.copysign(
            elementary.remainder(elementary.abs(x1), elementary.abs(x2)), x1)
    rest = elementary.remainder(x1, x2)
    return where((rest != 0) & ((x1 < 0) != (x2 < 0)), rest - x2, rest)


@of_numbers(2)
def fmax(x1: Any, x2: Any, /) -> Array:
    """The greater of the two; of a number and a NaN the number.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Of a real type.
    """
    return _but_nan(elementary.maximum, *pair(x1, x2, "fmax"))


@of_numbers(2)
def fmin(x1: Any, x2: Any, /) -> Array:
    """The lesser of the two; of a number and a NaN the number. See :func:`cyrt.fmax`."""
    return _but_nan(elementary.minimum, *pair(x1, x2, "fmin"))


def _but_nan(function: Any, x1: Array, x2: Array) -> Array:
    chosen = function(x1, x2)
    if chosen.dtype.kind != "f":
        return chosen
    return where(elementary.isnan(x1), x2, where(elementary.isnan(x2), x1, chosen))


@of_numbers(2)
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0 below 0, x2 at 0, 1 above; NaN of NaN.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Of a real type; integers are computed in float32.
    """
    x1, x2 = (inexact(each) for each in pair(x1, x2, "heaviside"))
    return where(x1 == 0, x2, where(elementary.isnan(x1), x1, astype(x1 > 0, x1.dtype)))


@of_numbers(1)
def sinc(x: Array) -> Array:
    """sin(pi x) / (pi x), 1 at 0; integers are computed in float32."""
    x = inexact(check_array(x, "sinc: x"))
    angles = x * math.pi
    return where(x == 0, 1, elementary.sin(angles) / angles)


@of_numbers(2)
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """log2(2**x1 + 2**x2), with no overflow in between.

    Parameters
    ----------
    x1, x2 : Array, number or sequence of numbers, at least one Array
        Of a real type; integers are computed in float32.
    """
    x1, x2 = (inexact(each) for each in pair(x1, x2, "logaddexp2"))
    apart = elementary.log1p(elementary.exp2(-elementary.abs(x1 - x2))) / math.log(2)
    return where(x1 == x2, x1 + 1, elementary.maximum(x1, x2) + apart)


@of_numbers(1)
def angle(z: Array, deg: bool = False) -> Array:
    """Angles of complex numbers, from -pi to pi; 0 or pi of real ones.

    Parameters
    ----------
    z : Array
    deg : bool
        In degrees.
    """
    z = inexact(check_array(z, "angle: z"))
    imaginary = z.imag if z.dtype.kind == "c" else zeros_like(z)
    found = elementary.atan2(imaginary, z.real)
    return degrees(found) if deg else found


@of_numbers(1)
def nan_to_num(x: Array, copy: bool = True, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> Array:
    """Numbers in the place of NaN and infinities, in both parts of complex numbers.

    Parameters
    ----------
    x : Array
        Integers and bool have none.
    copy : bool
        False: x itself, changed in place.
    nan, posinf, neginf : float
        What takes their places; for the infinities the type's greatest and least number where left
        out.
    """
    result = astype(check_array(x, "nan_to_num: x"), x.dtype, copy=copy)
    if result.dtype.kind not in "fc":
        return result
    limits = finfo(result.dtype)
    most = limits.max if posinf is None else posinf
    least = limits.min if neginf is None else neginf
    for part in (result.real, result.imag) if result.dtype.kind == "c" else (result,):
        finite = where(elementary.isnan(part), nan, where(
            part == math.inf, most, where(part == -math.inf, least, part)))
        assign(part, finite)
    return result


@of_numbers(1)
def isreal(x: Array) -> Array:
    """Whether the imaginary part is 0."""
    return elementary.logical_not(iscomplex(x))


@of_numbers(1)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary part is not 0."""
    if check_array(x, "iscomplex: x").dtype.kind != "c":
        return zeros_like(x, dtype="bool")
    return x.imag != 0


@of_numbers(1)
def isposinf(x: Array) -> Array:
    """Whether plus infinity; of real types."""
    return _is_infinity(x, "isposinf", math.inf)


@of_numbers(1)
def isneginf(x: Array) -> Array:
    """Whether minus infinity; of real types."""
    return _is_infinity(x, "isneginf", -math.inf)


def _is_infinity(x: Array, name: str, infinity: float) -> Array:
    if check_array(x, f"{name}: x").dtype.kind == "c":
        raise TypeError(f"{name}: complex numbers have no signed infinity, got {x.dtype}")
    return x == infinity
