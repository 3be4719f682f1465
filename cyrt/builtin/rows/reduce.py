"""Reductions: sums, products, extremes and their indices, counts, variances, logsumexp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cyrt.builtin.row import Row
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("reduce",)
VARIANTS = ("_rows", "_columns", "_parts")

_USUAL = ("float32", "bfloat16")
_WIDEST = {"b": "int64", "i": "int64", "u": "uint64"}


class Reduction(NamedTuple):
    """A reduction of elements T to results R."""

    cpp: str
    kinds: str  # the kinds of elements (DType.kind) that it accepts
    prebuilt: tuple[str, ...] = ()  # the types in the wheel; the others are compiled at first use
    result: str = "same"  # the result's type; "widest": the widest integer, "same": the element's
    # The numbers in a partial result, each as wide as the result, or 4 bytes if that is less.
    numbers: int = 1


OPS = {
    "sum": Reduction(
        "Sum<R>", "biufc", ("bool", "int32", "int64", "float16", *_USUAL), result="widest"
    ),
    "prod": Reduction("Product<R>", "biufc", result="widest"),
    "max": Reduction("Max<T>", "biuf", ("int32", *_USUAL)),
    "min": Reduction("Min<T>", "biuf", ("int32", *_USUAL)),
    "argmax": Reduction("ArgMax<T>", "biuf", _USUAL, "int64", 2),
    "argmin": Reduction("ArgMin<T>", "biuf", ("float32",), "int64", 2),
    "any": Reduction("Any<T>", "biufc", ("bool",), "bool"),
    "all": Reduction("All<T>", "biufc", ("bool",), "bool"),
    "count_nonzero": Reduction("CountNonzero<T>", "biufc", ("bool",), "int64"),
    "var": Reduction("Variance<T>", "f", _USUAL, numbers=4),
    "logsumexp": Reduction("LogSumExp<T>", "f", _USUAL, numbers=2),
}


def rows() -> Iterator[Row]:
    for op, each in OPS.items():
        for element in DTYPES:
            if element.kind in each.kinds:
                same = element.name
                widest = _WIDEST.get(element.kind, same)
                output = {"same": same, "widest": widest}.get(each.result, each.result)
                kept = element.name in each.prebuilt
                yield Row(op, "reduce", (element.name,), output, each.cpp, kept, VARIANTS)


def instance(row: Row) -> str:
    name = row.kernels[0].removesuffix(VARIANTS[0])
    element, result = (dtype(each).cpp for each in (*row.inputs, row.output))
    return (
        f"namespace {name}_of {{ using T = {element}; using R = {result}; "
        f"using Op = {row.expression}; }}\n"
        f"static_assert(sizeof({name}_of::Op::State) == {state_bytes(row)}, "
        f'"the numbers of a partial result in cyrt/builtin/rows/reduce.py");\n'
        f"CYRT_REDUCE({name}, {name}_of::Op, {element}, {result})"
    )


def state_bytes(row: Row) -> int:
    """Return the size in bytes of a kernel's partial result, one for each part."""
    return OPS[row.op].numbers * max(4, dtype(row.output).itemsize)
