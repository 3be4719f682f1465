"""Selection by a mask: the elements at which it is true, or their positions."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import BY_SIZE, Row
from cyrt.dtypes import dtype

TEMPLATES = ("compact",)


def rows() -> Iterator[Row]:
    # They are in the wheel: they are few, and every type needs them.
    yield Row(
        "count_true",
        "compact",
        ("bool",),
        "int64",
        "how many of a tile of a are true",
        True,
        ("", "_positions"),
    )
    for name in BY_SIZE.values():
        yield Row("select", "compact", ("bool", name), name, "b where a", True)


def instance(row: Row) -> str:
    if row.op == "count_true":
        return f"CYRT_COUNT_TRUE({row.kernels[0]})"
    return f"CYRT_SELECT({row.kernels[0]}, {dtype(row.output).cpp})"
