# cython: boundscheck=True, wraparound=True
"""The gradients of elementwise functions.

Gradients have the shape of the result: the tape sums them over the dimensions along which an
operand was broadcast, and casts them to its type. For complex numbers they are JAX's: nothing is
conjugated.
"""

import cmath
import math

from numpy import complexfloating

from cyrt import tape
from cyrt.ndarray import Array
from cyrt.numpy.arithmetic import fmod, frexp, ldexp, logaddexp2, modf
from cyrt.ops import functions as f
from cyrt.ops.elementwise import chosen
from cyrt.ops.inspection import finfo
from cyrt.ops.ternary import clip, ternary, where

_LN2, _LN10 = math.log(2), math.log(10)
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _rule(function, operand, backward, **further):
    tape.register(function, operand, backward, strict=False, **further)


def _unary(function, backward):
    _rule(function, "x", backward)


def _binary(function, first, second):
    _rule(function, "x1", first)
    _rule(function, "x2", second)


def _where(condition, g):
    """Return g where a condition is true, and zeros elsewhere."""
    return where(condition, g, 0.0)


def _abs(g, x):
    return g * f.sign(x) if x.dtype.kind == "f" else g * f.conj(f.sign(x))


def _sign(g, x, result):
    """The sign of a real number is constant almost everywhere; that of a complex number turns."""
    if x.dtype.kind == "f":
        return None
    size = f.abs(x)
    zero = f.equal(size, 0)
    return where(zero, 0.0, (g - f.real(g * result) * f.conj(result)) / where(zero, 1.0, size))


def _pow_base(g, x1, x2):
    """x2 * x1**(x2 - 1), and 0 for the exponent 0."""
    if not isinstance(x2, Array):
        return g * 0.0 if x2 == 0 else g if x2 == 1 else g * (x1 ** (x2 - 1) * x2)
    tiny = f.less(f.abs(x1), finfo(x1.dtype).smallest_normal)  # 1 / x1 may overflow
    none = f.logical_and(tiny, f.equal(x2, 0))
    return g * where(none, 0.0, x2 * where(none, 1.0, x1) ** (x2 - 1))


def _log(number):
    """The logarithm of a number that is not zero: NaN for a negative one, as of arrays."""
    if isinstance(number, (complex, complexfloating)):
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


def _pow_exponent(g, x1, result):
    """log(x1) * x1**x2, and 0 for the base 0."""
    if not isinstance(x1, Array):
        return _where(False, g) if x1 == 0 else g * (result * _log(x1))
    return g * where(f.equal(x1, 0), 0.0, result * f.log(where(f.equal(x1, 0), 1.0, x1)))


def _extreme(function, vjp, beyond):
    """Give the gradient to the operand that is `beyond` the other one; half of it if they are
    equal."""

    def share(g, own, other):
        return where(f.equal(own, other), g * 0.5, _where(beyond(own, other), g))

    _rule(
        function,
        "x1",
        lambda g, x1, x2: ternary(vjp, g, x1, x2),
        composed=lambda g, x1, x2: share(g, x1, x2),
    )
    _rule(
        function,
        "x2",
        lambda g, x1, x2: ternary(vjp, g, x2, x1),
        composed=lambda g, x1, x2: share(g, x2, x1),
    )


def _apart(own, other):
    """The difference of two operands, also of equal infinities."""
    return where(f.logical_and(f.equal(own, other), f.isinf(own)), 0.0, own - other)


_binary(f.add, lambda g: g, lambda g: g)
_binary(f.subtract, lambda g: g, lambda g: -g)
_binary(f.multiply, lambda g, x2: g * x2, lambda g, x1: g * x1)
_binary(f.divide, lambda g, x2: g / x2, lambda g, x2, result: -g * result / x2)
_binary(f.pow, _pow_base, _pow_exponent)
_extreme(f.maximum, "maximum_vjp", f.greater)
_extreme(f.minimum, "minimum_vjp", f.less)
_binary(
    f.atan2,
    lambda g, x1, x2: g * x2 / (x1 * x1 + x2 * x2),
    lambda g, x1, x2: -g * x1 / (x1 * x1 + x2 * x2),
)
_binary(
    f.hypot,
    lambda g, x1, result: g * where(f.equal(result, 0), 0.0, x1 / result),
    lambda g, x2, result: g * where(f.equal(result, 0), 0.0, x2 / result),
)
_binary(
    f.logaddexp,
    lambda g, x1, x2: g * f.sigmoid(_apart(x1, x2)),
    lambda g, x1, x2: g * f.sigmoid(_apart(x2, x1)),
)
_binary(
    logaddexp2,
    lambda g, x1, x2: g * f.sigmoid(_apart(x1, x2) * _LN2),
    lambda g, x1, x2: g * f.sigmoid(_apart(x2, x1) * _LN2),
)
_binary(fmod, lambda g: g, lambda g, x1, x2: -g * f.trunc(x1 / x2))
_binary(f.remainder, lambda g: g, lambda g, x1, x2: -g * f.floor(x1 / x2))
_binary(f.copysign, lambda g, x1, x2: where(f.signbit(x1) == f.signbit(x2), g, -g), lambda g: None)

_unary(f.abs, _abs)
_unary(f.sign, _sign)
_unary(f.negative, lambda g: -g)
_unary(f.positive, lambda g: g)
_unary(f.square, lambda g, x: g * (x * 2.0))
_unary(f.sqrt, lambda g, result: g * 0.5 / result)
_unary(f.rsqrt, lambda g, x, result: g * (result / x * -0.5))
_unary(f.cbrt, lambda g, result: g / (result * result * 3.0))
_unary(f.reciprocal, lambda g, result: -g * result * result)
_unary(f.exp, lambda g, result: g * result)
_unary(f.exp2, lambda g, result: g * (result * _LN2))
_unary(f.expm1, lambda g, result: g * (result + 1.0))
_unary(f.log, lambda g, x: g / x)
_unary(f.log2, lambda g, x: g / (x * _LN2))
_unary(f.log10, lambda g, x: g / (x * _LN10))
_unary(f.log1p, lambda g, x: g / (x + 1.0))
_unary(f.sin, lambda g, x: g * f.cos(x))
_unary(f.cos, lambda g, x: -g * f.sin(x))
_unary(f.tan, lambda g, result: g * (result * result + 1.0))
_unary(
    f.asin,
    lambda g, x: g * f.rsqrt(1.0 - x * x) if x.dtype.kind == "f" else g / f.sqrt(1.0 - x * x),
)
_unary(
    f.acos,
    lambda g, x: -g * f.rsqrt(1.0 - x * x) if x.dtype.kind == "f" else -g / f.sqrt(1.0 - x * x),
)
_unary(f.atan, lambda g, x: g / (x * x + 1.0))
_unary(f.sinh, lambda g, x: g * f.cosh(x))
_unary(f.cosh, lambda g, x: g * f.sinh(x))
_unary(f.tanh, lambda g, result: g * (1.0 - result * result))
_unary(f.asinh, lambda g, x: g / f.sqrt(x * x + 1.0))
_unary(f.acosh, lambda g, x: g / (f.sqrt(x - 1.0) * f.sqrt(x + 1.0)))
_unary(f.atanh, lambda g, x: g / (1.0 - x * x))
_unary(f.erf, lambda g, x: g * (f.exp(-x * x) * _TWO_OVER_ROOT_PI))
_unary(f.erfc, lambda g, x: g * (f.exp(-x * x) * -_TWO_OVER_ROOT_PI))
_unary(f.erfinv, lambda g, result: g * (f.exp(result * result) / _TWO_OVER_ROOT_PI))
_unary(f.sigmoid, lambda g, result: g * (result * (1.0 - result)))
_unary(f.conj, lambda g: f.conj(g))
_unary(f.real, lambda g: g)
_unary(f.imag, lambda g: g * -1j)

tape.register(chosen, "x1", lambda g, condition: _where(condition, g), strict=False)
tape.register(chosen, "x2", lambda g, condition: where(condition, 0.0, g), strict=False)


def _clip(g, x, min, max):
    """1 inside and at the bounds."""
    if min is not None:
        g = _where(f.greater_equal(x, min), g)
    return g if max is None else _where(f.less_equal(x, max), g)


def _clip_min(g, x, min, max):
    g = _where(f.less(x, min), g)
    return g if max is None else _where(f.less_equal(min, max), g)


def _clip_max(g, x, min, max):
    below = x if min is None else f.maximum(x, min)
    return _where(f.greater(below, max), g)


tape.register(clip, "x", _clip, strict=False)
tape.register(clip, "min", _clip_min, strict=False)
tape.register(clip, "max", _clip_max, strict=False)

tape.register(modf, "x", lambda g: g[0])
tape.register(
    frexp, "x", lambda g, result: None if g[0] is None else ldexp(g[0], f.negative(result[1]))
)

# Constant almost everywhere, or of a type that has no gradient.
for _each in (
    *(f.ceil, f.floor, f.round, f.trunc, f.signbit, f.floor_divide),
    *(f.equal, f.not_equal, f.less, f.less_equal, f.greater, f.greater_equal),
    *(f.isfinite, f.isinf, f.isnan),
    *(f.logical_and, f.logical_or, f.logical_xor, f.logical_not),
    *(f.bitwise_and, f.bitwise_or, f.bitwise_xor, f.bitwise_invert),
    *(f.bitwise_left_shift, f.bitwise_right_shift, f.gcd, f.lcm),
):
    tape.register_constant(_each)
for _each in (f.nextafter, f.lgamma, f.i0):
    tape.refuse(_each, "its derivative is no function of cyrt")
