"""Softmax of rows, cross entropy, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("softmax",)
# Kernels for rows that are not aligned, and for long rows. The states of the parts of a row are the
# same for all results of softmax.
VARIANTS = ("", "_unaligned", "_long")
WITH_PARTS = (*VARIANTS, "_parts")
# Many rows of 16-bit elements.
STREAM = ("_stream",)
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
# The result in C++, and its description.
RESULTS = {
    "softmax": ("PROBABILITY", "exp(a) / sum(exp(a))"),
    "log_softmax": ("LOGARITHM", "a - log(sum(exp(a)))"),
    "cross_entropy": ("LOSS", "log(sum(exp(a))) - a[target]"),
    "cross_entropy_vjp": ("LOSS_VJP", "g * (softmax(a) - (column == target))"),
}
VJP = "softmax_vjp"


def rows() -> Iterator[Row]:
    expressions = {op: text for op, (_, text) in RESULTS.items()} | {VJP: "a * (g - sum(a * g))"}
    for op, expression in expressions.items():
        variants = WITH_PARTS if op in ("softmax", VJP) else VARIANTS
        for name in TYPES:
            streams = STREAM if op != VJP and dtype(name).itemsize == 2 else ()
            kept = name in PREBUILT
            yield Row(op, "softmax", (name,), name, expression, kept, variants + streams)


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    if row.op == VJP:
        return f"CYRT_SOFTMAX_VJP({of})"
    result = RESULTS[row.op][0]
    made = [f"CYRT_SOFTMAX({of}, {result})"]
    if row.op == "softmax":
        made.append(f"CYRT_SOFTMAX_PARTS({of})")
    if row.variants[-1:] == STREAM:
        made.append(f"CYRT_SOFTMAX_STREAM({of}, {result})")
    return "\n".join(made)
