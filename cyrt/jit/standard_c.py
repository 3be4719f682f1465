"""The C library's headers for device code, as text for NVRTC: see `cyrt.jit.standard`."""

from __future__ import annotations

from collections.abc import Iterable

_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "lgamma", "log", "log10", "log1p", "log2", "logb",
    "nearbyint", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
)  # fmt: skip
_BINARY = (
    "atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder",
)  # fmt: skip
# These functions also have a float version, whose name ends in f.
_WITH_FLOAT = (
    "fabs", "fma", "frexp", "ilogb", "ldexp", "llrint", "llround", "lrint", "lround", "modf",
    "remquo", "scalbln", "scalbn",
)  # fmt: skip
_OTHER = (
    "abs", "isfinite", "isinf", "isnan", "nan", "nanf", "signbit",
)  # fmt: skip

#: The functions of math.h.
MATH_FUNCTIONS = (
    *_UNARY, *_BINARY, *_WITH_FLOAT, *_OTHER,
    *(f"{name}f" for name in (*_UNARY, *_BINARY, *_WITH_FLOAT)),
)  # fmt: skip

_WHOLE = (
    "bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int",
    "unsigned int", "long", "unsigned long", "long long", "unsigned long long",
)  # fmt: skip


def _using(names: Iterable[str]) -> str:
    return "namespace std { " + " ".join(f"using ::{name};" for name in names) + " }\n"


_FIXED = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
STDINT_TYPES = [
    *_FIXED,
    *(name.replace("int", f"int_{kind}") for name in _FIXED for kind in ("least", "fast")),
    *("intptr_t", "uintptr_t", "intmax_t", "uintmax_t"),
]


def _stdint() -> str:
    # The same spelling as CCCL's under NVRTC, so that either may be included first.
    lines = [
        "#include <limits.h>",
        "typedef long long int64_t; typedef unsigned long long uint64_t;",
        "typedef signed char int8_t; typedef unsigned char uint8_t;",
        "typedef short int16_t; typedef unsigned short uint16_t;",
        "typedef int int32_t; typedef unsigned int uint32_t;",
        "typedef int64_t intptr_t; typedef uint64_t uintptr_t;",
        "typedef int64_t intmax_t; typedef uint64_t uintmax_t;",
    ]
    for bits, word in ((8, "CHAR"), (16, "SHRT"), (32, "INT"), (64, "LLONG")):
        lines += [
            f"typedef int{bits}_t int_least{bits}_t; typedef uint{bits}_t uint_least{bits}_t;",
            f"typedef int{bits}_t int_fast{bits}_t; typedef uint{bits}_t uint_fast{bits}_t;",
            f"#define INT{bits}_MIN {'S' * (bits == 8)}{word}_MIN",
            f"#define INT{bits}_MAX {'S' * (bits == 8)}{word}_MAX",
            f"#define UINT{bits}_MAX U{word}_MAX",
            f"#define INT{bits}_C(X) ((::int_least{bits}_t)(X))",
            f"#define UINT{bits}_C(X) ((::uint_least{bits}_t)(X))",
        ]
        for kind in ("LEAST", "FAST"):
            lines += [f"#define INT_{kind}{bits}_{end} INT{bits}_{end}" for end in ("MIN", "MAX")]
            lines += [f"#define UINT_{kind}{bits}_MAX UINT{bits}_MAX"]
    for name in ("PTR", "MAX"):
        lines += [f"#define INT{name}_MIN INT64_MIN", f"#define INT{name}_MAX INT64_MAX"]
        lines += [f"#define UINT{name}_MAX UINT64_MAX"]
    lines += [
        "#define SIZE_MAX UINT64_MAX",
        "#define PTRDIFF_MIN INT64_MIN",
        "#define PTRDIFF_MAX INT64_MAX",
    ]
    return "\n".join(lines) + "\n" + _using(STDINT_TYPES)


def _math() -> str:
    text = """
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#define HUGE_VALF INFINITY
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ll)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
typedef float float_t;
typedef double double_t;
template<bool> struct __cyrt_double { };
template<> struct __cyrt_double<true> { typedef double type; };
template<class T> struct __cyrt_number { enum { any = 0, whole = 0 }; };
template<class A, class B> struct __cyrt_differ { enum { value = 1 }; };
template<class A> struct __cyrt_differ<A, A> { enum { value = 0 }; };
"""
    for name in ("float", "double", *_WHOLE):
        text += f"template<> struct __cyrt_number<{name}> "
        text += f"{{ enum {{ any = 1, whole = {int(name in _WHOLE)} }}; }};\n"
    # For an integer the standard's functions are those of double; NVRTC finds them ambiguous.
    head = "__host__ __device__ inline typename __cyrt_double"
    for name in _UNARY:
        text += (
            f"template<class T> {head}<(__cyrt_number<T>::whole != 0)>::type {name}(T x) "
            f"{{ return {name}(double(x)); }}\n"
        )
    for name in _BINARY:
        text += (
            f"template<class A, class B> {head}<(__cyrt_number<A>::any && __cyrt_number<B>::any && "
            f"(__cyrt_number<A>::whole || __cyrt_differ<A, B>::value))>::type {name}(A x, B y) "
            f"{{ return {name}(double(x), double(y)); }}\n"
        )
    return text + _using(MATH_FUNCTIONS)


_FLOAT = """
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.402823466385288599e+38F
#define FLT_MIN 1.175494350822287508e-38F
#define FLT_TRUE_MIN 1.401298464324817071e-45F
#define FLT_EPSILON 1.192092895507812500e-7F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_DECIMAL_DIG 17
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.79769313486231570815e+308
#define DBL_MIN 2.22507385850720138309e-308
#define DBL_TRUE_MIN 4.94065645841246544177e-324
#define DBL_EPSILON 2.22044604925031308085e-16
"""

# These macros are spelled as CCCL spells them, since NVRTC warns of one defined in two ways.
_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-SHRT_MAX - 1)
#define SHRT_MAX 0x7fff
#define USHRT_MAX 0xffff
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffff
#define LLONG_MIN (-LLONG_MAX - 1)
#define LLONG_MAX 0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffUL
#define LONG_MIN (-LONG_MAX - 1)
#ifdef __LP64__
#define LONG_MAX LLONG_MAX
#define ULONG_MAX ULLONG_MAX
#else
#define LONG_MAX INT_MAX
#define ULONG_MAX UINT_MAX
#endif
"""

#: sys/types.h, which glibc's stdlib.h includes.
SYS_TYPES = (
    "typedef unsigned char u_char; typedef unsigned short ushort; typedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n#include <stdint.h>\n"
)

_STDDEF = """
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
namespace std {
using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t;
enum class byte : unsigned char { };
}
"""

#: Name of each C header without its ending, and its text.
C_HEADERS = {
    "assert": "",
    "float": _FLOAT,
    "inttypes": "#include <stdint.h>\n",
    "limits": _LIMITS,
    "math": _math(),
    "stdbool": "",
    "stddef": _STDDEF,
    "stdint": _stdint(),
    "stdio": "#include <stddef.h>\n" + _using(["printf"]),
    "stdlib": "#include <stddef.h>\n#define EXIT_SUCCESS 0\n#define EXIT_FAILURE 1\n"
    + _using(["abs", "labs", "llabs", "malloc", "free"]),
    "string": "#include <stddef.h>\n" + _using(["memcpy", "memset"]),
    "time": _using(["clock", "clock_t"]),
}
