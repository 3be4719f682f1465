"""Products of matrices and vectors: what the GPU takes, beside a plain device copy of the bytes
that they read and write, and PyTorch where it is installed.

Operands are rotated where they are large, so that the cache holds nothing from one product to the
next. Every product is checked before it is timed.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import cyrt
from cyrt.bench.report import Row
from cyrt.dtypes import dtype
from cyrt.ops.matmul import matmul, vecdot

ROTATED = 1 << 30       # bytes that the operands of a round have together, at least
MOST_SETS = 64
BUSY = 1 << 29          # bytes of a copy that the GPU is busy with while work is recorded
OPS = 100               # products of a round, where they are small
ROUNDS = 12


@dataclass(frozen=True)
class Case:
    """A product: its type, the shapes of its operands, and how they lie.

    Attributes
    ----------
    what : str
    name : str
        Element type.
    a, b : tuple of int
        Shapes of what is in memory.
    turned : bool
        The first operand is the transposed view of it.
    dots : bool
        Dot products along the last axis, not a product of matrices.
    """

    what: str
    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    turned: bool = False
    dots: bool = False

    def operands(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Small whole numbers, so that sums are exact."""
        each = dtype(self.name).numpy
        a, b = (rng.integers(-2, 3, shape).astype(each) for shape in (self.a, self.b))
        return a, b

    def product(self, library: Any, a: Any, b: Any) -> Any:
        if self.dots:
            return library.vecdot(a, b)
        return library.matmul(a.mT if self.turned else a, b)

    @property
    def macs(self) -> int:
        """Multiplications."""
        return int(np.prod(self.a)) * (1 if self.dots or len(self.b) == 1 else self.b[-1])

    @property
    def nbytes(self) -> int:
        """Read and written."""
        a, b = (np.broadcast_to(np.empty(()), shape) for shape in (self.a, self.b))
        result = a.shape[:-1] if self.dots else np.matmul(a.mT if self.turned else a, b).shape
        return dtype(self.name).itemsize * (a.size + b.size + int(np.prod(result)))


def _cases(large: bool) -> list[Case]:
    side = 4096 if large else 96
    tall = 1 << 20 if large else 1 << 10
    cases = [Case("matrix by vector", "float32", (1000, 100), (100,)),
             Case("transposed matrix by vector", "float32", (1000, 100), (1000,), turned=True)]
    for name in ("float32", "bfloat16"):
        cases += [
            Case("matrix by vector", name, (side, side), (side,)),
            Case("transposed matrix by vector", name, (side, side), (side,), turned=True),
            Case("tall, transposed, by vector", name, (tall, 96), (tall,), turned=True),
            Case("dot product", name, (tall * 16,), (tall * 16,), dots=True),
            Case("dot products of rows", name, (tall // 16, 1024), (tall // 16, 1024), dots=True),
            Case("16 rows by matrix", name, (16, side), (side, side)),
            Case("batch of 1,000", name, (1000, 32, 32), (1000, 32, 32)),
        ]
    for name in ("float32", "bfloat16", "float64"):
        cases.append(Case("matrices", name, (side // 2,) * 2, (side // 2,) * 2))
    cases.append(Case("matrices", "float32", (side,) * 2, (side,) * 2))
    cases.append(Case("matrices, first transposed", "float32", (side // 2,) * 2, (side // 2,) * 2,
                      turned=True))
    return cases


class _Cyrt:
    """cyrt's functions by the names that `Case.product` knows, and how they are timed."""

    matmul = staticmethod(matmul)
    vecdot = staticmethod(vecdot)

    def __init__(self, large: bool) -> None:
        self.source, self.target = (cyrt.Buffer(BUSY if large else 8) for _ in range(2))
        self.source.fill(0)

    def array(self, x: np.ndarray) -> Any:
        return cyrt.asarray(x)

    def host(self, x: Any) -> np.ndarray:
        return x.numpy().astype(np.float64)

    def time(self, work: Callable[[], None]) -> float:
        """µs on the GPU, a median."""
        begin, end = cyrt.Event(), cyrt.Event()
        times = []
        for _ in range(ROUNDS):
            self.target.copy_from(self.source)      # meanwhile the work is recorded
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times)


class _Torch:
    """PyTorch's, its products in a CUDA graph, so that its host time does not count."""

    def __init__(self) -> None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        self.torch = torch
        self.matmul = torch.matmul

    def vecdot(self, a: Any, b: Any) -> Any:
        return self.torch.linalg.vecdot(a, b)

    def array(self, x: np.ndarray) -> Any:
        wide = self.torch.from_numpy(x.astype(np.float32) if x.dtype.name == "bfloat16" else x)
        return wide.to("cuda", getattr(self.torch, x.dtype.name))

    def host(self, x: Any) -> np.ndarray:
        return x.double().cpu().numpy()

    def time(self, work: Callable[[], None]) -> float:
        """µs on the GPU, a median."""
        cuda = self.torch.cuda
        work()
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            work()
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        times = []
        for _ in range(ROUNDS):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times)


def _measure(case: Case, library: _Cyrt | _Torch, rng: np.random.Generator, large: bool) -> float:
    """µs of one product."""
    count = max(1, min(MOST_SETS, ROTATED // case.nbytes)) if large else 1
    a, b = case.operands(rng)
    sets = [(library.array(a), library.array(b)) for _ in range(count)]
    wide_a, wide_b = (x.astype(np.float64) for x in (a, b))
    found = library.host(case.product(library, *sets[-1]))
    if case.dots:
        wanted = np.vecdot(wide_a, wide_b)
    else:
        wanted = np.matmul(wide_a.mT if case.turned else wide_a, wide_b)
    # Sums are exact in float32; 16-bit results are rounded.
    np.testing.assert_allclose(found, wanted, rtol=1e-2 if case.name == "bfloat16" else 1e-6,
                               atol=1e-6)
    ops = max(count, min(OPS, 4 * OPS * 10**9 // max(case.macs, 1))) if large else 1

    def work() -> None:
        for each in range(ops):
            case.product(library, *sets[each % count])

    work()
    return library.time(work) / ops


def _copy_time(nbytes: int, library: _Cyrt, large: bool) -> float:
    """µs of a device copy that reads and writes as many bytes together."""
    half = max(1, nbytes // 2)
    count = max(1, min(MOST_SETS, ROTATED // nbytes)) if large else 1
    pairs = [(cyrt.Buffer(half), cyrt.Buffer(half)) for _ in range(count)]
    for source, target in pairs:
        source.fill(1)
        target.copy_from(source)

    def work() -> None:
        for source, target in pairs:
            target.copy_from(source)

    return library.time(work) / count


def _rows(large: bool) -> Iterator[Row]:
    rng = np.random.default_rng(5)
    ours = _Cyrt(large)
    torch = _Torch() if large and importlib.util.find_spec("torch") else None
    for case in _cases(large):
        took = _measure(case, ours, rng, large)
        copied = _copy_time(case.nbytes, ours, large)
        note = (f"{2e-6 * case.macs / took:.2f} TFLOP/s, {1e-3 * case.nbytes / took:,.0f} GB/s; "
                f"a copy of as much takes {copied:.2f} µs")
        if torch is not None:
            other = _measure(case, torch, rng, large)
            note += f", PyTorch {other:.2f} µs ({other / took:.2f} times)"
        shapes = f"{case.a} by {case.b}"
        yield Row("other", case.what, f"{case.name}, {shapes}", None, took, note)


def run(_rounds: int) -> list[Row]:
    """Times on a GPU; on the emulated device products are only checked."""
    large = not cyrt.Device().emulated
    rows = list(_rows(large))
    return rows if large else []
