"""Convolutions of two spatial dimensions and their gradients, compared with PyTorch's of arrays
whose channels lie last: float16, bfloat16, float32, and float32 that may be rounded to TF32.

cyrt's are computed by cuDNN where it is installed, unless its own kernels are held to be faster,
and by its own kernels. The host's time is that of a repeated call, all launches included, once the
same rounds of calls need no new plans. The device's time excludes the host's: calls are recorded,
or PyTorch's replayed from a graph, while the device is busy. "deterministic" is PyTorch with only
those of cuDNN's plans that cyrt uses, too, where both are slower than what PyTorch uses by default.
"first call" is the host's time for a shape that is new, beside what cuDNN itself took of it to make
and build its plan. With CYRT_CONV_AUTOTUNE=1 cyrt and PyTorch choose the fastest plan by measuring;
else both take the first of cuDNN's heuristics, cyrt the first whose results do not differ from run
to run.
"""

from __future__ import annotations

import operator
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from common import ROUNDS, Library, Row, Session, main

import cyrt
from cyrt import nn, settings
from cyrt.builtin import library_conv
from cyrt.graph import template
from cyrt.libs import cudnn

OPERATIONS = "conv", "input_vjp", "weight_vjp"
KINDS = "float16", "bfloat16", "float32", "TF32"
NEW_KINDS = "float16", "float32"  # the types of first calls
ROTATED = 256 << 20  # bytes of the inputs in all sets, at least
LEAST_CALLS = 20  # a round's calls of a library
HOST_CALLS = 50  # few enough that nothing waits for the device
WARM_CALLS = 50  # before them: a core that has waited is slow at first
SETTLED, MOST_ROUNDS = 3, 30  # rounds without a new plan, and most rounds before that
SLOWER = 1.02  # from which on PyTorch is measured with deterministic plans, too
FIRST_CALLS = 3
SLOW_CALL = 1e5  # µs, from which on a first call is not repeated: cuDNN compiles code
BUSY = 64 << 20  # elements that are added before a round: 768 MB moved
# Relative to the largest result. The inputs are small whole numbers, which TF32 and 16 bits hold
# and whose sums float32 holds: what differs is a rounding to the type, and float32's transforms
# (Winograd, FFT), which are not exact (2.7e-5 was measured, and 2.9e-4 in TF32).
TOLERANCES = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-4, "TF32": 1e-3}

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A convolution: `batch` images of `size` by `size` places."""

    batch: int
    channels: int
    size: int
    filters: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def outputs(self) -> int:
        """The size of the result's images."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the input, the weight and the result."""
        return {
            "x": (self.batch, self.size, self.size, self.channels),
            "w": (self.filters, self.kernel, self.kernel, self.channels // self.groups),
            "g": (self.batch, self.outputs, self.outputs, self.filters),
        }

    @property
    def macs(self) -> int:
        """Number of multiplications."""
        return self.batch * self.outputs**2 * int(np.prod(self.shapes["w"]))

    @property
    def what(self) -> str:
        groups = f", {self.groups} groups" if self.groups > 1 else ""
        stride = f" stride {self.stride}" if self.stride > 1 else ""
        return (
            f"{self.batch} × {self.size}² × {self.channels}, {self.filters} of "
            f"{self.kernel}²{stride}{groups}"
        )


CASES = (
    Case(32, 64, 56, 64, 3),
    Case(32, 256, 14, 256, 3),
    Case(32, 3, 224, 64, 7, stride=2),
    Case(32, 128, 28, 128, 3, groups=128),
)
SMALL_CASES = (
    Case(2, 16, 9, 24, 3),
    Case(1, 3, 20, 8, 7, stride=2),
    Case(2, 16, 7, 16, 3, groups=16),
)


def _inputs(case: Case, dtype: str) -> Inputs:
    """Random small whole numbers."""
    rng = np.random.default_rng(3)
    to = cyrt.dtype(dtype).numpy
    return {name: rng.integers(-2, 3, shape).astype(to) for name, shape in case.shapes.items()}


def _expected(case: Case, operation: str, host: Inputs) -> list[tuple[Any, np.ndarray]]:
    """The result for the first and the last image, or the gradient of the first and last filter."""
    x, w, g = (host[name].astype(np.float32) for name in "xwg")
    chosen = range(case.batch) if operation == "weight_vjp" else sorted({0, case.batch - 1})
    pad, reach = case.padding, case.stride * (case.outputs - 1) + 1
    filters = sorted({0, case.filters - 1})
    weight = np.zeros((len(filters), *w.shape[1:]), np.float32)
    found: list[tuple[Any, np.ndarray]] = []
    for i in chosen:
        wide = np.pad(x[i], ((pad, pad), (pad, pad), (0, 0)))
        result, back = np.zeros(g.shape[1:], np.float32), np.zeros_like(wide)
        for row, column in np.ndindex(case.kernel, case.kernel):
            places = np.s_[row : row + reach : case.stride, column : column + reach : case.stride]
            window, factor = wide[places], w[:, row, column]
            if operation == "conv":
                result += window * factor[:, 0] if case.groups > 1 else window @ factor.T
            elif operation == "input_vjp":
                back[places] += g[i] * factor[:, 0] if case.groups > 1 else g[i] @ factor
            elif case.groups > 1:
                weight[:, row, column, 0] += (window * g[i])[..., filters].sum((0, 1))
            else:
                part = g[i][..., filters]
                weight[:, row, column] += np.tensordot(part, window, ((0, 1), (0, 1)))
        inner = slice(pad, pad + case.size)
        found.append((i, result if operation == "conv" else back[inner, inner]))
    return found if operation != "weight_vjp" else [(filters, weight)]


def _set_kind(kind: str, served: bool | None) -> None:
    """Allow TF32 or not, and the library to cyrt."""
    os.environ["CYRT_TF32"] = str(int(kind == "TF32"))
    settings.get.cache_clear()
    library_conv.decide(operator.index(cyrt.Device()), served)


@contextmanager
def _settings_restored() -> Iterator[None]:
    try:
        with mock.patch.dict(os.environ):
            yield
    finally:
        settings.get.cache_clear()
        library_conv.decide(operator.index(cyrt.Device()))


def _to_device(library: Library, host: np.ndarray) -> Any:
    """An array in the library's terms: PyTorch names the channels first, wherever they lie."""
    x = library.to_device(host)
    return x.permute(0, 3, 1, 2) if library.name == "PyTorch" else x


def _to_host(library: Library, x: Any) -> np.ndarray:
    return library.to_host(x.permute(0, 2, 3, 1) if library.name == "PyTorch" else x)


def _cyrt_function(case: Case, operation: str) -> Callable[[Inputs], Any]:
    stride, padding, groups, shapes = case.stride, case.padding, case.groups, case.shapes
    if operation == "conv":
        return lambda a: nn.conv2d(a["x"], a["w"], stride, padding, groups=groups)
    if operation == "input_vjp":
        return lambda a: nn.conv_input_vjp(
            a["g"], shapes["x"], a["w"], stride, padding, groups=groups
        )
    return lambda a: nn.conv_weight_vjp(a["g"], a["x"], shapes["w"], stride, padding, groups=groups)


def _torch_function(
    case: Case, operation: str, deterministic: bool = False
) -> Callable[[Inputs], Any]:
    import torch

    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = settings.get("CYRT_CONV_AUTOTUNE")
    torch.backends.cudnn.allow_tf32 = settings.get("CYRT_TF32")
    pair, pads = [case.stride] * 2, [case.padding] * 2
    wanted = [operation == "input_vjp", operation == "weight_vjp", False]

    def function(a: Inputs) -> Any:
        if operation == "conv":
            return torch.nn.functional.conv2d(a["x"], a["w"], None, pair, pads, 1, case.groups)
        return torch.ops.aten.convolution_backward(
            a["g"], a["x"], a["w"], None, pair, pads, [1, 1], False, [0, 0], case.groups, wanted
        )[wanted.index(True)]

    return function


def _replayed(function: Callable[[Inputs], Any], sets: list[Inputs]) -> Callable[[int], Any]:
    """PyTorch's calls on all sets in one graph, which the first call replays."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function(sets[0])
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for each in sets:
            function(each)
    return lambda i: graph.replay() if i == 0 else None


def _settle(library: Library, work: Callable[[], Any]) -> None:
    """Repeat a round of calls until it needs no new plan and patches none."""
    counts = "misses", "patched", "instantiations"
    rounds = 0
    for _ in range(MOST_ROUNDS if library.name == "cyrt" else 1):
        before = cyrt.current_encoder().stats()
        work()
        library.synchronize()
        after = cyrt.current_encoder().stats()
        rounds = rounds + 1 if all(after[each] == before[each] for each in counts) else 0
        if rounds == SETTLED:
            break


def _host_time(library: Library, function: Callable[[Inputs], Any], inputs: Inputs) -> float:
    """Median µs of a repeated call on the host, which does not wait for the device."""

    def clocked(calls: int) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            function(inputs)
        if library.name == "cyrt":
            cyrt.commit()
        return 1e6 * (time.perf_counter() - begin) / calls

    def work() -> float:
        clocked(WARM_CALLS)
        return clocked(HOST_CALLS)

    _settle(library, work)
    times = []
    for _ in range(ROUNDS // 2):
        library.synchronize()
        times.append(work())
    library.synchronize()
    return statistics.median(times)


def _measure_first_call(function: Callable[[Inputs], Any], inputs: Inputs) -> tuple[float, str]:
    """Median µs of a call by the library whose shape is new, and the part that is the library's:
    the time in which it makes and builds its plan."""
    building = 0.0

    class Clocked(cudnn.Convolution):
        def __init__(self, *args: Any, **options: Any) -> None:
            nonlocal building
            begin = time.perf_counter()
            try:
                super().__init__(*args, **options)
            finally:
                building += time.perf_counter() - begin

        def build(self, index: int) -> str:
            nonlocal building
            begin = time.perf_counter()
            try:
                return super().build(index)
            finally:
                building += time.perf_counter() - begin

    times = []
    with mock.patch.object(cudnn, "Convolution", Clocked):
        for _ in range(FIRST_CALLS):
            template.forget()
            cyrt.synchronize()
            building, begin = 0.0, time.perf_counter()
            function(inputs)
            times.append((1e6 * (time.perf_counter() - begin), 1e6 * building))
            if times[-1][0] > SLOW_CALL:
                break
    took, built = sorted(times)[len(times) // 2]
    note = f"{took / built:.2f} of the {built:,.0f} for cuDNN's plan" if built else "not by cuDNN"
    return took, note


def _measure_case(
    session: Session,
    library: Library,
    variant: str,
    function: Callable[[Inputs], Any],
    *,
    expected: list[tuple[Any, np.ndarray]],
    operation: str,
    case: Case,
    kind: str,
    sets: dict[str, list[Inputs]],
    large: dict[str, Any],
) -> Row:
    inputs, x = sets[library.name], large[library.name]
    found = _to_host(library, function(inputs[0])).astype(np.float32)
    for key, wanted in expected:
        limit = TOLERANCES[kind] * np.abs(wanted).max()
        np.testing.assert_allclose(found[key], wanted, rtol=0, atol=limit)
    what = f"{variant}: {case.what}, {kind}"
    if session.small:
        return Row(operation, what)
    by_library = variant != "cyrt, own kernels"
    host = _host_time(library, function, inputs[0]) if by_library else None
    calls = max(LEAST_CALLS, len(inputs)) if by_library else len(inputs)
    rotated = [inputs[i % len(inputs)] for i in range(calls)]
    work: Callable[[int], Any] = lambda i: function(rotated[i])  # noqa: E731
    if library.name == "PyTorch":
        work = _replayed(function, rotated)

    def round_of_calls() -> None:
        x + x
        library.record_event()
        for i in range(calls):
            work(i)
        library.record_event()

    _settle(library, round_of_calls)
    took = session.device_time(library, work, calls, lambda: x + x)
    assert took is not None
    nbytes = _itemsize(kind) * sum(map(int, map(np.prod, case.shapes.values())))
    note = f"{2 * case.macs / took / 1e6:,.1f} TFLOPS; {nbytes / took / 1e3:,.0f} GB/s"
    return Row(operation, what, took, host, note)


def _dtype(kind: str) -> str:
    return "float32" if kind == "TF32" else kind


def _itemsize(kind: str) -> int:
    return int(cyrt.dtype(_dtype(kind)).itemsize)


_FUNCTIONS = {"cyrt": _cyrt_function, "PyTorch": _torch_function}


def _variants(library: Library, kind: str) -> list[tuple[str, bool | None]]:
    """The names of a library's variants, and whether cyrt may use cuDNN."""
    variants: list[tuple[str, bool | None]] = []
    if kind != "TF32" or library.name != "cyrt" or cudnn.find()[0] is not None:
        variants.append((library.name, None))
    if library.name == "cyrt" and kind != "TF32":
        variants.append(("cyrt, own kernels", False))
    return variants


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every shape, kind of number, operation and library."""
    with _settings_restored():
        yield from _measure(session)


def _measure(session: Session) -> Iterator[Row]:
    libraries = [each for each in session.libraries if each.name in ("cyrt", "PyTorch")]
    filled = np.zeros(1 if session.small else BUSY, np.float32)
    large = {library.name: library.to_device(filled) for library in libraries}
    for case in SMALL_CASES if session.small else CASES:
        numbers = _inputs(case, "float32")  # the same in every type
        expected = {each: _expected(case, each, numbers) for each in OPERATIONS}
        for kind in KINDS:
            host = _inputs(case, _dtype(kind))
            nbytes = sum(each.nbytes for each in host.values())
            count = 1 if session.small else max(2, -(-ROTATED // nbytes))
            sets = {
                library.name: [
                    {name: _to_device(library, each) for name, each in host.items()}
                    for _ in range(count)
                ]
                for library in libraries
            }
            for operation in OPERATIONS:
                if kind in NEW_KINDS and not session.small and cudnn.find()[0] is not None:
                    _set_kind(kind, None)
                    took, note = _measure_first_call(
                        _cyrt_function(case, operation), sets["cyrt"][0]
                    )
                    what = f"cyrt, first call: {case.what}, {kind}"
                    yield Row(operation, what, host=took, note=note)
                measured = partial(
                    _measure_case,
                    session,
                    expected=expected[operation],
                    operation=operation,
                    case=case,
                    kind=kind,
                    sets=sets,
                    large=large,
                )
                times = {}
                for library in libraries:
                    for variant, served in _variants(library, kind):
                        _set_kind(kind, served)
                        function = _FUNCTIONS[library.name](case, operation)
                        row = measured(library, variant, function)
                        times[variant] = row.device or 0.0
                        yield row
                if times.get("cyrt", 0.0) > SLOWER * times.get("PyTorch", float("inf")):
                    function = _torch_function(case, operation, deterministic=True)
                    yield measured(libraries[-1], "PyTorch, deterministic", function)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
