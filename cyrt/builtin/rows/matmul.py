"""Products of matrices and vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cyrt.builtin.row import Row, is_prebuilt
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("matmul",)
# Sums of products wrap, so signed integers use the kernels of the unsigned type of the same size.
SERVED = {
    each.name: each.name.replace("int", "uint") if each.kind == "i" else each.name
    for each in DTYPES
    if each.kind != "b"
}


class KernelCode(NamedTuple):
    """The C++ of a kernel.

    Attributes
    ----------
    struct : str
        The type of its parameters.
    function : str
        The device function that it calls with them.
    bounds : str
        Its launch bounds.
    """

    struct: str
    function: str
    bounds: str


# The kernels by the suffixes of their names; `T` is the element type.
KERNELS = {
    "": KernelCode("Product", "product<T, cyrt::Large<T>>", "(256, 2)"),
    "_small": KernelCode("Product", "product<T, cyrt::Small<T>>", "(64)"),
    "_rows": KernelCode("Dot", "rows<T>", "(256)"),
    "_columns": KernelCode("Dot", "columns<T>", "(1024)"),
    "_parts": KernelCode("Parts", "sum_parts<T>", "(256)"),
}
# The ends of the names of the kernels for products of few rows, whose matrix lies along the summed
# dimension or across it: the maximum number of rows, and the rows of a tile of the matrix.
_RINGS = "8x16", "8x32", "16x16", "16x32", "32x32", "64x32"
SKINNY = {
    "_skinny": {"float32": ("8x16", "16x16"), "float16": _RINGS, "bfloat16": _RINGS},
    "_skinny_across": {
        "float32": ("8x32", "8x8", "16x32", "16x8"),
        "float16": _RINGS,
        "bfloat16": _RINGS,
    },
}
MOST_ROWS = {"float16": 64, "bfloat16": 64, "float32": 16}


def _skinny(name: str, layout: str, sizes: str) -> KernelCode:
    """The kernel for products of few rows of an element type and a layout of the matrix; `sizes` is
    the end of its name."""
    rows, tile = map(int, sizes.split("x"))
    eights = rows // 8
    sums = "Along" if layout == "_skinny" else "Across"
    if name != "float32":
        tiles = tile // 16
        function = f"skinny_ring<T, cyrt::{sums}Ring<T, {tiles}>, {eights}>"
        return KernelCode("Skinny", function, f"(32 * RING_WARPS({tiles}), 1)")
    matrix = "cyrt::AlongSum<T, 1>" if sums == "Along" else f"cyrt::AcrossSum<{tile}>"
    shape = f"({eights}, sizeof(T))"
    return KernelCode(
        "Skinny",
        f"skinny<T, {matrix}, {eights}, SKINNY_STEPS{shape}>",
        f"(32 * SKINNY_WARPS{shape}, SKINNY_BLOCKS(sizeof(T)))",
    )


def kernels(name: str) -> dict[str, KernelCode]:
    """The kernels of an element type, in the order of cyrt/builtin/matmul.pyx."""
    found = dict(KERNELS)
    for layout, types in SKINNY.items():
        for sizes in types.get(name, ()):
            found[f"{layout}_{sizes}"] = _skinny(name, layout, sizes)
    of = re.compile(r"\bT\b")
    cpp = dtype(name).cpp
    return {
        suffix: KernelCode(code.struct, of.sub(cpp, code.function), of.sub(cpp, code.bounds))
        for suffix, code in found.items()
    }


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        variants = tuple(kernels(name))
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, variants)


def instance(row: Row) -> str:
    return "\n".join(
        f"CYRT_PRODUCT({row.kernels[0]}{suffix}, {code.struct}, {code.bounds}, {code.function})"
        for suffix, code in kernels(row.output).items()
    )
