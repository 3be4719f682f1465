"""What a mask selects: the elements at which it is true, or their positions."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.dtypes import dtype
from cyrt.kernels.row import BY_SIZE, Row

FAMILIES = {"compact": "compact.cu"}


def rows() -> Iterator[Row]:
    # Few, and every type needs them.
    yield Row("count_true", "compact", ("bool",), "int64", "how many of a tile of a are true", True,
              ("", "_positions"))
    for name in BY_SIZE.values():
        yield Row("select", "compact", ("bool", name), name, "b where a", True)


def instance(row: Row) -> str:
    if row.op == "count_true":
        return f"CYRT_COUNT_TRUE({row.kernels[0]})"
    return f"CYRT_SELECT({row.kernels[0]}, {dtype(row.output).cpp})"


def param_bytes(row: Row) -> list[int]:
    return [48] * len(row.kernels)
