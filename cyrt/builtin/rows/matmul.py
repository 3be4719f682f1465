"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("matmul",)
# Sums of products wrap, so a signed integer uses the kernels of the unsigned one of its size.
SERVED = {
    each.name: each.name.replace("int", "uint") if each.kind == "i" else each.name
    for each in DTYPES
    if each.kind != "b"
}
# The suffixes of the kernels' names.
VARIANTS = ("", "_small", "_rows", "_columns", "_parts")


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, VARIANTS)


def instance(row: Row) -> str:
    return f"CYRT_MATMUL({row.kernels[0]}, {dtype(row.output).cpp})"
