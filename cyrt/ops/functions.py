"""The public elementwise functions, in one or two lines each.

The functions of the array API standard come first, then others of NumPy and SciPy, then NumPy's
other names.
"""

from __future__ import annotations

from cyrt.builtin.rows import elementwise as _rows
from cyrt.ops.elementwise import Elementwise as _Elementwise
from cyrt.ops.signatures import Binary as _Binary
from cyrt.ops.signatures import Unary as _Unary
from cyrt.ops.signatures import documented as _documented

_KINDS = {
    "biufc": "Any element type",
    "biuf": "Type bool or a real type",
    "biu": "Type bool or an integer type",
    "iufc": "A numeric type",
    "iuf": "A real type",
    "iu": "An integer type",
    "fc": "A floating-point type; bool and integers are converted to float32",
    "f": "A real floating-point type; bool and integers are converted to float32",
}
# An expression, and what it gives.
_EXAMPLES = {
    "abs": ("cyrt.abs(cyrt.asarray([-1, 0, 2]))", "Array([1, 0, 2], dtype=int64)"),
    "add": ("cyrt.add(cyrt.asarray([1, 2]), 10)", "Array([11, 12], dtype=int64)"),
    "atan2": (
        "cyrt.atan2(cyrt.asarray([1.0, -1.0]), cyrt.asarray([1.0, 1.0])).round(3)",
        "Array([ 0.785, -0.785], dtype=float32)",
    ),
    "cos": ("cyrt.cos(cyrt.asarray([0.0, cyrt.pi])).round(3)", "Array([ 1., -1.], dtype=float32)"),
    "divide": ("cyrt.divide(cyrt.asarray([1, 2]), 4)", "Array([0.25, 0.5 ], dtype=float32)"),
    "equal": (
        "cyrt.equal(cyrt.asarray([1, 2, 3]), cyrt.asarray([1, 0, 3]))",
        "Array([ True, False,  True], dtype=bool)",
    ),
    "exp": ("cyrt.exp(cyrt.asarray([0.0, 1.0])).round(3)", "Array([1.   , 2.718], dtype=float32)"),
    "floor": ("cyrt.floor(cyrt.asarray([-1.5, 1.5]))", "Array([-2.,  1.], dtype=float32)"),
    "isnan": ("cyrt.isnan(cyrt.asarray([1.0, cyrt.nan]))", "Array([False,  True], dtype=bool)"),
    "log": ("cyrt.log(cyrt.asarray([1.0, cyrt.e])).round(3)", "Array([0., 1.], dtype=float32)"),
    "logical_and": (
        "cyrt.logical_and(cyrt.asarray([True, True]), cyrt.asarray([True, False]))",
        "Array([ True, False], dtype=bool)",
    ),
    "maximum": ("cyrt.maximum(cyrt.asarray([-1.0, 0.5]), 0)", "Array([0. , 0.5], dtype=float32)"),
    "minimum": ("cyrt.minimum(cyrt.asarray([-1.0, 0.5]), 0)", "Array([-1.,  0.], dtype=float32)"),
    "multiply": (
        "cyrt.multiply(cyrt.asarray([1, 2]), cyrt.asarray([10, 20]))",
        "Array([10, 40], dtype=int64)",
    ),
    "pow": ("cyrt.pow(cyrt.asarray([2, 3]), 2)", "Array([4, 9], dtype=int64)"),
    "remainder": ("cyrt.remainder(cyrt.asarray([-1, 5]), 3)", "Array([2, 2], dtype=int64)"),
    "sigmoid": (
        "cyrt.sigmoid(cyrt.asarray([-1.0, 0.0, 2.0])).round(3)",
        "Array([0.269, 0.5  , 0.881], dtype=float32)",
    ),
    "sin": ("cyrt.sin(cyrt.asarray([0.0, 1.0])).round(3)", "Array([0.   , 0.841], dtype=float32)"),
    "sqrt": ("cyrt.sqrt(cyrt.asarray([4.0, 9.0]))", "Array([2., 3.], dtype=float32)"),
    "square": ("cyrt.square(cyrt.asarray([2.0, 3.0]))", "Array([4., 9.], dtype=float32)"),
    "subtract": ("cyrt.subtract(cyrt.asarray([1, 2]), 10)", "Array([-9, -8], dtype=int64)"),
    "tanh": (
        "cyrt.tanh(cyrt.asarray([-1.0, 0.0, 2.0])).round(3)",
        "Array([-0.762,  0.   ,  0.964], dtype=float32)",
    ),
}
_STANDARD = "Special cases are those of the Python array API standard, 2025.12."


def _function(
    name: str, operands: tuple[str, ...], summary: str, notes: str, standard: bool
) -> _Elementwise:
    alone = len(operands) == 1
    kinds = set("".join((_rows.UNARY if alone else _rows.BINARY)[name]))
    shape = "x's shape" if alone else "the shape to which both broadcast"
    if name in _rows.TO_BOOL:
        result = "bool"
    elif alone:
        result = "the type in which it is computed" + (
            " (for a complex type, the type of its parts)" if name in _rows.TO_REAL else ""
        )
    else:
        result = "the type to which both promote"
    return _Elementwise(
        name,
        operands,
        _documented(
            summary,
            ", ".join(operands)
            + (" : Array" if alone else " : Array, number or sequence of numbers"),
            _KINDS["".join(each for each in "biufc" if each in kinds)],
            f"An array of {shape} and of {result}",
            " ".join(filter(None, (_STANDARD if standard else "", notes))),
            _EXAMPLES.get(name),
        ),
    )


def _unary(name: str, summary: str, notes: str = "", *, standard: bool = True) -> _Unary:
    return _function(name, ("x",), summary, notes, standard)


def _binary(name: str, summary: str, notes: str = "", *, standard: bool = True) -> _Binary:
    return _function(name, ("x1", "x2"), summary, notes, standard)


_AS_IT_IS = (
    "An int that is out of range of the other operand's integer type is compared by its value."
)
_NAN = "The result is NaN where x1 or x2 is NaN."
_TRUTH = "A number is true if it is not 0; NaN is true."
_BOOL = "Bool is converted to int8, as in NumPy."
_SHIFT = (
    "A shift by the width of the type or more, or by a negative number, gives {}, as in NumPy. "
    + _BOOL
)
_NUMPY = "Special cases are those of NumPy."
_SCIPY = "Special cases are those of SciPy."

abs = _unary(
    "abs",
    "Absolute values; for complex numbers, the distances from 0.",
    "The lowest number of a signed integer type gives itself: the type cannot hold its absolute "
    "value.",
)
acos = _unary("acos", "Inverse cosines, in radians.")
acosh = _unary("acosh", "Inverse hyperbolic cosines.")
add = _binary("add", "Sums; for bool, logical or.")
asin = _unary("asin", "Inverse sines, in radians.")
asinh = _unary("asinh", "Inverse hyperbolic sines.")
atan = _unary("atan", "Inverse tangents, in radians.")
atan2 = _binary("atan2", "Angles of the points (x2, x1), in radians, from -pi to pi.")
atanh = _unary("atanh", "Inverse hyperbolic tangents.")
bitwise_and = _binary("bitwise_and", "Bits that are set in both operands.")
bitwise_invert = _unary("bitwise_invert", "All bits inverted; for bool, logical not.")
bitwise_left_shift = _binary(
    "bitwise_left_shift", "x1 with its bits shifted to the left by x2.", _SHIFT.format("0")
)
bitwise_or = _binary("bitwise_or", "Bits that are set in at least one operand.")
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "x1 with its bits shifted to the right by x2; the sign is kept.",
    _SHIFT.format("0, or -1 if x1 is negative"),
)
bitwise_xor = _binary("bitwise_xor", "Bits that are set in exactly one operand.")
ceil = _unary("ceil", "The smallest whole numbers that are at least x.")
conj = _unary("conj", "Complex conjugates; real numbers are returned unchanged.")
copysign = _binary("copysign", "x1 with the sign of x2, also if x2 is zero or NaN.")
cos = _unary("cos", "Cosines of angles in radians.")
cosh = _unary("cosh", "Hyperbolic cosines.")
divide = _binary("divide", "Quotients.")
equal = _binary("equal", "Whether x1 == x2.", _AS_IT_IS)
exp = _unary("exp", "Exponentials: e to the power of x.")
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.")
floor = _unary("floor", "The greatest whole numbers that are at most x.")
floor_divide = _binary(
    "floor_divide",
    "Quotients, rounded towards minus infinity.",
    f"An integer divided by 0 gives 0. {_BOOL}",
)
greater = _binary("greater", "Whether x1 > x2.", _AS_IT_IS)
greater_equal = _binary("greater_equal", "Whether x1 >= x2.", _AS_IT_IS)
hypot = _binary("hypot", "sqrt(x1**2 + x2**2), without overflow of the squares.")
imag = _unary("imag", "Imaginary parts; zeros for real numbers.")
isfinite = _unary("isfinite", "Whether elements are neither infinite nor NaN.")
isinf = _unary("isinf", "Whether elements are infinite.")
isnan = _unary("isnan", "Whether elements are NaN.")
less = _binary("less", "Whether x1 < x2.", _AS_IT_IS)
less_equal = _binary("less_equal", "Whether x1 <= x2.", _AS_IT_IS)
log = _unary("log", "Natural logarithms.")
log10 = _unary("log10", "Logarithms to base 10.")
log1p = _unary("log1p", "log(1 + x), accurate near 0.")
log2 = _unary("log2", "Logarithms to base 2.")
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)), without overflow of the exponentials.")
logical_and = _binary("logical_and", "Whether both operands are true.", _TRUTH)
logical_not = _unary("logical_not", "Whether elements are false.", _TRUTH)
logical_or = _binary("logical_or", "Whether at least one operand is true.", _TRUTH)
logical_xor = _binary("logical_xor", "Whether exactly one operand is true.", _TRUTH)
maximum = _binary("maximum", "The greater of two numbers.", _NAN)
minimum = _binary("minimum", "The smaller of two numbers.", _NAN)
multiply = _binary("multiply", "Products; for bool, logical and.")
negative = _unary("negative", "-x.")
nextafter = _binary("nextafter", "The next number of the type after x1, in the direction of x2.")
not_equal = _binary("not_equal", "Whether x1 != x2.", _AS_IT_IS)
positive = _unary("positive", "+x: a copy.")
pow = _binary(
    "pow",
    "x1 to the power of x2.",
    "If x1 is a float and x2 the number 1, 2, 0.5 or -1, the result is x1, x1 * x1, sqrt(x1) or "
    "1 / x1, as in NumPy: minus infinity to the power of 0.5 is NaN. An integer to a negative "
    f"power gives the reciprocal, rounded towards 0. {_BOOL}",
)
real = _unary("real", "Real parts; real numbers are returned unchanged.")
reciprocal = _unary("reciprocal", "1 / x.")
remainder = _binary(
    "remainder",
    "Remainders of floor_divide, with the sign of x2.",
    f"The remainder of an integer divided by 0 is 0. {_BOOL}",
)
round = _unary("round", "The nearest whole numbers; halves are rounded to even numbers.")
sign = _unary("sign", "Signs: -1, 0 or 1; for complex numbers, x / abs(x).")
signbit = _unary("signbit", "Whether the sign bit is set, also for zeros and NaN.")
sin = _unary("sin", "Sines of angles in radians.")
sinh = _unary("sinh", "Hyperbolic sines.")
sqrt = _unary("sqrt", "Square roots.")
square = _unary("square", "x * x.")
subtract = _binary("subtract", "Differences.")
tan = _unary("tan", "Tangents of angles in radians.")
tanh = _unary("tanh", "Hyperbolic tangents.")
trunc = _unary("trunc", "x rounded towards 0 to whole numbers.")

cbrt = _unary("cbrt", "Cube roots.", _NUMPY, standard=False)
erf = _unary("erf", "The error function.", _SCIPY, standard=False)
erfc = _unary("erfc", "1 - erf(x), accurate where erf(x) is near 1.", _SCIPY, standard=False)
erfinv = _unary(
    "erfinv", "The inverse error function; NaN below -1 and above 1.", _SCIPY, standard=False
)
exp2 = _unary("exp2", "Powers of 2.", _NUMPY, standard=False)
gcd = _binary(
    "gcd", "Greatest common divisors of absolute values; 0 for two zeros.", _NUMPY, standard=False
)
i0 = _unary("i0", "The modified Bessel function of order 0.", _NUMPY, standard=False)
lcm = _binary(
    "lcm",
    "Least common multiples of absolute values; 0 if one of them is 0.",
    "A result that the type cannot hold wraps, as in NumPy.",
    standard=False,
)
lgamma = _unary(
    "lgamma",
    "Logarithms of the absolute value of the gamma function.",
    "Special cases are those of C.",
    standard=False,
)
rsqrt = _unary(
    "rsqrt",
    "1 / sqrt(x).",
    "The result for 0 is infinity, for negative numbers NaN.",
    standard=False,
)
sigmoid = _unary(
    "sigmoid",
    "1 / (1 + exp(-x)), without overflow of the exponential.",
    "The result is 1 at infinity, and 0 at minus infinity.",
    standard=False,
)

absolute, conjugate, mod, power, true_divide = abs, conj, remainder, pow, divide
arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
)
bitwise_not, invert, left_shift, right_shift = (
    bitwise_invert,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_right_shift,
)
