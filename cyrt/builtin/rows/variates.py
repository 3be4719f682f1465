"""Random numbers whose parameters may be arrays; they are compiled at first use."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("variates",)
# The distribution of each operation on counts in kernels_cu/variates.cu.
COUNTS = {"poisson": "Poisson", "binomial": "Binomial", "geometric": "Geometric"}


def rows() -> Iterator[Row]:
    for each in DTYPES:
        if each.kind == "f":
            yield Row("log_gamma", "variates", (), each.name, "log(gamma)", False)
            yield Row("von_mises", "variates", (), each.name, "von Mises angle", False)
    for op in COUNTS:
        yield Row(op, "variates", (), "int64", f"{op} count", False)


def instance(row: Row) -> str:
    name, output = row.kernels[0], dtype(row.output)
    if row.op in COUNTS:
        return f"CYRT_VARIATES({name}, cyrt::{COUNTS[row.op]})"
    if row.op == "von_mises":
        return f"CYRT_VARIATES({name}, cyrt::VonMises<{output.cpp}>)"
    return f"CYRT_VARIATES({name}, cyrt::LogGamma<{output.cpp}, {output.compute}>)"
