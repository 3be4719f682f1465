"""Positions of elements in a sorted row, and membership in it."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.builtin.rows.sort import KEYS
from cyrt.dtypes import dtype

TEMPLATES = ("search",)


def rows() -> Iterator[Row]:
    for name in KEYS:
        # They are in the wheel: they are few, and every real type needs them.
        yield Row(
            "search", "search", (name,), "int64", "how many are before a", True, ("", "_contains")
        )


def instance(row: Row) -> str:
    return f"CYRT_SEARCH({row.kernels[0]}, {dtype(row.inputs[0]).cpp})"
