"""Cumulative sums and products along rows."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, DType, dtype

TEMPLATES = ("scan",)
VARIANTS = ("", "_tiles", "_columns")
# The operator in C++, and its result.
OPERATIONS = {
    "cumulative_sum": ("RunningSum", "sum"),
    "cumulative_prod": ("RunningProduct", "product"),
}
# Integers are added in the widest type of their kind.
_WIDEST = {"b": "int64", "i": "int64", "u": "uint64"}


def result(each: DType) -> str:
    """Return the element type of a type's sums and products."""
    return _WIDEST.get(each.kind, each.name)


def rows() -> Iterator[Row]:
    for op, (_, text) in OPERATIONS.items():
        for each in DTYPES:
            output = result(each)
            yield Row(
                op,
                "scan",
                (each.name,),
                output,
                f"{text} of all up to a",
                op == "cumulative_sum" and is_prebuilt(each.name, output),
                VARIANTS,
            )


def instance(row: Row) -> str:
    source, target = dtype(row.inputs[0]), dtype(row.output)
    return (
        f"CYRT_SCAN({row.kernels[0]}, {source.cpp}, {target.cpp}, {target.compute}, "
        f"{OPERATIONS[row.op][0]})"
    )
