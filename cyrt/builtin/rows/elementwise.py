"""Elementwise unary, binary and ternary operations, casts and copies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cyrt.builtin.row import BY_SIZE, Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("unary", "binary", "ternary", "activation", "cast", "copy")
VARIANTS = ("", "_strided")
# The wheel contains only the float32 kernels of these operations, which take the longest to compile
# and which few programs need. It does not contain arithmetic of uint8, either.
RARE = frozenset(
    {
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "copysign",
        "cosh",
        "elu",
        "elu_vjp",
        "erfc",
        "erfinv",
        "expm1",
        "glu",
        "gcd",
        "glu_gate_vjp",
        "hardswish",
        "hardswish_vjp",
        "hypot",
        "i0",
        "lcm",
        "lgamma",
        "log10",
        "logaddexp",
        "log1p",
        "log2",
        "multiply_add",
        "nextafter",
        "scale_centered",
        "selu",
        "selu_vjp",
        "sinh",
        "softplus_of_beta_vjp",
        "tan",
    }
)
# The additional variant of operations that are frequent on small arrays.
ALIGNED = frozenset({"unary", "binary", "activation"})

# The expression of each operation, by the set of kinds (DType.kind) to which it applies.
UNARY: dict[str, dict[str, str]] = {
    "abs": {"iufc": "abs(a)"},
    "positive": {"iufc": "a"},
    "negative": {"iufc": "-a"},
    "sign": {"iufc": "sign(a)"},
    "square": {"iufc": "a * a"},
    "reciprocal": {"f": "1 / a", "c": "reciprocal(a)"},
    "round": {"iu": "a", "fc": "round(a)"},
    "conj": {"iuf": "a", "c": "conj(a)"},
    "real": {"iuf": "a", "c": "a.re"},
    "imag": {"iuf": "0", "c": "a.im"},
    "isnan": {"biu": "false", "fc": "isnan(a)"},
    "isinf": {"biu": "false", "fc": "isinf(a)"},
    "isfinite": {"biu": "true", "fc": "isfinite(a)"},
    "signbit": {"f": "signbit(a)"},
    "logical_not": {"biufc": "!truth(a)"},
    "bitwise_invert": {"b": "!a", "iu": "~a"},
    **{name: {"iu": "a", "f": f"{name}(a)"} for name in ("floor", "ceil", "trunc")},
    **{
        name: {"fc": f"{name}(a)"}
        for name in (
            "sqrt",
            "exp",
            "expm1",
            "log",
            "log1p",
            "log2",
            "log10",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
        )
    },
    **{
        name: {"f": f"{name}(a)"}
        for name in ("rsqrt", "cbrt", "exp2", "erf", "erfc", "erfinv", "i0", "lgamma", "sigmoid")
    },
}
BINARY: dict[str, dict[str, str]] = {
    "add": {"b": "a || b", "iufc": "a + b"},
    "subtract": {"iufc": "a - b"},
    "multiply": {"b": "a && b", "iufc": "a * b"},
    "divide": {"fc": "a / b"},
    "floor_divide": {"iuf": "floor_divide(a, b)"},
    "remainder": {"iuf": "remainder(a, b)"},
    "pow": {"iufc": "pow(a, b)"},
    "maximum": {"biuf": "maximum(a, b)"},
    "minimum": {"biuf": "minimum(a, b)"},
    "atan2": {"f": "atan2(a, b)"},
    "hypot": {"f": "hypot(a, b)"},
    "copysign": {"f": "copysign(a, b)"},
    "nextafter": {"f": "nextafter<T>(a, b)"},
    "logaddexp": {"f": "logaddexp(a, b)"},
    "equal": {"biufc": "a == b"},
    "not_equal": {"biufc": "a != b"},
    "less": {"biuf": "a < b"},
    "less_equal": {"biuf": "a <= b"},
    "greater": {"biuf": "a > b"},
    "greater_equal": {"biuf": "a >= b"},
    "logical_and": {"biufc": "truth(a) && truth(b)"},
    "logical_or": {"biufc": "truth(a) || truth(b)"},
    "logical_xor": {"biufc": "truth(a) != truth(b)"},
    "bitwise_and": {"biu": "a & b"},
    "bitwise_or": {"biu": "a | b"},
    "bitwise_xor": {"biu": "a ^ b"},
    "bitwise_left_shift": {"iu": "left_shift(a, b)"},
    "bitwise_right_shift": {"iu": "right_shift(a, b)"},
    "gcd": {"iu": "gcd(a, b)"},
    "lcm": {"iu": "lcm(a, b)"},
}
# Activation functions of real types. In a `_vjp`, a is the gradient of the result and b the input.
# A parameter, such as the slope of leaky_relu, is the last operand. These operations have a
# separate module of code, so that arithmetic loads fast.
ACTIVATIONS: dict[str, str] = {
    **{name: f"{name}(a)" for name in ("relu", "gelu", "gelu_tanh", "silu", "selu", "hardswish")},
    "relu_vjp": "weighted(a, relu_slope(b))",
    "maximum_vjp": "greater_share(a, b, c)",
    "minimum_vjp": "greater_share(a, c, b)",
    **{
        f"{name}_vjp": f"{name}_slope(b) * a"
        for name in ("gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "selu", "hardswish")
    },
    "softplus_vjp": "sigmoid(b) * a",
    "swiglu": "silu(a) * b",
    "glu": "a * sigmoid(b)",
    "glu_gate_vjp": "a * b * sigmoid_slope(c)",
    **{name: f"{name}(a, b)" for name in ("leaky_relu", "elu", "softplus")},
    **{f"{name}_vjp": f"{name}_slope(b, c) * a" for name in ("leaky_relu", "elu")},
    "softplus_of_beta_vjp": "sigmoid(b * c) * a",
}
# Operations of three operands; norms are computed by the second and the third one.
TERNARY: dict[str, dict[str, str]] = {
    "clip": {"iuf": "clip(a, b, c)"},
    "multiply_add": {"f": "a * b + c"},
    "scale_centered": {"f": "(a - b) * c"},
}
TO_BOOL = frozenset(
    {
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "logical_not",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
    }
)
TO_REAL = frozenset({"abs", "real", "imag"})


def _row(op: str, family: str, inputs: tuple[str, ...], output: str, expression: str) -> Row:
    aligned = family in ALIGNED and len(inputs) < 3
    variants = (*VARIANTS, "_aligned") if aligned else VARIANTS
    prebuilt = (
        is_prebuilt(*inputs, output)
        and (op not in RARE or output == "float32")
        and (family not in ALIGNED or inputs[0] != "uint8")
        and (family != "activation" or output != "float64")
    )
    return Row(op, family, inputs, output, expression, prebuilt, variants)


def _elementwise(family: str, count: int, table: dict[str, dict[str, str]]) -> Iterator[Row]:
    for op, expressions in table.items():
        for kinds, expression in expressions.items():
            for each in DTYPES:
                if each.kind in kinds:
                    output = "bool" if op in TO_BOOL else each.real if op in TO_REAL else each.name
                    yield _row(op, family, (each.name,) * count, output, expression)


def rows() -> Iterator[Row]:
    yield from _elementwise("unary", 1, UNARY)
    yield from _elementwise("binary", 2, BINARY)
    yield from _elementwise("ternary", 3, TERNARY)
    for op, expression in ACTIVATIONS.items():
        count = len(set(re.findall(r"\b[abc]\b", expression)))
        yield from _elementwise("activation", count, {op: {"f": expression}})
    for source in DTYPES:
        for target in DTYPES:
            if source is not target:
                yield _row(f"to_{target}", "cast", (source.name,), target.name, "a")
    for name in BY_SIZE.values():
        # They are in the wheel: they are few, and every type needs them.
        yield Row("copy", "copy", (name,), name, "a", True, VARIANTS)
        yield Row("where", "ternary", ("bool", name, name), name, "a ? b : c", True, VARIANTS)


def instance(row: Row) -> str:
    name = row.kernels[0]
    types = [dtype(each) for each in (row.output, *row.inputs)]
    parameters = ", ".join(f"{t.compute} {x}" for t, x in zip(types[1:], "abc", strict=False))
    arguments = f"({name}, {name}_op, {', '.join(t.cpp for t in types)})"
    return (
        f"struct {name}_op {{\n"
        f"    using T = {types[-1].cpp};\n"
        f"    __device__ static auto apply({parameters}) {{ return {row.expression}; }}\n"
        f"}};\n"
        f"CYRT_ELEMENTWISE{arguments}"
        + (f"\nCYRT_ALIGNED{arguments}" if len(row.kernels) > 2 else "")
    )
