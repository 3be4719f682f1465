"""Reductions: bytes read and written a second beside a plain device copy, PyTorch and CuPy; and
what a small one costs.

Inputs are rotated so that the cache holds nothing from one operation to the next.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cyrt
from cyrt.bench.kernels import ROUNDS, SETS, _copy_rate, _time
from cyrt.bench.report import Row
from cyrt.dtypes import dtype
from cyrt.ops import reduce

SHAPES = (8192, 8192), (8192, 1024), (4096, 16384), (65536, 64), (64, 1 << 20)
TYPES = "float32", "bfloat16"
WAYS = {"by rows": 1, "by columns": 0, "whole": None}
OPS = "sum", "max", "var", "argmax", "logsumexp"
SMALL = 1000
BATCH = 50          # small ones between two commits: fewer than a batch holds


def _wanted(op: str, host: np.ndarray, axis: int | None) -> np.ndarray:
    if op == "logsumexp":
        return np.log(np.exp(host).sum(axis, dtype=np.float64))
    if op == "var":
        mean = host.mean(axis, dtype=np.float64, keepdims=True).astype(np.float32)
        return np.square(host - mean).mean(axis, dtype=np.float64)
    if op == "sum":
        return host.sum(axis, dtype=np.float64)
    return getattr(host, op)(axis)


def _torch(op: str, host: np.ndarray, name: str, axis: int | None) -> float | None:
    """Median µs of one of PyTorch's."""
    torch: Any = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return None
    sets = [torch.from_numpy(host).to("cuda", getattr(torch, name)) for _ in range(SETS)]
    dims = tuple(range(host.ndim)) if axis is None else axis
    work = {"sum": lambda x: torch.sum(x, dims), "max": lambda x: torch.amax(x, dims),
            "var": lambda x: torch.var(x, dims, correction=0),
            "argmax": lambda x: torch.argmax(x, axis),
            "logsumexp": lambda x: torch.logsumexp(x, dims)}[op]
    return _events(work, sets, lambda: torch.cuda.Event(enable_timing=True),
                   lambda begin, end: begin.elapsed_time(end))


def _cupy(op: str, host: np.ndarray, name: str, axis: int | None) -> float | None:
    """Median µs of one of CuPy's; it has no bfloat16, and no logsumexp of its own."""
    cupy: Any = importlib.import_module("cupy")
    if name == "bfloat16" or op == "logsumexp":
        return None
    sets = [cupy.asarray(host.astype(name)) for _ in range(SETS)]
    return _events(lambda x: getattr(x, op)(axis), sets, cupy.cuda.Event,
                   cupy.cuda.get_elapsed_time)


def _events(work: Callable[[Any], Any], sets: list[Any], event: Callable[[], Any],
            elapsed: Callable[[Any, Any], float]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin, end = event(), event()
        begin.record()
        for each in sets:
            work(each)
        end.record()
        end.synchronize()
        times.append(1e3 * elapsed(begin, end) / len(sets))
    return statistics.median(times)


def _peers(op: str, host: np.ndarray, name: str, axis: int | None, moved: int) -> str:
    notes = []
    for peer, measure in (("PyTorch", _torch), ("CuPy", _cupy)):
        try:
            took = measure(op, host, name, axis)
        except ImportError:
            continue
        if took is not None:
            notes.append(f"; {peer} {moved / took / 1e3:,.0f}")
    return "".join(notes)


def _rates(shapes: tuple[tuple[int, int], ...], peers: bool) -> list[Row]:
    rng = np.random.default_rng(3)
    rows = []
    for shape in shapes:
        # Whole numbers: their sums are exact.
        host = rng.integers(-4, 5, shape).astype(np.float32)
        for name in TYPES:
            sets = [cyrt.asarray(host, dtype=name) for _ in range(SETS)]
            nbytes = host.size * dtype(name).itemsize
            plain = _copy_rate(nbytes)
            for op in OPS if shape == shapes[0] else OPS[:1]:
                for way, axis in WAYS.items():
                    function = getattr(reduce, op)
                    found = function(sets[0], axis=axis)
                    tolerance = 1e-2 if found.dtype.name == "bfloat16" else 1e-5
                    np.testing.assert_allclose(found.numpy().astype(np.float64),
                                               _wanted(op, host, axis), rtol=tolerance,
                                               atol=tolerance)
                    took = _time(lambda each, of=function, x=sets, axis=axis: of(x[each],
                                                                                 axis=axis))
                    moved = nbytes + found.nbytes
                    rate = moved / took / 1e3
                    note = (f"{rate:,.0f} GB/s; {100 * rate / plain:.0f} % of a plain copy's "
                            f"{plain:,.0f}")
                    if peers:
                        note += _peers(op, host, name, axis, moved)
                    rows.append(Row("other", f"{op} {way}",
                                    f"{shape[0]} × {shape[1]} {name}", None, took, note))
    return rows


def _small() -> list[Row]:
    """Host and wall µs of a sum of 1,000 floats."""
    x = cyrt.ones(SMALL)
    host, wall = [], []
    for _ in range(100):
        begin = time.perf_counter()
        for _ in range(BATCH):
            result = reduce.sum(x)
        recorded = time.perf_counter()
        cyrt.synchronize()
        host.append(1e6 * (recorded - begin) / BATCH)
        wall.append(1e6 * (time.perf_counter() - begin) / BATCH)
    if result.item() != SMALL:
        raise RuntimeError(f"the sum of {SMALL} ones is {result.item()}")
    return [Row("other", "sum", f"{SMALL} float32, {BATCH} a commit", statistics.median(host),
                statistics.median(wall))]


def run(_rounds: int) -> list[Row]:
    """Rates on a GPU; on the emulated device only what the host pays."""
    if cyrt.Device().emulated:
        _rates(((96, 128),), False)     # only checked: its times say nothing of a GPU
        return _small()
    return _small() + _rates(SHAPES, True)


if __name__ == "__main__":
    for row in run(0):
        print(row.name, row.what, *(f"{t:.2f} µs" for t in (row.host, row.wall) if t is not None),
              row.note, sep="  ")
