"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.dtypes import DTYPES, dtype
from cyrt.kernels.row import Row, is_prebuilt

FAMILIES = {"matmul": "matmul.cu"}
# Sums of products wrap, so a signed integer's are those of the unsigned one of its size.
SERVED = {each.name: each.name.replace("int", "uint") if each.kind == "i" else each.name
          for each in DTYPES if each.kind != "b"}
# Kernels, in the order of their names' ends, and the bytes of their parameters.
VARIANTS = {"": 352, "_small": 352, "_rows": 336, "_columns": 336, "_parts": 32}


def rows() -> Iterator[Row]:
    for name in dict.fromkeys(SERVED.values()):
        # Products of integers of 8 and 64 bits are rare.
        prebuilt = name == "uint32" or (dtype(name).kind == "f" and is_prebuilt(name))
        yield Row("matmul", "matmul", (name, name), name, "sum(a * b)", prebuilt, tuple(VARIANTS))


def instance(row: Row) -> str:
    return f"CYRT_MATMUL({row.kernels[0]}, {dtype(row.output).cpp})"


def param_bytes(row: Row) -> list[int]:
    return list(VARIANTS.values())
