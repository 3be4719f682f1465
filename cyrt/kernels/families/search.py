"""Where elements belong in a sorted row, and whether they are in it."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.dtypes import dtype
from cyrt.kernels.families.sort import KEYS
from cyrt.kernels.row import Row

FAMILIES = {"search": "search.cu"}


def rows() -> Iterator[Row]:
    for name in KEYS:
        # Few, and every real type needs them.
        yield Row("search", "search", (name,), "int64", "how many are before a", True,
                  ("", "_contains"))


def instance(row: Row) -> str:
    return f"CYRT_SEARCH({row.kernels[0]}, {dtype(row.inputs[0]).cpp})"


def param_bytes(row: Row) -> list[int]:
    return [96] * len(row.kernels)
