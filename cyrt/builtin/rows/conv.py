"""Convolutions, and the gradients of them."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("conv",)
# Large tiles and small ones, and the sum of parts.
VARIANTS = ("", "_small", "_sum")
# One channel a group, in vectors and in elements. That of conv is the input's gradient as well.
DEPTHWISE = ("_depthwise", "_depthwise_elements")
# Neighbouring outputs by a thread.
STRIP = ("_depthwise_strip",)
DEPTHWISE_KERNELS = {"conv": "depthwise", "conv_weight_vjp": "depthwise_weight"}
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})
EXPRESSIONS = {
    "conv": "activation(sum(a[window] * weight) + bias)",
    "conv_input_vjp": "the gradient of conv's input",
    "conv_weight_vjp": "the gradient of conv's weight",
}


def rows() -> Iterator[Row]:
    for op, expression in EXPRESSIONS.items():
        variants = VARIANTS + (DEPTHWISE if op in DEPTHWISE_KERNELS else ())
        variants += STRIP if op == "conv" else ()
        for name in TYPES:
            yield Row(op, "conv", (name, name), name, expression, name in PREBUILT, variants)


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    depthwise = DEPTHWISE_KERNELS.get(row.op)
    more = f"\nCYRT_DEPTHWISE({of}, {depthwise})" if depthwise else ""
    more += f"\nCYRT_DEPTHWISE_STRIP({of})" if row.op == "conv" else ""
    return f"CYRT_CONV({of}, {row.op}){more}"
