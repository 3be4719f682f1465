"""Elements picked by arrays of indices, and put there."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.dtypes import dtype
from cyrt.kernels.row import BY_SIZE, Row

FAMILIES = {"gather": "gather.cu"}
OPS = {"take": "x[indices]", "put": "x[indices] = a"}
MAX_INDICES = 6


def rows() -> Iterator[Row]:
    for op, expression in OPS.items():
        for name in BY_SIZE.values():
            # Few, and every type needs them.
            yield Row(op, "gather", (name,), name, expression, True, ("", "_many"))


def instance(row: Row) -> str:
    return f"CYRT_{row.op.upper()}({row.kernels[0]}, {dtype(row.output).itemsize})"


def param_bytes(row: Row) -> list[int]:
    return [400, 880]
