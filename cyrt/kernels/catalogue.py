"""The catalogue: which built-in operation is served by which kernel, for which element types.

One source for the build (tools/build_kernels.py), for dispatch, for the tests' enumeration and for
the documentation. A row's expression is the text that its kernel is compiled from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cyrt.dtypes import DTYPES, dtype

# The file of kernels_cu that holds a family's templates.
TEMPLATES = {
    "unary": "elementwise.cu",
    "binary": "elementwise.cu",
    "ternary": "elementwise.cu",
    "cast": "elementwise.cu",
    "copy": "elementwise.cu",
    "transpose": "transpose.cu",
    "arange": "arange.cu",
}

# What only moves bits is served by the type of its size.
BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
MOVES = frozenset({"copy", "transpose", "where"})

# In the wheel; kernels for the others are compiled at their first use.
PREBUILT = frozenset({
    "bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64",
})


@dataclass(frozen=True, slots=True)
class Row:
    """One operation on operands of given types.

    Attributes
    ----------
    op : str
        ``"add"``; a cast is ``"to_float32"``.
    family : str
        The template that the kernel is an instance of, and the module it is in.
    inputs : tuple of str
        Element types.
    output : str
        Element type.
    expression : str
        C++ of the result, of the inputs ``a``, ``b``, ``c`` in their compute types; ``T`` is the
        last input's type in memory.
    prebuilt : bool
        Whether the wheel holds it compiled.
    """

    op: str
    family: str
    inputs: tuple[str, ...]
    output: str
    expression: str
    prebuilt: bool

    @property
    def dtype(self) -> str:
        """The element type that it is looked up by: that of the last input."""
        return self.inputs[-1] if self.inputs else self.output

    @property
    def module(self) -> str:
        """Name of the module that holds it, with all rows of its family and type."""
        return f"{self.family}_{self.dtype}"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Symbols of its kernels, one a variant."""
        name = f"cyrt_{self.op}_{self.dtype}"
        if self.family == "transpose":
            return (name, f"{name}_wide") if dtype(self.dtype).itemsize < 4 else (name,)
        return (name,) if self.family == "arange" else (name, f"{name}_strided")


# op, and for each set of kinds (DType.kind) the expression.
_UNARY: dict[str, dict[str, str]] = {
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
    **{name: {"fc": f"{name}(a)"} for name in (
        "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin",
        "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: {"f": f"{name}(a)"} for name in (
        "rsqrt", "cbrt", "exp2", "erf", "erfc", "erfinv", "lgamma", "sigmoid")},
}
_BINARY: dict[str, dict[str, str]] = {
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
}
_TO_BOOL = frozenset({
    "isnan", "isinf", "isfinite", "signbit", "logical_not", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
})
_TO_REAL = frozenset({"abs", "real", "imag"})


def _row(op: str, family: str, inputs: tuple[str, ...], output: str, expression: str) -> Row:
    return Row(op, family, inputs, output, expression, PREBUILT.issuperset((*inputs, output)))


def _elementwise(family: str, count: int, table: dict[str, dict[str, str]]) -> Iterator[Row]:
    for op, expressions in table.items():
        for kinds, expression in expressions.items():
            for each in DTYPES:
                if each.kind in kinds:
                    output = ("bool" if op in _TO_BOOL else each.real if op in _TO_REAL
                              else each.name)
                    yield _row(op, family, (each.name,) * count, output, expression)


def _rows() -> Iterator[Row]:
    yield from _elementwise("unary", 1, _UNARY)
    yield from _elementwise("binary", 2, _BINARY)
    yield from _elementwise("ternary", 3, {"clip": {"iuf": "clip(a, b, c)"}})
    for source in DTYPES:
        for target in DTYPES:
            if source is not target:
                yield _row(f"to_{target}", "cast", (source.name,), target.name, "a")
    for name in BY_SIZE.values():
        # Few, and every type needs them.
        yield Row("copy", "copy", (name,), name, "a", True)
        yield Row("transpose", "transpose", (name,), name, "a", True)
        yield Row("where", "ternary", ("bool", name, name), name, "a ? b : c", True)
    for each in DTYPES:
        if each.kind in "iufc":
            yield _row("arange", "arange", (), each.name, "start + i * step")


ROWS = tuple(_rows())
OPS = tuple(dict.fromkeys(row.op for row in ROWS))
_BY_KEY = {(row.op, row.dtype): row for row in ROWS}


def row(op: str, name: str) -> Row:
    """The row of an operation and an element type.

    Raises
    ------
    ValueError
        There is no such operation.
    TypeError
        It does not take that type; the message lists those it takes.
    """
    each = dtype(name)
    found = _BY_KEY.get((op, BY_SIZE[each.itemsize] if op in MOVES else each.name))
    if found is not None:
        return found
    if op not in OPS:
        raise ValueError(f"{op!r} is no built-in operation; there are {', '.join(OPS)}")
    types = ", ".join(row.dtype for row in ROWS if row.op == op)
    raise TypeError(f"{op} has no kernel for {each}; it has for {types}")


@functools.cache
def modules() -> dict[str, tuple[Row, ...]]:
    """Every module's rows, by its name."""
    found: dict[str, list[Row]] = {}
    for each in ROWS:
        found.setdefault(each.module, []).append(each)
    return {name: tuple(rows) for name, rows in found.items()}


# The compute type of arange: its start and step are passed as this.
WIDE = {"i": "int64", "u": "int64", "f": "float64", "c": "complex128"}


def _instance(each: Row) -> str:
    name = each.kernels[0]
    types = [dtype(t) for t in (each.output, *each.inputs)]
    cpp = ", ".join(t.cpp for t in types)
    if each.family == "arange":
        return f"CYRT_ARANGE({name}, {types[0].cpp}, {WIDE[types[0].kind]})"
    if each.family == "transpose":
        wide = f"\nCYRT_TRANSPOSE_WIDE({name}, {types[0].cpp})" if len(each.kernels) > 1 else ""
        return f"CYRT_TRANSPOSE({name}, {types[0].cpp}){wide}"
    parameters = ", ".join(f"{t.compute} {x}" for t, x in zip(types[1:], "abc", strict=False))
    return (
        f"struct {name}_op {{\n"
        f"    using T = {types[-1].cpp};\n"
        f"    __device__ static auto apply({parameters}) {{ return {each.expression}; }}\n"
        f"}};\n"
        f"CYRT_ELEMENTWISE({name}, {name}_op, {cpp})"
    )


def source(rows: Iterable[Row]) -> str:
    """CUDA C++ of the rows' kernels; it includes the templates of kernels_cu."""
    rows = tuple(rows)
    includes = dict.fromkeys(f'#include "{TEMPLATES[each.family]}"' for each in rows)
    return "\n".join([*includes, "namespace cyrt {", *map(_instance, rows), "}", ""])
