"""Pooling: the greatest element or the mean of each window, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("pool",)
# The kernels that read vectors, and those that read single elements.
VARIANTS = ("", "_elements")
# The kernels that also find the position of the greatest element.
TAPS = ("_taps", "_taps_elements")
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
EXPRESSIONS = {
    "max_pool": "max(a[window])",
    "avg_pool": "mean(a[window])",
    "max_pool_vjp": "the gradient of max_pool",
    "avg_pool_vjp": "the gradient of avg_pool",
}
INSTANCES = {
    "max_pool": "CYRT_POOL({}, Greatest)",
    "avg_pool": "CYRT_POOL({}, WindowMean)",
    "max_pool_vjp": "CYRT_POOL_VJP({0}, true)\nCYRT_POOL_TAPS({0})",
    "avg_pool_vjp": "CYRT_POOL_VJP({}, false)",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        variants = VARIANTS + (TAPS if op == "max_pool_vjp" else ())
        for name in TYPES:
            yield Row(op, "pool", (name,), name, expression, name in PREBUILT, variants)


def instance(row: Row) -> str:
    return INSTANCES[row.op].format(f"{row.kernels[0]}, {dtype(row.output).cpp}")
