"""Normalisation of rows, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("norm", "norm_vjp")
# Kernels without parameters and with a weight (_w); for rows that are not aligned; for long rows.
VARIANTS = ("", "_w", "_unaligned", "_parts", "_long")
VJP_VARIANTS = (*VARIANTS, "_columns")
WITH_BIAS = ("_b", "_wb")
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
BIASED = "layer_norm"
EXPRESSIONS = {
    "layer_norm": "(a - mean(a)) / sqrt(var(a) + eps) * weight + bias",
    "rms_norm": "a / sqrt(mean(a * a) + eps) * weight",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        more = WITH_BIAS if op == BIASED else ()
        for name in TYPES:
            kept = name in PREBUILT
            yield Row(op, "norm", (name,), name, expression, kept, VARIANTS + more)
            gradients = f"the gradients of {op}"
            variants = VJP_VARIANTS + more
            yield Row(f"{op}_vjp", "norm_vjp", (name,), name, gradients, kept, variants)


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    macro = "CYRT_NORM_VJP" if row.template == "norm_vjp" else "CYRT_NORM"
    if row.op.startswith(BIASED):
        return f"{macro}({of}, true)\n{macro}_BIAS({of})"
    return f"{macro}({of}, false)"
