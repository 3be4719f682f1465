"""Random numbers: bytes written per second, compared with a memory fill, PyTorch and CuPy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Library, Row, Session, main

from cyrt import random

ELEMENTS = 1 << 27
CHECKED = 1 << 14  # elements whose mean and standard deviation are checked
KEY = random.key(17)
# Mean and standard deviation, by the first word of a case's name.
MOMENTS = {
    "uniform": (0.5, math.sqrt(1 / 12)),
    "normal": (0, 1),
    "bernoulli": (0.3, math.sqrt(0.21)),
    "integers": (499.5, math.sqrt((1000**2 - 1) / 12)),
    "truncated": (0, 0.879626),
}


def _cyrt() -> dict[str, Callable[[int], Any]]:
    return {
        "uniform float32": lambda n: random.uniform(shape=n, key=KEY),
        "uniform float64": lambda n: random.uniform(shape=n, dtype="float64", key=KEY),
        "uniform bfloat16": lambda n: random.uniform(shape=n, dtype="bfloat16", key=KEY),
        "normal float32": lambda n: random.normal(shape=n, key=KEY),
        "normal float64": lambda n: random.normal(shape=n, dtype="float64", key=KEY),
        "normal bfloat16": lambda n: random.normal(shape=n, dtype="bfloat16", key=KEY),
        "integers below 1,000 int64": lambda n: random.randint(0, 1000, n, key=KEY),
        "integers below 1,000 int32": lambda n: random.randint(0, 1000, n, dtype="int32", key=KEY),
        "bernoulli": lambda n: random.bernoulli(0.3, n, key=KEY),
        "truncated normal float32": lambda n: random.truncated_normal(-2, 2, n, key=KEY),
    }


def _torch() -> dict[str, Callable[[int], Any]]:
    import torch

    cuda = {"device": "cuda"}
    return {
        "uniform float32": lambda n: torch.rand(n, **cuda),
        "uniform float64": lambda n: torch.rand(n, dtype=torch.float64, **cuda),
        "uniform bfloat16": lambda n: torch.rand(n, dtype=torch.bfloat16, **cuda),
        "normal float32": lambda n: torch.randn(n, **cuda),
        "normal float64": lambda n: torch.randn(n, dtype=torch.float64, **cuda),
        "normal bfloat16": lambda n: torch.randn(n, dtype=torch.bfloat16, **cuda),
        "integers below 1,000 int64": lambda n: torch.randint(0, 1000, (n,), **cuda),
        "integers below 1,000 int32": lambda n: torch.randint(
            0, 1000, (n,), dtype=torch.int32, **cuda
        ),
        "bernoulli": lambda n: torch.empty(n, dtype=torch.bool, **cuda).bernoulli_(0.3),
    }


def _cupy() -> dict[str, Callable[[int], Any]]:
    import cupy

    generator = cupy.random.default_rng(17)
    return {
        "uniform float32": lambda n: generator.random(n, dtype=cupy.float32),
        "uniform float64": lambda n: generator.random(n, dtype=cupy.float64),
        "normal float32": lambda n: generator.standard_normal(n, dtype=cupy.float32),
        "normal float64": lambda n: generator.standard_normal(n, dtype=cupy.float64),
        "integers below 1,000 int64": lambda n: generator.integers(0, 1000, n),
    }


def _check_moments(case: str, host: np.ndarray) -> None:
    mean, deviation = MOMENTS[case.split()[0]]
    values = host.astype(np.float64)
    allowed = 6 / math.sqrt(values.size) + (4e-3 if "bfloat16" in case else 0)
    if not (
        abs(values.mean() - mean) < allowed * deviation
        and abs(values.std() / deviation - 1) < allowed
    ):
        raise AssertionError(
            f"{case}: expected mean {mean:.4f} and standard deviation "
            f"{deviation:.4f}, got {values.mean():.4f} and {values.std():.4f}"
        )


def _measure_case(session: Session, library: Library, case: str, draw: Callable[[int], Any]) -> Row:
    sample = draw(CHECKED)
    _check_moments(case, library.to_host(sample))
    nbytes = ELEMENTS * int(sample.nbytes) // CHECKED
    took = session.device_time(library, lambda _: draw(ELEMENTS))
    return Row(
        case,
        f"{library.name}: {CHECKED if session.small else ELEMENTS:,}",
        took,
        note=session.fill_note(took, nbytes),
    )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    functions = {"cyrt": _cyrt, "PyTorch": _torch, "CuPy": _cupy}
    draws = [(library, functions[library.name]()) for library in session.libraries]
    for case in _cyrt():
        for library, cases in draws:
            if case in cases:
                yield _measure_case(session, library, case, cases[case])


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
