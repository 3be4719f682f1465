"""Products of matrices and vectors, compared with PyTorch.

Each row has the time of a device copy that reads and writes as many bytes. The host's time is
excluded: cyrt's products are recorded while the GPU is busy with a copy, PyTorch's are in a CUDA
graph.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import ROUNDS, Library, Row, Session, main

import cyrt

ROTATED = 1 << 30  # least bytes of all operands of a round: more than a cache holds
MOST_SETS = 64
BUSY = 1 << 29  # bytes of the copy during which products are recorded
PRODUCTS = 100  # products in a round, unless they are large
CHECKED = 1 << 35  # multiplications; of larger products, some rows are checked
CHECKED_ROWS = 64
CHAIN_SIDE = 768
NEW_SHAPES = 8


@dataclass(frozen=True)
class Case:
    """A product of two arrays.

    Attributes
    ----------
    what : str
        A short description.
    dtype : str
        Element type.
    a, b : tuple of int
        Shapes of the arrays in memory.
    transposed : bool
        True if the first operand is the transposed view of its array.
    dots : bool
        True if the products are dot products along the last axis.
    """

    what: str
    dtype: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    transposed: bool = False
    dots: bool = False

    def operands(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Random small whole numbers, whose sums are exact."""
        a, b = (
            rng.integers(-2, 3, shape).astype(cyrt.dtype(self.dtype).numpy)
            for shape in (self.a, self.b)
        )
        return a, b

    def product(self, namespace: Any, a: Any, b: Any) -> Any:
        """The product, with the functions ``matmul`` and ``vecdot`` of a namespace."""
        if self.dots:
            return namespace.vecdot(a, b)
        return namespace.matmul(a.mT if self.transposed else a, b)

    @property
    def macs(self) -> int:
        """Number of multiplications."""
        return int(np.prod(self.a)) * (1 if self.dots or len(self.b) == 1 else self.b[-1])

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        a, b = (np.broadcast_to(np.empty(()), shape) for shape in (self.a, self.b))
        result = a.shape[:-1] if self.dots else np.matmul(a.mT if self.transposed else a, b).shape
        return cyrt.dtype(self.dtype).itemsize * (a.size + b.size + int(np.prod(result)))


def _cases(small: bool) -> list[Case]:
    side = 96 if small else 4096
    tall = 1 << 10 if small else 1 << 20
    cases = [
        Case("matrix by vector", "float32", (1000, 100), (100,)),
        Case("transposed matrix by vector", "float32", (1000, 100), (1000,), transposed=True),
    ]
    for name in ("float32", "bfloat16"):
        cases += [
            Case("matrix by vector", name, (side, side), (side,)),
            Case("transposed matrix by vector", name, (side, side), (side,), transposed=True),
            Case("tall, transposed, by vector", name, (tall, 96), (tall,), transposed=True),
            Case("dot product", name, (tall * 16,), (tall * 16,), dots=True),
            Case("dot products of rows", name, (tall // 16, 1024), (tall // 16, 1024), dots=True),
            Case("16 rows by matrix", name, (16, side), (side, side)),
            Case("batch of 1,000", name, (1000, 32, 32), (1000, 32, 32)),
        ]
    for name in ("float32", "bfloat16", "float64"):
        cases.append(Case("matrices", name, (side // 2,) * 2, (side // 2,) * 2))
    for name in ("bfloat16", "float16", "float32", "float64"):
        for size in (side, side if small else 2 * side):
            cases.append(Case("matrices", name, (size,) * 2, (size,) * 2))
    cases.append(
        Case(
            "matrices, first transposed",
            "float32",
            (side // 2,) * 2,
            (side // 2,) * 2,
            transposed=True,
        )
    )
    return cases


class _Namespace:
    """The functions of a library that :meth:`Case.product` calls."""

    def __init__(self, library: Library) -> None:
        if library.name == "PyTorch":
            import torch

            torch.backends.cuda.matmul.allow_tf32 = False
            self.matmul, self.vecdot = torch.matmul, torch.linalg.vecdot
        else:
            self.matmul, self.vecdot = cyrt.matmul, cyrt.vecdot


class _Timer:
    """Median µs of the work on the device, without the host's time."""

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.name == "cyrt":
            self.source, self.target = cyrt.Buffer(BUSY), cyrt.Buffer(BUSY)
            self.source.fill(0)

    def __call__(self, work: Callable[[], None]) -> float:
        if self.library.name == "PyTorch":
            work = self._captured(work)
        times = []
        for _ in range(ROUNDS):
            if self.library.name == "cyrt":
                self.target.copy_from(self.source)  # the work is recorded during this copy
            begin = self.library.record_event()
            work()
            times.append(1e3 * self.library.elapsed(begin, self.library.record_event()))
        return statistics.median(times)

    @staticmethod
    def _captured(work: Callable[[], None]) -> Callable[[], None]:
        import torch

        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay


def _check(case: Case, found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if case.macs > CHECKED and len(a) == len(found) and not case.transposed:
        rows = np.linspace(0, len(a) - 1, CHECKED_ROWS).astype(int)
        a, found = a[rows], found[rows]
    a, b = a.astype(np.float64), b.astype(np.float64)
    # Sums are exact in float32; 16-bit results are rounded.
    np.testing.assert_allclose(
        found.astype(np.float64),
        case.product(np, a, b),
        rtol={"bfloat16": 1e-2, "float16": 1e-3}.get(case.dtype, 1e-6),
        atol=1e-6,
    )


def _measure_case(
    case: Case, library: Library, timer: _Timer | None, rng: np.random.Generator
) -> float | None:
    """Check a product; returns its µs, None without a timer."""
    namespace = _Namespace(library)
    count = 1 if timer is None else _set_count(case)
    a, b = case.operands(rng)
    sets = [(library.to_device(a), library.to_device(b)) for _ in range(count)]
    _check(case, library.to_host(case.product(namespace, *sets[-1])), a, b)
    if timer is None:
        return None
    products = max(count, min(PRODUCTS, 4 * PRODUCTS * 10**9 // max(case.macs, 1)))

    def work() -> None:
        for i in range(products):
            case.product(namespace, *sets[i % count])

    work()
    return timer(work) / products


def _set_count(case: Case) -> int:
    return max(1, min(MOST_SETS, ROTATED // case.nbytes))


def _copy_time(case: Case, timer: _Timer) -> float:
    """µs of a device copy that reads and writes as many bytes as a product."""
    half = max(1, case.nbytes // 2)
    pairs = [(cyrt.Buffer(half), cyrt.Buffer(half)) for _ in range(_set_count(case))]
    for source, target in pairs:
        source.fill(1)
        target.copy_from(source)

    def work() -> None:
        for source, target in pairs:
            target.copy_from(source)

    return timer(work) / len(pairs)


def _rates(case: Case, took: float, timer: _Timer) -> str:
    return (
        f"{2e-6 * case.macs / took:.2f} TFLOP/s, {1e-3 * case.nbytes / took:,.0f} GB/s; "
        f"a copy of as many bytes takes {_copy_time(case, timer):.2f} µs"
    )


def _permutation(size: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    return np.eye(size)[rng.permutation(size)].astype(cyrt.dtype(dtype).numpy)


def _chain(
    library: Library, dtype: str, rows: int, small: bool, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Check a chain of products by one matrix; return the µs of a product, on the device with the
    host's work, and on the host alone."""
    namespace = _Namespace(library)
    side = 48 if small else CHAIN_SIDE
    x, w = (
        Case("", dtype, (rows, side), (side, side)).operands(rng)[0],
        _permutation(side, dtype, rng),
    )
    first, matrix = library.to_device(x), library.to_device(w)

    def work() -> Any:
        y = first
        for _ in range(PRODUCTS):
            y = namespace.matmul(y, matrix)
        return y

    wanted = x.astype(np.float64) @ np.linalg.matrix_power(w.astype(np.float64), PRODUCTS)
    np.testing.assert_array_equal(library.to_host(work()).astype(np.float64), wanted)
    if small:
        return None
    devices, hosts = [], []
    for _ in range(ROUNDS):
        library.synchronize()
        begin = library.record_event()
        start = time.perf_counter()
        work()
        hosts.append(1e6 * (time.perf_counter() - start) / PRODUCTS)
        devices.append(1e3 * library.elapsed(begin, library.record_event()) / PRODUCTS)
    return statistics.median(devices), statistics.median(hosts)


def _first_call(
    library: Library, dtype: str, small: bool, rng: np.random.Generator
) -> float | None:
    """Check products of shapes that were not multiplied before; return the µs of such a call until
    its result is there."""
    namespace = _Namespace(library)
    side = 48 if small else CHAIN_SIDE
    w = _permutation(side, dtype, rng)
    matrix, times = library.to_device(w), []
    for i in range(NEW_SHAPES):
        x = Case("", dtype, (side + 8 * i + 8, side), (side, side)).operands(rng)[0]
        array = library.to_device(x)
        library.synchronize()
        start = time.perf_counter()
        found = namespace.matmul(array, matrix)
        library.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
        np.testing.assert_array_equal(
            library.to_host(found).astype(np.float64), x.astype(np.float64) @ w.astype(np.float64)
        )
    return None if small else statistics.median(times[1:])  # the first one loads code


def _host_rows(session: Session, rng: np.random.Generator) -> Iterator[Row]:
    """Yield the rows in which the host's time counts."""
    for library in session.libraries:
        if library.name == "CuPy":
            continue
        for dtype in ("bfloat16", "float32"):
            for rows in (16, 256):
                took = _chain(library, dtype, rows, session.small, rng)
                yield Row(
                    "chain of 100",
                    f"{library.name}: {dtype}, ({rows}, {CHAIN_SIDE}) by "
                    f"({CHAIN_SIDE}, {CHAIN_SIDE})",
                    *(took or ()),
                )
            took_first = _first_call(library, dtype, session.small, rng)
            yield Row("first product of a shape", f"{library.name}: {dtype}", host=took_first)


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    rng = np.random.default_rng(5)
    timers = {
        library.name: None if session.small else _Timer(library)
        for library in session.libraries
        if library.name != "CuPy"
    }
    for case in _cases(session.small):
        for library in session.libraries:
            if library.name not in timers:
                continue
            took = _measure_case(case, library, timers[library.name], rng)
            note = "" if took is None else _rates(case, took, timers["cyrt"])
            yield Row(
                case.what, f"{library.name}: {case.dtype}, {case.a} by {case.b}", took, note=note
            )
    yield from _host_rows(session, rng)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
