"""Copies that exchange two dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import BY_SIZE, Row
from cyrt.dtypes import dtype

TEMPLATES = ("transpose",)


def rows() -> Iterator[Row]:
    for size, name in BY_SIZE.items():
        # They are in the wheel: they are few, and every type needs them.
        yield Row(
            "transpose", "transpose", (name,), name, "a", True, ("", "_wide") if size < 4 else ("",)
        )


def instance(row: Row) -> str:
    name, cpp = row.kernels[0], dtype(row.output).cpp
    wide = f"\nCYRT_TRANSPOSE_WIDE({name}, {cpp})" if len(row.kernels) > 1 else ""
    return f"CYRT_TRANSPOSE({name}, {cpp}){wide}"
