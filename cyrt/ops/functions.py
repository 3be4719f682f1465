"""The public elementwise functions, in one or two lines each.

The standard's functions come first, then others of NumPy and SciPy, then NumPy's older names.
"""

from __future__ import annotations

from cyrt.builtin.rows import elementwise as _rows
from cyrt.ops.elementwise import Elementwise as _Elementwise
from cyrt.ops.signatures import Binary as _Binary
from cyrt.ops.signatures import Unary as _Unary

_KINDS = {
    "biufc": "any type",
    "biuf": "bool or a real type",
    "biu": "bool or an integer type",
    "iufc": "a numeric type",
    "iuf": "a real type",
    "iu": "an integer type",
    "fc": "a floating-point type; bool and integers are computed in float32",
    "f": "a real floating-point type; bool and integers are computed in float32",
}
_TEXT = """{summary}

Parameters
----------
{operands}
    Arrays of {kinds}. The result for numbers alone is a NumPy number.
out : Array, optional
    The array that receives the result, which is cast to its type within its kind; may be an
    operand.
where : Array or bool, optional
    bool: which elements of `out` receive the result. The others keep their values. Default: all.
dtype : DType, optional
    Type of the result, to which operands are cast first, within their kind.

Returns
-------
Array
    An array of {shape} and of {type}, or `out`.

Raises
------
TypeError
    An operand has an unsupported type or is a NumPy array, or the types do not promote.
ValueError
    The shapes do not broadcast, the arrays are on two devices, or `out` has another shape.

Notes
-----
{notes}
{example}"""
_EXAMPLE = """
Examples
--------
>>> import cyrt
>>> {expression}
{result}
"""
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
    if name in _rows.TO_BOOL:
        result = "bool"
    elif alone:
        result = "the type computed in" + (
            ", real for a complex one" if name in _rows.TO_REAL else ""
        )
    else:
        result = "the type that both promote to"
    example = ""
    if name in _EXAMPLES:
        expression, value = _EXAMPLES[name]
        example = _EXAMPLE.format(expression=expression, result=value)
    return _Elementwise(
        name,
        operands,
        _TEXT.format(
            summary=summary,
            kinds=_KINDS["".join(each for each in "biufc" if each in kinds)],
            operands=", ".join(operands)
            + (" : Array" if alone else " : Array, number or sequence of numbers"),
            shape="its shape" if alone else "the shape that both broadcast to",
            type=result,
            notes=" ".join(filter(None, (_STANDARD if standard else "", notes))),
            example=example,
        ),
    )


def _unary(name: str, summary: str, notes: str = "", *, standard: bool = True) -> _Unary:
    return _function(name, ("x",), summary, notes, standard)


def _binary(name: str, summary: str, notes: str = "", *, standard: bool = True) -> _Binary:
    return _function(name, ("x1", "x2"), summary, notes, standard)


_AS_IT_IS = "An int out of range of the other's integer type is compared as it is."
_NAN = "NaN if x1 or x2 is NaN."
_TRUTH = "A number is true where it is not 0; NaN is true."
_BOOL = "Bool is computed in int8, as by NumPy."
_SHIFT = f"A shift by the type's width or more, or by a negative number, {{}}, as NumPy's. {_BOOL}"

abs = _unary(
    "abs",
    "Absolute values; moduli of complex numbers.",
    "The lowest number of a signed integer type stays itself: the type has no such positive one.",
)
acos = _unary("acos", "Inverse cosines, in radians.")
acosh = _unary("acosh", "Inverse hyperbolic cosines.")
add = _binary("add", "Sums; logical or of bool.")
asin = _unary("asin", "Inverse sines, in radians.")
asinh = _unary("asinh", "Inverse hyperbolic sines.")
atan = _unary("atan", "Inverse tangents, in radians.")
atan2 = _binary("atan2", "Angles of the points (x2, x1), in radians, from -pi to pi.")
atanh = _unary("atanh", "Inverse hyperbolic tangents.")
bitwise_and = _binary("bitwise_and", "Bits that both have.")
bitwise_invert = _unary("bitwise_invert", "All bits flipped; logical not of bool.")
bitwise_left_shift = _binary(
    "bitwise_left_shift", "Bits moved x2 places up.", _SHIFT.format("gives 0")
)
bitwise_or = _binary("bitwise_or", "Bits that either has.")
bitwise_right_shift = _binary(
    "bitwise_right_shift",
    "Bits moved x2 places down, with the sign.",
    _SHIFT.format("gives 0, or -1 of a negative x1"),
)
bitwise_xor = _binary("bitwise_xor", "Bits that one of the two has.")
ceil = _unary("ceil", "The least whole numbers that are not below x.")
conj = _unary("conj", "Complex conjugates; real numbers themselves.")
copysign = _binary("copysign", "Numbers of x1's size and x2's sign, that of zeros and NaN too.")
cos = _unary("cos", "Cosines of radians.")
cosh = _unary("cosh", "Hyperbolic cosines.")
divide = _binary("divide", "Quotients.")
equal = _binary("equal", "Whether x1 == x2.", _AS_IT_IS)
exp = _unary("exp", "Powers of e.")
expm1 = _unary("expm1", "exp(x) - 1, accurate near 0.")
floor = _unary("floor", "The greatest whole numbers that are not above x.")
floor_divide = _binary(
    "floor_divide",
    "Quotients, rounded towards minus infinity.",
    f"An integer divided by 0 gives 0. {_BOOL}",
)
greater = _binary("greater", "Whether x1 > x2.", _AS_IT_IS)
greater_equal = _binary("greater_equal", "Whether x1 >= x2.", _AS_IT_IS)
hypot = _binary("hypot", "sqrt(x1**2 + x2**2), with no overflow in between.")
imag = _unary("imag", "Imaginary parts; zeros of real numbers.")
isfinite = _unary("isfinite", "Whether neither infinite nor NaN.")
isinf = _unary("isinf", "Whether infinite.")
isnan = _unary("isnan", "Whether NaN.")
less = _binary("less", "Whether x1 < x2.", _AS_IT_IS)
less_equal = _binary("less_equal", "Whether x1 <= x2.", _AS_IT_IS)
log = _unary("log", "Natural logarithms.")
log10 = _unary("log10", "Logarithms to base 10.")
log1p = _unary("log1p", "log(1 + x), accurate near 0.")
log2 = _unary("log2", "Logarithms to base 2.")
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)), with no overflow in between.")
logical_and = _binary("logical_and", "Whether both are true.", _TRUTH)
logical_not = _unary("logical_not", "Whether not true.", _TRUTH)
logical_or = _binary("logical_or", "Whether either is true.", _TRUTH)
logical_xor = _binary("logical_xor", "Whether one of the two is true.", _TRUTH)
maximum = _binary("maximum", "The greater of the two.", _NAN)
minimum = _binary("minimum", "The lesser of the two.", _NAN)
multiply = _binary("multiply", "Products; logical and of bool.")
negative = _unary("negative", "-x.")
nextafter = _binary("nextafter", "The next number of the type after x1, towards x2.")
not_equal = _binary("not_equal", "Whether x1 != x2.", _AS_IT_IS)
positive = _unary("positive", "+x, a copy.")
pow = _binary(
    "pow",
    "x1 to the power of x2.",
    "A float to the number 1, 2, 0.5 or -1 is x1, x1 * x1, sqrt(x1) or 1 / x1, as NumPy's: minus "
    "infinity to 0.5 is NaN. An integer to a negative power gives the reciprocal, rounded towards "
    f"0. {_BOOL}",
)
real = _unary("real", "Real parts; real numbers themselves.")
reciprocal = _unary("reciprocal", "1 / x.")
remainder = _binary(
    "remainder", "What floor_divide leaves; has the sign of x2.", f"An integer's by 0 is 0. {_BOOL}"
)
round = _unary("round", "The nearest whole numbers, halves to the even one.")
sign = _unary("sign", "-1, 0 or 1; x / abs(x) of complex numbers.")
signbit = _unary("signbit", "Whether the sign bit is set, of zeros and NaN too.")
sin = _unary("sin", "Sines of radians.")
sinh = _unary("sinh", "Hyperbolic sines.")
sqrt = _unary("sqrt", "Square roots.")
square = _unary("square", "x * x.")
subtract = _binary("subtract", "Differences.")
tan = _unary("tan", "Tangents of radians.")
tanh = _unary("tanh", "Hyperbolic tangents.")
trunc = _unary("trunc", "The nearest whole numbers towards 0.")

cbrt = _unary("cbrt", "Cube roots.", "As NumPy's.", standard=False)
erf = _unary("erf", "The error function.", "As SciPy's.", standard=False)
erfc = _unary("erfc", "1 - erf(x), accurate where erf(x) is near 1.", "As SciPy's.", standard=False)
erfinv = _unary(
    "erfinv", "The number whose erf is x; NaN beyond -1 and 1.", "As SciPy's.", standard=False
)
exp2 = _unary("exp2", "Powers of 2.", "As NumPy's.", standard=False)
gcd = _binary(
    "gcd", "Greatest common divisors of absolute values; 0 of zeros.", "As NumPy's.", standard=False
)
i0 = _unary("i0", "Modified Bessel functions of order 0.", "As NumPy's.", standard=False)
lcm = _binary(
    "lcm",
    "Least common multiples of absolute values; 0 where one is 0.",
    "As NumPy's: what the type cannot hold wraps.",
    standard=False,
)
lgamma = _unary(
    "lgamma", "Logarithms of the absolute value of the gamma function.", "As C's.", standard=False
)
rsqrt = _unary("rsqrt", "1 / sqrt(x).", "Infinity of 0, NaN below.", standard=False)
sigmoid = _unary(
    "sigmoid",
    "1 / (1 + exp(-x)), with no overflow in between.",
    "1 at infinity, 0 at minus infinity.",
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
