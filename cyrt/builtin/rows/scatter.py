"""Combinations of values with the elements at keys; the values of one key are combined in order."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("scatter",)
VARIANTS = ("", "_wide", "_partials", "_rows", "_row_partials")
# The name of each operation's result, and the kinds of element types that it takes. `add_at` takes
# no bools: their sum is their maximum.
OPS = {
    "add_at": ("sum", "iufc"),
    "maximum_at": ("greatest", "biuf"),
    "minimum_at": ("least", "biuf"),
}
# Sums of 16-bit floats are computed in float32, those of wider ones in double precision.
WIDE = {"float32": "float64", "complex64": "complex128"}


def rows() -> Iterator[Row]:
    for op, (result, kinds) in OPS.items():
        for each in DTYPES:
            if each.kind in kinds:
                yield Row(
                    op,
                    "scatter",
                    (each.name,),
                    each.name,
                    f"{result} of x[key] and the values of the key",
                    op == "add_at" and is_prebuilt(each.name),
                    VARIANTS,
                )


def instance(row: Row) -> str:
    each = dtype(row.output)
    compute = "uint32" if each.kind == "b" else each.compute
    if row.op == "add_at":
        compute = WIDE.get(each.name, compute)
    operation = f"Scatter{row.op.removesuffix('_at').capitalize()}"
    return f"CYRT_SCATTER({row.kernels[0]}, {each.cpp}, {compute}, {operation})"
