"""Dropout: random elements are kept, the others become 0."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("dropout",)
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel; the others are compiled at first use.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})


def rows() -> Iterator[Row]:
    for name in TYPES:
        yield Row("dropout", "dropout", (name,), name, "u < p ? a * scale : 0", name in PREBUILT)


def instance(row: Row) -> str:
    return f"CYRT_DROPOUT({row.kernels[0]}, {dtype(row.output).cpp})"
