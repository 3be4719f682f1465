"""Gradients of attention of many rows of queries, of 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("flash_attention_vjp",)
# Gradients of queries, and of keys and values, of heads of up to 64 and up to 128 features.
VARIANTS = ("", "_keys", "_wide", "_wide_keys")


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16"):
        expression = "the gradients of attention"
        yield Row(
            "flash_attention_vjp", "flash_attention_vjp", (name,), name, expression, True, VARIANTS
        )


def instance(row: Row) -> str:
    return f"CYRT_FLASH_ATTENTION_VJP({row.kernels[0]}, {dtype(row.output).cpp})"
