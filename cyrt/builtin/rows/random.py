"""Random numbers that depend on a key."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import BY_SIZE, Row
from cyrt.dtypes import DTYPES, dtype

TEMPLATES = ("random",)
# The distribution of each operation in kernels_cu/random.cu, and the types of its numbers.
REAL = {
    "uniform": ("Uniform<{type}, {wide}>", "low + u * span"),
    "normal": ("Normal<{type}, {wide}>", "loc + scale * normal"),
    "truncated_normal": ("TruncatedNormal<{type}>", "normal between bounds"),
    "gumbel": ("Gumbel<{type}, {wide}>", "-log(-log(u))"),
    "laplace": ("Laplace<{type}, {wide}>", "loc +- scale * log(u)"),
}
# The other rows are compiled at first use.
PREBUILT = frozenset(
    {
        ("uniform", "float32"),
        ("uniform", "float64"),
        ("normal", "float32"),
        ("randint", "uint32"),
        ("randint", "uint64"),
        ("bernoulli", "bool"),
    }
)


def _row(op: str, output: str, expression: str, variants: tuple[str, ...] = ("",)) -> Row:
    return Row(op, "random", (), output, expression, (op, output) in PREBUILT, variants)


def rows() -> Iterator[Row]:
    for op, (_, expression) in REAL.items():
        for each in DTYPES:
            if each.kind == "f":
                yield _row(op, each.name, expression)
    yield _row("bernoulli", "bool", "u < p")
    for size, name in BY_SIZE.items():
        if size <= 8:  # signed and unsigned integers alike
            yield _row(
                "randint", name, "low + floor(u * range)", ("", "_wide") if size == 8 else ("",)
            )


def instance(row: Row) -> str:
    name, output = row.kernels[0], dtype(row.output)
    if row.op == "bernoulli":
        return f"CYRT_RANDOM({name}, cyrt::Bernoulli)"
    if row.op == "randint":
        lines = [f"CYRT_RANDOM({name}, cyrt::Integers<{output.cpp}>)"]
        if len(row.variants) > 1:
            lines.append(f"CYRT_RANDOM({name}_wide, cyrt::WideIntegers<{output.cpp}>)")
        return "\n".join(lines)
    distribution = REAL[row.op][0].format(type=output.cpp, wide=output.compute)
    return f"CYRT_RANDOM({name}, cyrt::{distribution})"
