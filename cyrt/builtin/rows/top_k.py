"""The first elements of rows in an order; a key's order is a parameter, as in sorting."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.builtin.rows.sort import KEYS
from cyrt.dtypes import dtype

TEMPLATES = ("top_k",)
# The element types in the wheel.
PREBUILT = frozenset({"uint16", "uint32"})


def rows() -> Iterator[Row]:
    for name in KEYS:
        text = "the k first of a, in the order of its key"
        yield Row("top_k", "top_k", (name,), name, text, name in PREBUILT)


def instance(row: Row) -> str:
    return f"CYRT_TOP_K({row.kernels[0]}, {dtype(row.output).cpp})"
