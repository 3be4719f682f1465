"""Linear layers of a few rows."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("linear",)
# The suffixes of the kernels' names: for one row, for one row that a block's threads hold
# completely, for such a row with a layer_norm, and for at most that number of rows.
VARIANTS = ("", "_once", "_centered", "_8", "_16")


def rows() -> Iterator[Row]:
    for name in ("float16", "bfloat16", "float32"):
        yield Row(
            "linear",
            "linear",
            (name, name),
            name,
            "residual + activation(norm(a) @ b.T + bias)",
            True,
            VARIANTS,
        )


def instance(row: Row) -> str:
    return f"CYRT_LINEAR({row.kernels[0]}, {dtype(row.output).cpp})"
