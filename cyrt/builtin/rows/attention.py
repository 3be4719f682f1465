"""Attention of a few rows of queries to a cache of keys and values."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("attention",)
# One row of queries in a block, up to 4, up to 8; keys that are not aligned; parts of the cache.
VARIANTS = ("", "_4", "_8", "_unaligned", "_parts")


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16", "float32"):
        expression = "softmax(scale * a @ keys.mT) @ values"
        yield Row("attention", "attention", (name,), name, expression, True, VARIANTS)


def instance(row: Row) -> str:
    return f"CYRT_ATTENTION({row.kernels[0]}, {dtype(row.output).cpp})"
