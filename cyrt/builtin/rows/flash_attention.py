"""Attention of many rows of queries, of 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("flash_attention",)
# Heads of up to 64 and up to 128 features; the same with a mask that is an array.
VARIANTS = ("", "_wide", "_masked", "_wide_masked")


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16"):
        expression = "softmax(scale * a @ k.mT + mask) @ v"
        yield Row("flash_attention", "flash_attention", (name,), name, expression, True, VARIANTS)


def instance(row: Row) -> str:
    return f"CYRT_FLASH_ATTENTION({row.kernels[0]}, {dtype(row.output).cpp})"
