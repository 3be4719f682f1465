"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("rope",)


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16", "float32"):
        yield Row(
            "rope", "rope", (name,), name, "pairs of a, rotated by angles", True, ("", "_vectors")
        )


def instance(row: Row) -> str:
    return f"CYRT_ROPE({row.kernels[0]}, {dtype(row.output).cpp})"
