"""Stable sorting of rows; a key's order is a parameter, so types of one size share kernels."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("sort",)
KEYS = ("uint8", "uint16", "uint32", "uint64")
# The element types in the wheel.
PREBUILT = frozenset({"uint32", "uint64"})
VARIANTS = ("", "_block", "_sweep", "_arg", "_arg_block", "_arg_sweep", "_histogram")


def rows() -> Iterator[Row]:
    for name in KEYS:
        yield Row(
            "sort",
            "sort",
            (name,),
            name,
            "a, stable, in the order of its key",
            name in PREBUILT,
            VARIANTS,
        )


def instance(row: Row) -> str:
    return f"CYRT_SORT({row.kernels[0]}, {dtype(row.output).cpp})"
