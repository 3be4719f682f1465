"""The gradients of gated linear units."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("gated",)
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
EXPRESSION = "silu_slope(gate) * up * g, silu(gate) * g"


def rows() -> Iterator[Row]:
    for name in TYPES:
        yield Row("swiglu_vjp", "gated", (name,), name, EXPRESSION, name in PREBUILT)


def instance(row: Row) -> str:
    return f"CYRT_SWIGLU_VJP({row.kernels[0]}, {dtype(row.output).cpp})"
