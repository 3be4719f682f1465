"""Other libraries' arrays as arguments of kernels, views of them, and the ways back: host µs a
call, beside a loop of the driver's cuLaunchKernel in C and the libraries' own launches, in one run.

Each time is the median of loops of 200 calls; before and after each the device is waited for. The
note has the least, the median of the processor's time of the calling thread, which has no waits,
and the share of replayed operations. Inside ``batch()``, 200 calls are two graphs, and 100 are one.
Libraries that are not installed, or that have no GPU, have no rows.
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
from cyrt.bench.floors import Floor
from cyrt.bench.kernels import Kernels

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
else:  # Triton looks names up in the module

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def triton_add_one(x, y, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
        """y = x + 1."""
        i = tl.program_id(0) * B + tl.arange(0, B)
        mask = i < n
        tl.store(y + i, tl.load(x + i, mask=mask) + 1.0, mask=mask)


CALLS, FEW_CALLS, LOOPS = 200, 100, 21
WARM = 4  # loops until batches are replayed
GRID, BLOCK, N = 4, 256, 1024
SOURCE = """
extern "C" __global__ void add_one(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
"""

Call = Callable[[], Any]


def _wait(libraries: list[Library]) -> None:
    for library in libraries:
        library.synchronize()


def _time(session: Session, loop: Callable[[int], Any], calls: int = CALLS) -> dict[str, Any]:
    """The fields of a row: median and least µs a call of a function that makes so many."""
    if session.small:
        loop(2)
        return {}
    encoder = cyrt.current_encoder()
    times, processor = [], []
    for i in range(LOOPS + 1):
        _wait(session.libraries)
        if i == WARM:
            before = encoder.stats()
        used, begin = time.thread_time(), time.perf_counter()
        loop(calls)
        times.append(1e6 * (time.perf_counter() - begin) / calls)
        processor.append(1e6 * (time.thread_time() - used) / calls)
        _wait(session.libraries)
    found = _summary(times[1:])
    found["note"] += f", processor {statistics.median(processor[1:]):.2f}"
    after = encoder.stats()
    if operations := after["operations"] - before["operations"]:
        replayed = after["replayed"] - before["replayed"]
        found["note"] += f", {100 * replayed / operations:.0f} % replayed"
    return found


def _summary(times: list[float]) -> dict[str, Any]:
    return {"host": statistics.median(times), "note": f"least {min(times):.2f}"}


def _repeat(call: Call) -> Callable[[int], None]:
    def loop(calls: int) -> None:
        for _ in range(calls):
            call()

    return loop


def _launch(kernel: Any, geometry: tuple[int, ...], x: Any, y: Any) -> Callable[[int], None]:
    """A loop of launches, without calls of Python functions, which no user needs."""

    def loop(calls: int) -> None:
        n = N
        for _ in range(calls):
            kernel[geometry](x, y, n)

    return loop


def _batch(loop: Callable[[int], None]) -> Callable[[int], None]:
    def batched(calls: int) -> None:
        with cyrt.batch():
            loop(calls)

    return batched


def _floors(session: Session) -> Iterator[Row]:
    """The loop in C, on a stream of cyrt's and on that on which the libraries work by default."""
    for what, stream in (("", cyrt.Stream()), (", legacy stream", cyrt.Stream.wrap(0))):
        x, b = cyrt.Buffer(4 * N), cyrt.Buffer(4 * N)
        x.copy_from(np.zeros(N, np.float32))
        b.copy_from(np.ones(N, np.float32))
        cyrt.synchronize()
        with stream:
            chain = Floor(Kernels().add, GRID, BLOCK, x, b, N)
        loops = 1 if session.small else LOOPS
        times = [1e6 * chain.launch(CALLS)[0] / CALLS for _ in range(loops)]
        found = np.empty(N, np.float32)
        x.copy_to(found)
        np.testing.assert_array_equal(found, np.full(N, CALLS * loops, np.float32))
        summary = {} if session.small else _summary(times)
        yield Row("floor", f"cuLaunchKernel in C{what}", **summary)


def _launches(session: Session, library: Library) -> Iterator[Row]:
    """A kernel of cyrt on the library's arrays."""
    kernel = cyrt.Kernel(SOURCE, "add_one")
    values = np.arange(N, dtype=np.float32)
    for how, calls in (
        ("outside of batch()", CALLS),
        ("inside batch()", CALLS),
        ("inside batch(), one graph", FEW_CALLS),
    ):
        x, y = library.to_device(values), library.to_device(np.zeros_like(values))
        loop = _launch(kernel, (GRID, BLOCK), x, y)
        took = _time(session, loop if how.startswith("outside") else _batch(loop), calls)
        np.testing.assert_array_equal(library.to_host(y), values + 1)
        yield Row(f"kernel, {library.name}'s arrays", how, **took)


def _conversions(session: Session, library: Library) -> Iterator[Row]:
    """Views of the library's array, and its views of cyrt's."""
    values = np.arange(N, dtype=np.float32)
    theirs, own = library.to_device(values), cyrt.asarray(values)
    module = __import__({"PyTorch": "torch", "CuPy": "cupy"}[library.name])
    name = module.__name__
    calls: dict[str, Call] = {
        f"cyrt.asarray({name} array)": lambda: cyrt.asarray(theirs),
        f"{name}.from_dlpack(cyrt array)": lambda: module.from_dlpack(own),
        f"{name}.from_dlpack(its own)": lambda: module.from_dlpack(theirs),
    }
    for what, call in calls.items():
        found = call()
        host = found.numpy() if isinstance(found, cyrt.Array) else library.to_host(found)
        np.testing.assert_array_equal(host, values)
        del found
        yield Row("conversion", what, **_time(session, _repeat(call)))


def _torch_rows(session: Session) -> Iterator[Row]:
    """PyTorch's own launch, a cyrt kernel between two of its operations, and Triton's launch."""
    import torch

    kernel = cyrt.Kernel(SOURCE, "add_one")
    x = torch.arange(N, dtype=torch.float32, device="cuda")
    y = torch.zeros(N, device="cuda")
    torch.add(x, 1.0, out=y)
    assert torch.equal(y, x + 1)

    def add(calls: int) -> None:
        for _ in range(calls):
            torch.add(x, 1.0, out=y)

    took = _time(session, add)
    yield Row("PyTorch's own", "torch.add(x, 1.0, out=y)", **took)

    def alone() -> Any:
        return (x * 2.0) + 0.5

    def mixed() -> Any:
        v = x * 2.0
        kernel[GRID, BLOCK](v, y, N)
        return y + 0.5

    for what, call, expected in (
        ("two torch operations", alone, x * 2 + 0.5),
        ("a cyrt kernel between them", mixed, x * 2 + 1.5),
    ):
        assert torch.equal(call(), expected), what
        yield Row("mixed", what, **_time(session, _repeat(call)))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        assert torch.equal(mixed(), x * 2 + 1.5)
        yield Row("mixed", "the same on a side stream", **_time(session, _repeat(mixed)))
    side.synchronize()


def _triton_rows(session: Session) -> Iterator[Row]:
    """Triton's own launch, and launches of the same function as a kernel of cyrt."""
    import torch

    x = torch.arange(N, dtype=torch.float32, device="cuda")
    y = torch.zeros(N, device="cuda")

    def launch(calls: int) -> None:
        for _ in range(calls):
            triton_add_one[(GRID,)](x, y, N, B=BLOCK)

    launch(1)
    assert torch.equal(y, x + 1)
    yield Row("Triton's own", "a kernel on tensors", **_time(session, launch))
    kernel = cyrt.Kernel.from_triton(
        triton_add_one, signature="*kfp32, *fp32, i32", constants={"B": BLOCK}
    )
    own, out = cyrt.arange(N, dtype="float32"), cyrt.zeros(N)
    for what, source, target, calls in (
        ("on cyrt's arrays", own, out, CALLS),
        ("on tensors, outside of batch()", x, y.zero_(), CALLS),
        ("on tensors, inside batch()", x, y.zero_(), CALLS),
        ("on tensors, inside batch(), one graph", x, y.zero_(), FEW_CALLS),
    ):
        loop = _launch(kernel, (GRID,), source, target)
        took = _time(session, _batch(loop) if "inside" in what else loop, calls)
        host = target.numpy() if isinstance(target, cyrt.Array) else target.cpu().numpy()
        np.testing.assert_array_equal(host, np.arange(1, N + 1, dtype=np.float32))
        yield Row("Kernel.from_triton", what, **took)


def _cupy_rows(session: Session) -> Iterator[Row]:
    import cupy

    raw = cupy.RawKernel(SOURCE, "add_one")
    x = cupy.arange(N, dtype=cupy.float32)
    y = cupy.zeros_like(x)

    def launch(calls: int) -> None:
        for _ in range(calls):
            raw((GRID,), (BLOCK,), (x, y, np.int32(N)))

    launch(1)
    cupy.testing.assert_array_equal(y, x + 1)
    yield Row("CuPy's own", "RawKernel", **_time(session, launch))


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every library and way."""
    yield from _floors(session)
    for library in session.libraries:
        yield from _launches(session, library)
        if library.name != "cyrt":
            yield from _conversions(session, library)
    names = {library.name for library in session.libraries}
    if "PyTorch" in names:
        yield from _torch_rows(session)
        if triton is not None:
            yield from _triton_rows(session)
    if "CuPy" in names:
        yield from _cupy_rows(session)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
