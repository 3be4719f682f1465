"""Steps of optimizers over many tensors, and the sums of the squares of their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("optimizer",)
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel; the others are compiled at first use.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
# Each step subtracts its expression from a parameter p, which has the gradient g and moments.
EXPRESSIONS = {
    "sgd_step": "rate * (g + decay * p)",
    "momentum_step": "rate * (m = b1 * m + g + decay * p)",
    "adam_step": "rate * (m / (sqrt(v) + eps) + decay * p)",
    "lion_step": "rate * (sign(b1 * m + (1 - b1) * g) + decay * p)",
    "square_sum": "sum of g * g",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        for name in TYPES:
            yield Row(op, "optimizer", (name,), name, expression, name in PREBUILT)


def instance(row: Row) -> str:
    kernel, cpp = row.kernels[0], dtype(row.output).cpp
    if row.op == "square_sum":
        return f"CYRT_SQUARE_SUM({kernel}, {cpp})"
    return f"CYRT_OPTIMIZER({kernel}, {cpp}, {row.op.removesuffix('_step').capitalize()})"
