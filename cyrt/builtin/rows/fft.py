"""Discrete Fourier transforms of lines."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("fft",)
TYPES = ("complex64", "complex128")
# Any lines; those whose points are all complex numbers in memory, without tables.
VARIANTS = ("", "_simple")
# The type in the wheel; the other one is compiled at first use.
PREBUILT = frozenset({"complex64"})


def rows() -> Iterator[Row]:
    for name in TYPES:
        expression = "sum(a[j] * exp(-2 * pi * i * j * k / n))"
        yield Row("fft", "fft", (name,), name, expression, name in PREBUILT, VARIANTS)


def instance(row: Row) -> str:
    return f"CYRT_FFT({', '.join(row.kernels)}, {dtype(dtype(row.output).real).cpp})"
