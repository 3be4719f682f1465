"""Reads and writes of elements at arrays of indices."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import BY_SIZE, Row
from cyrt.dtypes import dtype

TEMPLATES = ("gather",)
OPS = {"take": "x[indices]", "put": "x[indices] = a"}
VARIANTS = ("", "_many")
MAX_INDICES = 6


def rows() -> Iterator[Row]:
    for op, expression in OPS.items():
        for name in BY_SIZE.values():
            # They are in the wheel: they are few, and every type needs them.
            yield Row(op, "gather", (name,), name, expression, True, VARIANTS)
    for name in ("uint32", "uint64"):
        yield Row("offsets", "gather", (name,), name, "where x[indices] are", True, VARIANTS)


def instance(row: Row) -> str:
    if row.op == "offsets":
        return f"CYRT_OFFSETS({row.kernels[0]}, {dtype(row.output).cpp})"
    return f"CYRT_{row.op.upper()}({row.kernels[0]}, {dtype(row.output).itemsize})"
