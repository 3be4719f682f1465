"""Evenly spaced numbers."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.dtypes import DTYPES, dtype
from cyrt.kernels.row import Row, is_prebuilt

FAMILIES = {"arange": "arange.cu"}
# The compute type: start and step are passed as this.
WIDE = {"i": "int64", "u": "int64", "f": "float64", "c": "complex128"}


def rows() -> Iterator[Row]:
    for each in DTYPES:
        if each.kind in WIDE:
            yield Row("arange", "arange", (), each.name, "start + i * step",
                      is_prebuilt(each.name))


def instance(row: Row) -> str:
    output = dtype(row.output)
    return f"CYRT_ARANGE({row.kernels[0]}, {output.cpp}, {WIDE[output.kind]})"


def param_bytes(row: Row) -> list[int]:
    return [48]
