"""Reductions: bytes read and written per second, compared with a device copy, PyTorch and CuPy.

The first row has the host time and the wall time of a small sum.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Library, Row, Session, main

import cyrt

SHAPES = (8192, 8192), (8192, 1024), (4096, 16384), (65536, 64), (64, 1 << 20)
SMALL_SHAPES = ((96, 128),)
DTYPES = "float32", "bfloat16"
AXES = {"by rows": 1, "by columns": 0, "whole": None}
FUNCTIONS = "sum", "max", "var", "argmax", "logsumexp"  # the first one runs on all shapes
SETS = 4  # number of input sets
ELEMENTS = 1000  # size of the small sum
SUMS = 50  # number of small sums between two commits: fewer than a batch holds


def _expected(name: str, x: np.ndarray, axis: int | None) -> Any:
    if name == "logsumexp":
        return np.log(np.exp(x).sum(axis, dtype=np.float64))
    if name == "var":
        mean = x.mean(axis, dtype=np.float64, keepdims=True).astype(np.float32)
        return np.square(x - mean).mean(axis, dtype=np.float64)
    if name == "sum":
        return x.sum(axis, dtype=np.float64)
    return getattr(x, name)(axis)


def _function(
    library: Library, name: str, dtype: str, axis: int | None
) -> Callable[[Any], Any] | None:
    """A library's reduction; None if the library lacks it."""
    if library.name == "PyTorch":
        import torch

        dims = (0, 1) if axis is None else axis
        return {
            "sum": lambda x: torch.sum(x, dims),
            "max": lambda x: torch.amax(x, dims),
            "var": lambda x: torch.var(x, dims, correction=0),
            "argmax": lambda x: torch.argmax(x, axis),
            "logsumexp": lambda x: torch.logsumexp(x, dims),
        }[name]
    if library.name == "CuPy":
        if dtype == "bfloat16" or name == "logsumexp":
            return None
        return lambda x: getattr(x, name)(axis)
    return lambda x: getattr(cyrt, name)(x, axis=axis)


def _measure_case(
    session: Session, library: Library, name: str, way: str, x: np.ndarray, dtype: str
) -> Iterator[Row]:
    function = _function(library, name, dtype, AXES[way])
    if function is None:
        return
    host = x.astype(cyrt.dtype(dtype).numpy)
    sets = [library.to_device(host) for _ in range(SETS)]
    found = library.to_host(function(sets[0])).astype(np.float64)
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(found, _expected(name, x, AXES[way]), rtol=tolerance, atol=tolerance)
    took = session.device_time(library, lambda i: function(sets[i]), SETS)
    itemsize = 8 if name == "argmax" else host.itemsize
    yield Row(
        f"{name} {way}",
        f"{library.name}: {x.shape[0]} × {x.shape[1]} {dtype}",
        took,
        note=session.copy_note(took, host.nbytes + found.size * itemsize),
    )


def _small_sum() -> Row:
    x = cyrt.ones(ELEMENTS)
    host, wall = [], []
    for _ in range(100):
        begin = time.perf_counter()
        for _ in range(SUMS):
            result = cyrt.sum(x)
        recorded = time.perf_counter()
        cyrt.synchronize()
        host.append(1e6 * (recorded - begin) / SUMS)
        wall.append(1e6 * (time.perf_counter() - begin) / SUMS)
    np.testing.assert_equal(result.item(), ELEMENTS)
    emulated = cyrt.Device().emulated
    return Row(
        "sum",
        f"cyrt: {ELEMENTS} float32, {SUMS} a commit",
        None if emulated else statistics.median(wall),
        statistics.median(host),
        "" if emulated else "wall time, not the device's",
    )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every function, axis, shape, element type and library."""
    rng = np.random.default_rng(3)
    yield _small_sum()
    shapes = SMALL_SHAPES if session.small else SHAPES
    for shape in shapes:
        # The sums of small whole numbers are exact.
        x = rng.integers(-4, 5, shape).astype(np.float32)
        for dtype in DTYPES:
            for name in FUNCTIONS if shape == shapes[0] else FUNCTIONS[:1]:
                for way in AXES:
                    for library in session.libraries:
                        yield from _measure_case(session, library, name, way, x, dtype)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
