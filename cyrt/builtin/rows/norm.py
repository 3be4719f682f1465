"""Normalisation of rows, and the gradients of it."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("norm", "norm_vjp")
# With weight (w), bias (b), both or none; rows that are not aligned; long rows.
VARIANTS = ("", "_w", "_b", "_wb", "_unaligned", "_parts", "_long")
VJP_VARIANTS = (*VARIANTS, "_columns")
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
EXPRESSIONS = {
    "layer_norm": "(a - mean(a)) / sqrt(var(a) + eps) * weight + bias",
    "rms_norm": "a / sqrt(mean(a * a) + eps) * weight",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        for name in TYPES:
            kept = name in PREBUILT
            yield Row(op, "norm", (name,), name, expression, kept, VARIANTS)
            gradient = f"gradients of {op}"
            yield Row(f"{op}_vjp", "norm_vjp", (name,), name, gradient, kept, VJP_VARIANTS)


def instance(row: Row) -> str:
    macro = "CYRT_NORM_VJP" if row.template == "norm_vjp" else "CYRT_NORM"
    centered = "true" if row.op.startswith("layer") else "false"
    return f"{macro}({row.kernels[0]}, {dtype(row.output).cpp}, {centered})"
