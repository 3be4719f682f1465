"""Indexing by arrays: bytes a second beside a plain device copy, PyTorch and CuPy.

Rates are bytes read plus bytes written, each once, the indices among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import cyrt
from cyrt.bench.libraries import Library, copy_rate, libraries
from cyrt.bench.report import Row
from cyrt.ops.take import take, take_along_axis

SCALE = 1 << 8          # on the emulated device, where they are only checked


@dataclass
class Case:
    """One call, by library; what it is given; what it gives, or leaves in the first of these."""

    name: str
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    moved: int
    calls: dict[str, Callable[..., Any]]


def _put(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


def _torch_put(x: Any, index: Any, value: Any) -> Any:
    return x.index_copy_(0, index, value)


def _cupy_along(x: Any, places: Any) -> Any:
    import cupy

    return cupy.take_along_axis(x, places, 1)


def _rows(count: int, width: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random((count, width), np.float32)
    index = rng.integers(0, count, count)
    moved = 2 * x.nbytes + index.nbytes
    what = f"{count:,} rows of {width:,} float32, random"
    yield Case(f"take {what}", (x, index), x[index], moved, {
        "cyrt": lambda x, index: take(x, index, axis=0),
        "PyTorch": lambda x, index: x.index_select(0, index),
        "CuPy": lambda x, index: x.take(index, 0)})
    order = rng.permutation(count)
    wanted = np.empty_like(x)
    wanted[order] = x
    yield Case(f"put {what}", (np.zeros_like(x), order, x), wanted, moved, {
        "cyrt": _put, "PyTorch": _torch_put, "CuPy": _put})


def _elements(count: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random(count, np.float32)
    for name, index in (("random", rng.integers(0, count, count)), ("reversed", np.arange(count))):
        index = index if name == "random" else index[::-1].copy()
        yield Case(f"take {count:,} float32, {name}", (x, index), x[index],
                   2 * x.nbytes + index.nbytes, {
            "cyrt": take, "PyTorch": lambda x, index: x[index], "CuPy": lambda x, index: x[index]})
    mask = rng.random(count, np.float32) < 0.5
    yield Case(f"x[mask] = 0 of {count:,} float32", (x, mask), np.where(mask, np.float32(0), x),
               2 * x.nbytes + mask.nbytes, {
        "cyrt": lambda x, mask: _put(x, mask, 0.0),
        "PyTorch": lambda x, mask: x.masked_fill_(mask, 0.0),
        "CuPy": lambda x, mask: _put(x, mask, 0.0)})


def _mixed(rows: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random((rows, 1024), np.float32)
    places = rng.integers(0, 1024, x.shape)
    yield Case(f"take_along_axis, {rows:,} rows of 1,024 float32", (x, places),
               np.take_along_axis(x, places, 1), 2 * x.nbytes + places.nbytes, {
        "cyrt": lambda x, places: take_along_axis(x, places, axis=1),
        "PyTorch": lambda x, places: x.gather(1, places),
        "CuPy": _cupy_along})
    cube = x.reshape(rows // 4, 4, 1024)
    i, j = rng.integers(0, rows // 4, rows // 4), rng.integers(0, 1024, rows // 4)
    wanted = cube[i, :, j]
    # A sector of 32 bytes for each number of 4.
    call = {name: lambda x, i, j: x[i, :, j] for name in ("cyrt", "PyTorch", "CuPy")}
    yield Case(f"x[i, :, j] of {rows // 4:,} pairs, with the sectors read", (cube, i, j), wanted,
               9 * wanted.nbytes + 2 * i.nbytes, call)


def _measure(library: Library, case: Case) -> Row:
    inputs = [library.put(each) for each in case.inputs]
    call = case.calls[library.name]
    np.testing.assert_array_equal(library.get(call(*inputs)), case.expected)
    took = library.time(lambda _: call(*inputs), 1)
    rate, plain = case.moved / took / 1e3, copy_rate(case.moved)
    return Row("other", case.name, f"{library.name}: {case.moved / 1e6:,.0f} MB moved", None, took,
               f"{rate:,.0f} GB/s; {100 * rate / plain:.0f} % of a plain copy's {plain:,.0f}")


def run(_rounds: int) -> list[Row]:
    """Every case by every library on a GPU; on the emulated device results are only checked."""
    small = cyrt.Device().emulated
    by = SCALE if small else 1
    rng = np.random.default_rng(13)
    rows = []
    for cases in (_rows((1 << 20) // by, 256, rng), _elements((1 << 26) // by, rng),
                  _mixed((1 << 16) // by, rng)):
        for case in cases:
            rows += [_measure(library, case) for library in libraries()]
    return [] if small else rows
