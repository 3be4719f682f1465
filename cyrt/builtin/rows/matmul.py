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
# Skinny products: the most rows, and the rows of a tile of the matrix. The latter lies along the
# summed dimension, or across it.
_SMALL = (8, 16), (8, 32), (16, 16), (16, 32)
_HALVES = *_SMALL, (32, 32), (64, 32)
SKINNY = {"float16": _HALVES, "bfloat16": _HALVES, "float32": _SMALL}


def _variants(name: str) -> tuple[str, ...]:
    """The kernels of a type, in the order of cyrt/builtin/matmul.pyx."""
    if name not in SKINNY:
        return VARIANTS
    layouts = ("_skinny", "_skinny_across")
    return (*VARIANTS, *(f"{each}_{most}x{tile}" for each in layouts for most, tile in SKINNY[name]))


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, _variants(name))


def instance(row: Row) -> str:
    of = f"{row.kernels[0]}, {dtype(row.output).cpp}"
    if row.output not in SKINNY:
        return f"CYRT_MATMUL({of})"
    halves = "_HALVES" if SKINNY[row.output] is _HALVES else ""
    return f"CYRT_MATMUL({of})\nCYRT_MATMUL_SKINNY{halves}({of})"
