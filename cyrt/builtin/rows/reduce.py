"""Reductions: sums, products, extremes and their indices, counts, variances, logsumexp."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import DTYPES, DType, dtype

TEMPLATES = ("reduce",)
VARIANTS = ("_rows", "_columns", "_parts")

# The C++ of each operation, for elements T and results R, and the kinds (DType.kind) it takes.
OPS = {
    "sum": ("Sum<R>", "biufc"),
    "prod": ("Product<R>", "biufc"),
    "max": ("Max<T>", "biuf"),
    "min": ("Min<T>", "biuf"),
    "argmax": ("ArgMax<T>", "biuf"),
    "argmin": ("ArgMin<T>", "biuf"),
    "any": ("Any<T>", "biufc"),
    "all": ("All<T>", "biufc"),
    "count_nonzero": ("CountNonzero<T>", "biufc"),
    "var": ("Variance<T>", "f"),
    "logsumexp": ("LogSumExp<T>", "f"),
}
OUTPUTS = {
    "argmax": "int64",
    "argmin": "int64",
    "any": "bool",
    "all": "bool",
    "count_nonzero": "int64",
}
# The operations in the wheel; the others are compiled at first use.
_USUAL = ("float32", "bfloat16")
PREBUILT = {
    "sum": ("bool", "int32", "int64", "float16", *_USUAL),
    "max": ("int32", *_USUAL),
    "min": ("int32", *_USUAL),
    "any": ("bool",),
    "all": ("bool",),
    "count_nonzero": ("bool",),
    "argmax": _USUAL,
    "argmin": ("float32",),
    "var": _USUAL,
    "logsumexp": _USUAL,
}
WIDEST = {"b": "int64", "i": "int64", "u": "uint64"}


def output_of(op: str, each: DType) -> str:
    """Return the name of the result's type: sums and products of integers have the widest type."""
    if op in ("sum", "prod"):
        return WIDEST.get(each.kind, each.name)
    return OUTPUTS.get(op, each.name)


def rows() -> Iterator[Row]:
    for op, (expression, kinds) in OPS.items():
        for each in DTYPES:
            if each.kind in kinds:
                yield Row(
                    op,
                    "reduce",
                    (each.name,),
                    output_of(op, each),
                    expression,
                    each.name in PREBUILT.get(op, ()),
                    VARIANTS,
                )


def instance(row: Row) -> str:
    name = row.kernels[0].removesuffix(VARIANTS[0])
    element, result = (dtype(each).cpp for each in (*row.inputs, row.output))
    return (
        f"namespace {name}_of {{ using T = {element}; using R = {result}; "
        f"using Op = {row.expression}; }}\n"
        f"static_assert(sizeof({name}_of::Op::State) == {state_bytes(row)}, "
        f'"the bytes that state_bytes returns in cyrt/builtin/rows/reduce.py");\n'
        f"CYRT_REDUCE({name}, {name}_of::Op, {element}, {result})"
    )


def state_bytes(row: Row) -> int:
    """Return the size in bytes of a kernel's partial result, one for each part."""
    each = dtype(row.inputs[0])
    computed = 4 if each.kind == "b" else max(4, each.itemsize)
    if row.op in ("any", "all"):
        return 4
    if row.op in ("argmax", "argmin"):
        return 16
    if row.op == "count_nonzero":
        return 8
    if row.op in ("sum", "prod"):
        return max(4, dtype(row.output).itemsize)
    if row.op == "var":
        return max(8, 2 * computed) + 2 * computed
    return computed * (2 if row.op == "logsumexp" else 1)
