"""Attention of a few rows of queries to a cache of keys and values."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("attention",)
# One row of queries in a block; keys that are not aligned; parts of the cache.
VARIANTS = ("", "_unaligned", "_parts")
# The maximum number of rows of queries in a block, as suffixes of kernels.
ROWS = ("_4", "_8")
TILES = ("_64", "_128", "_256")  # by tensor cores, the maximum number of features


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16", "float32"):
        expression = "softmax(scale * a @ keys.mT) @ values"
        kernels = VARIANTS + (ROWS if name == "float32" else TILES)
        yield Row("attention", "attention", (name,), name, expression, True, kernels)


def instance(row: Row) -> str:
    kind = "OF_ROWS" if row.output == "float32" else "BY_TILES"
    return f"CYRT_ATTENTION_{kind}({row.kernels[0]}, {dtype(row.output).cpp})"
