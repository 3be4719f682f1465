"""Evenly spaced numbers."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("arange",)
# The compute type, in which start and step are passed.
WIDE = {"i": "int64", "u": "int64", "f": "float64", "c": "complex128"}


def rows() -> Iterator[Row]:
    for each in DTYPES:
        if each.kind in WIDE:
            yield Row("arange", "arange", (), each.name, "start + i * step", is_prebuilt(each.name))


def instance(row: Row) -> str:
    output = dtype(row.output)
    return f"CYRT_ARANGE({row.kernels[0]}, {output.cpp}, {WIDE[output.kind]})"
