"""Random numbers: bytes written a second, beside filling memory, PyTorch and CuPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cyrt
from cyrt import random
from cyrt.bench.libraries import Library, libraries, write_rate
from cyrt.bench.report import Row

ELEMENTS = 1 << 27
SMALL = 1 << 14         # on the emulated device, where they are only checked
KEY = random.key(17)


def _own() -> dict[str, Callable[[int], Any]]:
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

    place = {"device": "cuda"}
    return {
        "uniform float32": lambda n: torch.rand(n, **place),
        "uniform float64": lambda n: torch.rand(n, dtype=torch.float64, **place),
        "uniform bfloat16": lambda n: torch.rand(n, dtype=torch.bfloat16, **place),
        "normal float32": lambda n: torch.randn(n, **place),
        "normal float64": lambda n: torch.randn(n, dtype=torch.float64, **place),
        "normal bfloat16": lambda n: torch.randn(n, dtype=torch.bfloat16, **place),
        "integers below 1,000 int64": lambda n: torch.randint(0, 1000, (n,), **place),
        "integers below 1,000 int32": lambda n: torch.randint(0, 1000, (n,), dtype=torch.int32,
                                                              **place),
        "bernoulli": lambda n: torch.empty(n, dtype=torch.bool, **place).bernoulli_(0.3),
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


# Mean and standard deviation.
_MOMENTS = {
    "uniform": (0.5, math.sqrt(1 / 12)), "normal": (0, 1), "bernoulli": (0.3, math.sqrt(0.21)),
    "integers": (499.5, math.sqrt((1000**2 - 1) / 12)), "truncated": (0, 0.879626),
}


def _check(case: str, host: np.ndarray) -> None:
    mean, deviation = _MOMENTS[case.split()[0]]
    values = host.astype(np.float64)
    allowed = 6 / math.sqrt(values.size) + (4e-3 if "bfloat16" in case else 0)
    assert abs(values.mean() - mean) < allowed * deviation, case
    assert abs(values.std() / deviation - 1) < allowed, case


def _measure(library: Library, case: str, draw: Callable[[int], Any], n: int) -> Row:
    # Through a NumPy type where it has none for bfloat16.
    found = draw(SMALL)
    _check(case, library.get(found.float() if library.name == "PyTorch" else found))
    nbytes = n * (found.element_size() if library.name == "PyTorch" else found.itemsize)
    took = library.time(lambda _: draw(n), 1)
    rate, plain = nbytes / took / 1e3, write_rate(nbytes)
    return Row("other", case, f"{library.name}: {n:,}", None, took,
               f"{rate:,.0f} GB/s; {100 * rate / plain:.0f} % of filling's {plain:,.0f}")


def run(_rounds: int) -> list[Row]:
    """Every case by every library on a GPU; on the emulated device results are only checked."""
    small = cyrt.Device().emulated
    draws = {"cyrt": _own, "PyTorch": _torch, "CuPy": _cupy}
    found = {library.name: (library, draws[library.name]()) for library in libraries()}
    rows = [_measure(library, case, cases[case], SMALL if small else ELEMENTS)
            for case in _own() for library, cases in found.values() if case in cases]
    return [] if small else rows
