"""Products of matrices and vectors and linear layers, compared with PyTorch.

Each row has the time of a device copy that reads and writes as many bytes. The host's time is
excluded: cyrt's products are recorded while the GPU is busy with a copy, PyTorch's are in a CUDA
graph. Products that have results of their own may overlap. "Behind one another" are those whose
results go to one array: each waits for the one before.

In chains the host's time counts. A product is one kernel or two, of which the second adds parts of
sums, and up to 128 kernels are launched at once: so the launches are a part of it.
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
CHECKED = 1 << 31  # multiplications; of larger products, some rows and columns are checked
CHECKED_ROWS = 64
DRAWN = 1_000_003  # random numbers of an operand, which repeat: a prime, so that rows differ
CHAIN_SIDE = 768
NEW_SHAPES = 8
EPS = 1e-5


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random small whole numbers, whose sums are exact in float32."""
    numbers = rng.integers(-2, 3, min(DRAWN, int(np.prod(shape))), dtype=np.int8)
    return np.resize(numbers.astype(cyrt.dtype(dtype).numpy), shape)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32)


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
    transposed, along : bool
        True if the first, the second operand is the transposed view of its array.
    dots : bool
        True if the products are dot products along the last axis.
    """

    what: str
    dtype: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    transposed: bool = False
    along: bool = False
    dots: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}, {self.a} by {self.b}" + (" transposed" if self.along else "")

    def operands(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return _drawn(rng, self.a, self.dtype), _drawn(rng, self.b, self.dtype)

    def factors(self, a: Any, b: Any) -> tuple[Any, Any]:
        return a.mT if self.transposed else a, b.mT if self.along else b

    def product(self, namespace: Any, a: Any, b: Any, **out: Any) -> Any:
        """The product, with the functions ``matmul`` and ``vecdot`` of a namespace; ``out``, if
        given, receives it."""
        if self.dots:
            return namespace.vecdot(a, b)
        return namespace.matmul(*self.factors(a, b), **out)

    @property
    def is_short(self) -> bool:
        """Whether the gap between two products counts."""
        return not self.dots and self.macs <= CHECKED

    def sample(self, found: Any) -> Any:
        """Return the part of a result that is compared: some rows and columns of a large one."""
        if self.macs <= CHECKED:
            return found
        rows, columns = (max(1, size // CHECKED_ROWS) for size in found.shape)
        return found[::rows, ::columns]

    def expected(self, a: np.ndarray, b: np.ndarray) -> Any:
        """The same of the right result."""
        if self.macs <= CHECKED:
            return self.product(np, _wide(a), _wide(b))
        left, right = self.factors(a, b)
        rows, columns = (max(1, n // CHECKED_ROWS) for n in (left.shape[0], right.shape[1]))
        return _wide(left[::rows]) @ _wide(right[:, ::columns])

    @property
    def macs(self) -> int:
        """Number of multiplications."""
        if self.dots or len(self.b) == 1:
            return int(np.prod(self.a))
        return int(np.prod(self.a)) * self.b[-2 if self.along else -1]

    @property
    def nbytes(self) -> int:
        """Bytes read and written."""
        a, b = (np.broadcast_to(np.empty(()), shape) for shape in (self.a, self.b))
        left, right = self.factors(a, b)
        if self.dots or right.ndim == 1:
            result = left.shape[:-1]
        else:
            outer = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
            result = (*outer, left.shape[-2], right.shape[-1])
        return cyrt.dtype(self.dtype).itemsize * (a.size + b.size + int(np.prod(result)))


@dataclass(frozen=True)
class Layer:
    """A linear layer of bfloat16: a norm in front, and a gate or a residual behind the product.

    Attributes
    ----------
    what : str
        A short description.
    rows, length, features : int
        Of the input, their length, and that of the result's rows.
    gated : bool
        True if there is a norm, and a gate for each feature; else there is a residual.
    """

    what: str
    rows: int
    length: int
    features: int
    gated: bool
    dtype: str = "bfloat16"

    def __str__(self) -> str:
        return f"{self.dtype}, ({self.rows}, {self.length}) to {self.features}"

    def operands(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Input, matrix, and the norm's weight or the residual."""
        outer = (1 + self.gated) * self.features
        last = (self.length,) if self.gated else (self.rows, self.features)
        shapes = (self.rows, self.length), (outer, self.length), last
        x, w, other = (_drawn(rng, shape, self.dtype) for shape in shapes)
        return x, w * np.float32(2.0**-6).astype(w.dtype), other

    is_short = False  # a layer has no argument that receives its result

    def product(self, namespace: Any, x: Any, w: Any, other: Any, **out: Any) -> Any:
        return namespace.layer(x, w, other, self.gated, **out)

    def sample(self, found: Any) -> Any:
        return found

    def expected(self, x: np.ndarray, w: np.ndarray, other: np.ndarray) -> Any:
        x, w, other = map(_wide, (x, w, other))
        if not self.gated:
            return other + x @ w.T
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * other
        gate, up = np.split(x @ w.T, 2, -1)
        return gate / (1 + np.exp(-gate)) * up

    @property
    def macs(self) -> int:
        return self.rows * self.length * self.features * (1 + self.gated)

    @property
    def nbytes(self) -> int:
        outer = (1 + self.gated) * self.features
        return 2 * (self.length * (outer + self.rows) + 2 * self.rows * self.features)


def _cases(small: bool) -> Iterator[Case | Layer]:
    side = 96 if small else 4096
    tall = 1 << 10 if small else 1 << 20
    for name in ("bfloat16", "float16", "float32", "float64"):
        for size in (side, side if small else 2 * side):
            yield Case("matrices", name, (size,) * 2, (size,) * 2)
    for name, most in (("bfloat16", 64), ("float32", 16)):
        for rows in (2, 8, 16, 32, 64):
            if rows <= most:
                what = f"{rows} rows by matrix"
                yield Case(what, name, (rows, side), (side, side))
                yield Case(what, name, (rows, side), (side, side), along=True)
    yield Case("4 rows by matrix", "bfloat16", (4, 2 * side), (2 * side, side // 2))
    yield Case("4 rows by matrix", "bfloat16", (4, 2 * side), (side // 2, 2 * side), along=True)
    for rows in (1, 8):
        yield Layer("layer with norm and gate", rows, side // 2, 2 * side, gated=True)
        yield Layer("layer with residual", rows, 2 * side, side // 2, gated=False)
    yield Case("matrix by vector", "float32", (1000, 100), (100,))
    yield Case("transposed matrix by vector", "float32", (1000, 100), (1000,), transposed=True)
    for name in ("float32", "bfloat16"):
        yield Case("matrix by vector", name, (side, side), (side,))
        yield Case("transposed matrix by vector", name, (side, side), (side,), transposed=True)
        yield Case("tall, transposed, by vector", name, (tall, 96), (tall,), transposed=True)
        yield Case("dot product", name, (tall * 16,), (tall * 16,), dots=True)
        yield Case("dot products of rows", name, (tall // 16, 1024), (tall // 16, 1024), dots=True)
        yield Case("batch of 1,000", name, (1000, 32, 32), (1000, 32, 32))
    for name in ("float32", "bfloat16", "float64"):
        yield Case("matrices", name, (side // 2,) * 2, (side // 2,) * 2)
    half = (side // 2,) * 2
    yield Case("matrices, first transposed", "float32", half, half, transposed=True)


class _Namespace:
    """The functions of a library that cases call."""

    def __init__(self, library: Library) -> None:
        if library.name == "PyTorch":
            import torch

            torch.backends.cuda.matmul.allow_tf32 = False
            self.matmul, self.vecdot, self.layer = torch.matmul, torch.linalg.vecdot, _torch_layer
            self.copy = torch.clone
        else:
            self.matmul, self.vecdot, self.layer = cyrt.matmul, cyrt.vecdot, _layer
            self.copy = cyrt.Array.copy


def _layer(x: Any, w: Any, other: Any, gated: bool) -> Any:
    if gated:
        return cyrt.nn.linear(x, w, activation="swiglu", rms_norm=(other, EPS))
    return cyrt.nn.linear(x, w, residual=other)


def _torch_layer(x: Any, w: Any, other: Any, gated: bool) -> Any:
    from torch.nn import functional

    if not gated:
        return other + functional.linear(x, w)
    y = functional.rms_norm(x, x.shape[-1:], other, EPS)
    gate, up = functional.linear(y, w).chunk(2, -1)
    return functional.silu(gate) * up


class _Timer:
    """Median µs of the work on the device, without the host's time."""

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.name == "cyrt":
            self.source, self.target = cyrt.Buffer(BUSY), cyrt.Buffer(BUSY)
            self.source.fill(0)

    def __call__(self, work: Callable[[], Any]) -> float:
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
    def _captured(work: Callable[[], Any]) -> Any:
        import torch

        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay


def _check(case: Case | Layer, found: np.ndarray, expected: np.ndarray) -> None:
    # Sums are exact in float32; 16-bit results are rounded, those of layers at each step.
    scale = np.abs(expected).max() if isinstance(case, Layer) else 0
    np.testing.assert_allclose(
        found.astype(np.float64),
        expected,
        rtol={"bfloat16": 1e-2, "float16": 1e-3}.get(case.dtype, 1e-6),
        atol=1e-6 + 1e-2 * scale,
    )


def _measure_case(
    case: Case | Layer,
    library: Library,
    timer: _Timer | None,
    operands: tuple[np.ndarray, ...],
    expected: np.ndarray,
) -> tuple[float, float] | None:
    """Check a product. Returns its µs, if each has a result of its own, and those if all have the
    same one, each behind the one before (0 if that is not measured); None without a timer."""
    namespace = _Namespace(library)
    first = tuple(map(library.to_device, operands))
    _check(case, library.to_host(case.sample(case.product(namespace, *first))), expected)
    if timer is None:
        return None
    count = _set_count(case)
    sets = [first, *(tuple(map(namespace.copy, first)) for _ in range(count - 1))]
    products = max(count, min(PRODUCTS, 4 * PRODUCTS * 10**9 // max(case.macs, 1)))

    def work() -> Any:
        return [case.product(namespace, *sets[i % count]) for i in range(products)]

    work()
    took = timer(work) / products
    if not case.is_short:
        return took, 0.0
    result = case.product(namespace, *first)

    def chain() -> None:
        for i in range(products):
            case.product(namespace, *sets[i % count], out=result)

    chain()
    return took, timer(chain) / products


def _set_count(case: Case | Layer) -> int:
    return max(1, min(MOST_SETS, ROTATED // case.nbytes))


def _copy_time(case: Case | Layer, timer: _Timer) -> float:
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


def _rates(case: Case | Layer, took: float, behind: float, copied: float) -> str:
    return (
        f"{2e-6 * case.macs / took:.2f} TFLOP/s, {1e-3 * case.nbytes / took:,.0f} GB/s; "
        f"a copy of as many bytes takes {copied:.2f} µs"
        + (f"; behind one another {behind:.2f} µs" if behind else "")
    )


def _permutation(size: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    return np.eye(size)[rng.permutation(size)].astype(cyrt.dtype(dtype).numpy)


def _chain(
    library: Library, dtype: str, rows: int, small: bool, rng: np.random.Generator
) -> tuple[float, float, str] | None:
    """Check a chain of products by one matrix; return the µs of a product, on the device with the
    host's work, and on the host alone, and of how many kernels it is made."""
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
    encoder = cyrt.current_encoder()
    before = encoder.stats()["operations"]
    for _ in range(ROUNDS):
        library.synchronize()
        begin = library.record_event()
        start = time.perf_counter()
        work()
        hosts.append(1e6 * (time.perf_counter() - start) / PRODUCTS)
        devices.append(1e3 * library.elapsed(begin, library.record_event()) / PRODUCTS)
    kernels = (encoder.stats()["operations"] - before) / (ROUNDS * PRODUCTS)
    note = f"{kernels:.0f} kernels a product" if library.name == "cyrt" else ""
    return statistics.median(devices), statistics.median(hosts), note


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
                what = f"{dtype}, ({rows}, {CHAIN_SIDE}) by ({CHAIN_SIDE}, {CHAIN_SIDE})"
                took = _chain(library, dtype, rows, session.small, rng)
                device, host, note = took or (None, None, "")
                yield Row("chain of 100", f"{library.name}: {what}", device, host, note)
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
    yield from _host_rows(session, rng)
    for case in _cases(session.small):
        operands = case.operands(rng)
        expected = case.expected(*operands)
        timer = timers["cyrt"]
        copied = 0.0 if timer is None else _copy_time(case, timer)
        for library in session.libraries:
            if library.name not in timers:
                continue
            times = _measure_case(case, library, timers[library.name], operands, expected)
            note = "" if times is None else _rates(case, *times, copied)
            device = None if times is None else times[0]
            yield Row(case.what, f"{library.name}: {case}", device, note=note)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
