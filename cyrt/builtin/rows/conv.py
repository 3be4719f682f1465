"""Convolutions, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("conv",)
# Kernels with large tiles and with small ones, and the sum of parts.
VARIANTS = ("", "_small", "_sum")
# One channel per group, by vectors and by elements. The kernel of conv also computes the input's
# gradient.
DEPTHWISE = ("_depthwise", "_depthwise_elements")
# Neighbouring outputs by a thread.
STRIP = ("_depthwise_strip",)
# A source whose elements are a stride apart, to few channels, by the sums of a position: the
# weight's arrangement, by tensor cores, and in float32. Those of conv are the input's gradient as
# well.
PHASES = ("_phase_weight", "_phases_tensor8", "_phases_tensor16")
MULTIPLY_ADD_PHASES = ("_phases4", "_phases8", "_phases12", "_phases16")
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
        for name in TYPES:
            variants = VARIANTS + (DEPTHWISE if op in DEPTHWISE_KERNELS else ())
            if op == "conv":
                variants += STRIP
                variants += PHASES if name != "float64" else ()
                variants += MULTIPLY_ADD_PHASES if name == "float32" else ()
            yield Row(op, "conv", (name, name), name, expression, name in PREBUILT, variants)


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    lines = [f"CYRT_CONV({of}, {row.op})"]
    if depthwise := DEPTHWISE_KERNELS.get(row.op):
        lines.append(f"CYRT_DEPTHWISE({of}, {depthwise})")
    for variants, macro in (
        (STRIP, "CYRT_DEPTHWISE_STRIP"),
        (PHASES, "CYRT_CONV_PHASES"),
        (MULTIPLY_ADD_PHASES, "CYRT_CONV_PHASES_MULTIPLY_ADD"),
    ):
        if set(variants) <= set(row.variants):
            lines.append(f"{macro}({of})")
    return "\n".join(lines)
