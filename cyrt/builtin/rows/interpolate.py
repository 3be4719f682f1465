"""Interpolation of images to another size, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("interpolate",)
VARIANTS = ("_nearest", "_linear", "_cubic")
TYPES = ("float16", "bfloat16", "float32", "float64")
# The type in the wheel; the others are compiled at first use.
PREBUILT = frozenset({"float32"})
EXPRESSIONS = {
    "interpolate": "sum(weights * a[neighbours])",
    "interpolate_vjp": "the gradient of interpolate",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        for name in TYPES:
            yield Row(op, "interpolate", (name,), name, expression, name in PREBUILT, VARIANTS)


def instance(row: Row) -> str:
    return f"CYRT_INTERPOLATE(cyrt_{row.op}_{row.dtype}, {row.op}, {dtype(row.output).cpp})"
