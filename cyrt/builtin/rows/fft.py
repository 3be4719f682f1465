"""Discrete Fourier transforms of lines."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("fft",)
TYPES = ("complex64", "complex128")
# The type in the wheel; the other one is compiled at first use.
PREBUILT = frozenset({"complex64"})


def rows() -> Iterator[Row]:
    for name in TYPES:
        expression = "sum(a[j] * exp(-2 * pi * i * j * k / n))"
        yield Row("fft", "fft", (name,), name, expression, name in PREBUILT)


def instance(row: Row) -> str:
    return f"CYRT_FFT({row.kernels[0]}, {dtype(dtype(row.output).real).cpp})"
