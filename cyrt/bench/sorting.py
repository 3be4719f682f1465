"""Sorting, scans and selection beside PyTorch, CuPy and a plain device copy, in one process.

Times are the device's, between events, but for what waits for a count: that is the host's. Inputs
are rotated so that the cache holds nothing from one call to the next. Every result is checked
before its time is printed.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import cyrt
from cyrt.bench.report import Row
from cyrt.dtypes import dtype
from cyrt.ops.compact import select
from cyrt.ops.scan import cumulative_sum
from cyrt.ops.search import searchsorted
from cyrt.ops.sort import argsort, sort

SETS = 4            # of inputs
ROUNDS = 12
ELEMENTS = 1 << 24
NBYTES = 256 << 20
SMALL = 1 << 14     # of each case on the emulated device, where it is only checked


@dataclass
class Library:
    """One that is measured: how it takes an array, gives it back, and tells the device's time."""

    name: str
    put: Callable[[np.ndarray], Any]
    get: Callable[[Any], np.ndarray]
    mark: Callable[[], Any]                     # an event, recorded
    between: Callable[[Any, Any], float]        # ms, once both have passed
    wait: Callable[[], None]
    functions: dict[str, Callable[..., Any]]

    def device_time(self, work: Callable[[int], Any]) -> float:
        """Median µs of a call."""
        times = []
        for _ in range(ROUNDS):
            begin = self.mark()
            for each in range(SETS):
                work(each)
            times.append(1e3 * self.between(begin, self.mark()) / SETS)
        return statistics.median(times)

    def host_time(self, work: Callable[[int], Any]) -> float:
        """Median µs of a call that waits."""
        times = []
        for each in range(ROUNDS):
            self.wait()
            begin = time.perf_counter()
            work(each % SETS)
            self.wait()
            times.append(1e6 * (time.perf_counter() - begin))
        return statistics.median(times)


def _own() -> Library:
    def mark() -> cyrt.Event:
        event = cyrt.Event()
        event.record()
        return event

    def between(begin: cyrt.Event, end: cyrt.Event) -> float:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library(
        "cyrt", cyrt.asarray, lambda x: x.numpy(), mark, between, cyrt.synchronize,
        {"sort": sort, "argsort": argsort, "cumulative_sum": cumulative_sum,
         "select": select, "searchsorted": searchsorted})


def _torch() -> Library:
    import torch

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(begin: Any, end: Any) -> float:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library(
        "PyTorch", lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy(), mark, between,
        torch.cuda.synchronize,
        {"sort": lambda x: torch.sort(x, stable=True)[0],
         "argsort": lambda x: torch.argsort(x, stable=True),
         "cumulative_sum": lambda x, axis: torch.cumsum(x, axis),
         "select": lambda x, mask: x[mask], "searchsorted": torch.searchsorted})


def _cupy() -> Library:
    import cupy

    def mark() -> Any:
        event = cupy.cuda.Event()
        event.record()
        return event

    def between(begin: Any, end: Any) -> float:
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end)

    return Library(
        "CuPy", cupy.asarray, cupy.asnumpy, mark, between,
        cupy.cuda.get_current_stream().synchronize,
        {"sort": cupy.sort, "argsort": cupy.argsort,
         "cumulative_sum": lambda x, axis: cupy.cumsum(x, axis),
         "select": lambda x, mask: x[mask], "searchsorted": cupy.searchsorted})


def _libraries() -> Iterator[Library]:
    yield _own()
    if cyrt.Device().emulated:
        return
    for other in (_torch, _cupy):
        try:
            yield other()
        except ImportError:
            continue


@dataclass
class Case:
    """One call: a function's name, its inputs of a set, what it gives, and what it moves."""

    function: str
    what: str
    inputs: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    expected: Callable[..., np.ndarray]
    options: dict[str, Any]
    tolerance: float = 0
    waits: bool = False


def _numbers(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name.startswith("int"):
        limits = np.iinfo(name)
        return rng.integers(limits.min, limits.max, shape, np.dtype(name))
    return rng.standard_normal(shape, np.float32).astype(dtype(name).numpy)


def _cases(small: bool) -> Iterator[Case]:
    def scaled(count: int) -> int:
        return SMALL if small else count

    for function, expected, names in (
            ("sort", np.sort, ("float32", "int32", "int64", "float16")),
            ("argsort", functools.partial(np.argsort, kind="stable"), ("float32", "int64"))):
        for name in names:
            n = scaled(ELEMENTS)
            yield Case(function, f"{name}, {n:,}",
                       lambda rng, name=name, n=n: (_numbers(name, (n,), rng),), expected, {})
    for rows, row in ((1 << 16, 256), (1 << 14, 1024), (1 << 12, 4096)):
        rows = scaled(rows * row) // row
        yield Case("sort", f"float32, {rows:,} rows of {row:,}",
                   lambda rng, shape=(rows, row): (_numbers("float32", shape, rng),), np.sort, {})
    n = scaled(NBYTES // 4)
    side = int(n**0.5)
    for shape, axis in (((n,), 0), ((side, side), 1), ((side, side), 0)):
        yield Case("cumulative_sum", f"float32, {' × '.join(f'{size:,}' for size in shape)}, "
                   f"axis {axis}",
                   lambda rng, shape=shape: (rng.integers(-4, 5, shape).astype(np.float32),),
                   np.cumsum, {"axis": axis}, 1e-6)
    n = scaled(1 << 26)
    for density in (0.5, 0.05):
        yield Case("select", f"float32, {n:,}, {100 * density:.0f} % true",
                   lambda rng, n=n, density=density: (
                       _numbers("float32", (n,), rng), rng.random(n, np.float32) < density),
                   lambda x, mask: x[mask], {}, waits=True)
    n = scaled(1 << 20)
    yield Case("searchsorted", f"float32, {n:,} in {n:,}",
               lambda rng, n=n: (np.sort(_numbers("float32", (n,), rng)),
                                 _numbers("float32", (n,), rng)),
               np.searchsorted, {})


def _copy_rate(nbytes: int) -> float:
    """GB/s of a plain device copy that reads and writes so many bytes together."""
    pairs = [(cyrt.Buffer(nbytes // 2), cyrt.Buffer(nbytes // 2)) for _ in range(SETS)]
    for source, _ in pairs:
        source.fill(1)
    return nbytes / _own().device_time(
        lambda each: pairs[each][1].copy_from(pairs[each][0])) / 1e3


def _measure(library: Library, case: Case, sets: list[tuple[np.ndarray, ...]],
             wanted: np.ndarray) -> Row:
    inputs = [tuple(library.put(each) for each in arrays) for arrays in sets]

    def work(each: int) -> Any:
        return library.functions[case.function](*inputs[each], **case.options)

    for each in range(1, SETS):
        work(each)
    found = library.get(work(0))
    np.testing.assert_allclose(found, wanted, rtol=case.tolerance)
    took = library.host_time(work) if case.waits else library.device_time(work)
    moved = sum(each.nbytes for each in sets[0]) + wanted.nbytes
    rate = moved / took / 1e3
    note = f"{rate:,.0f} GB/s, read and written once"
    if library.name == "cyrt" and case.function == "cumulative_sum":
        plain = _copy_rate(moved)
        note += f"; {100 * rate / plain:.0f} % of a plain copy's {plain:,.0f}"
    if "sort" in case.function:
        note += f"; {sets[0][0].size / took / 1e3:.2f} G elements/s"
    return Row("other", case.function, f"{library.name}: {case.what}", None, took, note)


def run(_rounds: int) -> list[Row]:
    """Every case by every library on a GPU; on the emulated device results are only checked."""
    small = cyrt.Device().emulated
    rng = np.random.default_rng(3)
    libraries = list(_libraries())
    rows = []
    for case in _cases(small):
        one = case.inputs(rng)
        sets = [one] + [tuple(np.roll(each, 1) if case.function != "searchsorted" else each
                              for each in one)] * (SETS - 1)
        wanted = case.expected(*one, **case.options)
        for library in libraries:
            rows.append(_measure(library, case, sets, wanted))
    return [] if small else rows
