"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("matmul",)
# Sums of products wrap, so signed integers use the kernels of the unsigned type of the same size.
SERVED = {
    each.name: each.name.replace("int", "uint") if each.kind == "i" else each.name
    for each in DTYPES
    if each.kind != "b"
}
# The suffixes of the kernels' names.
VARIANTS = ("", "_small", "_rows", "_columns", "_parts")
# The ends of the names of the kernels for products of few rows, whose matrix lies along the summed
# dimension or across it: the maximum number of rows; and for 16-bit floats the rows of a tile of
# the matrix.
_RINGS = "8x16", "8x32", "16x16", "16x32", "32x32", "64x32"
SKINNY = {"float16": _RINGS, "bfloat16": _RINGS, "float32": ("8", "16")}
MOST_ROWS = {"float16": 64, "bfloat16": 64, "float32": 16}


def _variants(name: str) -> tuple[str, ...]:
    """The kernels of a type, in the order of cyrt/builtin/matmul.pyx."""
    if name not in SKINNY:
        return VARIANTS
    layouts = ("_skinny", "_skinny_across")
    return (*VARIANTS, *(f"{each}_{sizes}" for each in layouts for sizes in SKINNY[name]))


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, _variants(name))


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    if row.output not in SKINNY:
        return f"CYRT_MATMUL({of})"
    rings = "_RINGS" if SKINNY[row.output] is _RINGS else ""
    return f"CYRT_MATMUL({of})\nCYRT_MATMUL_SKINNY{rings}({of})"
