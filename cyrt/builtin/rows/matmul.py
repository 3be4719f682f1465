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
# Products of at most so many rows, whose matrix lies along the summed dimension, or across it.
SKINNY = tuple(f"_skinny{layout}_{rows}" for layout in ("", "_across") for rows in (8, 16, 32, 64))
HALVES = ("float16", "bfloat16")


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        variants = VARIANTS + (SKINNY if name in HALVES else ())
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, variants)


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    skinny = f"\nCYRT_MATMUL_SKINNY({of})" if row.output in HALVES else ""
    return f"CYRT_MATMUL({of}){skinny}"
