"""Convolutions of two spatial dimensions and their gradients: multiplications per second, compared
with PyTorch, also of arrays whose channels lie last.

cyrt's are measured by cuDNN, where it is installed, and by its own kernels; PyTorch's calls are
replayed from a graph, as cyrt's are. CYRT_TF32=1 allows TF32 to both; with CYRT_CONV_AUTOTUNE=1
both choose the fastest plan by measuring.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Library, Row, Session, main

import cyrt
from cyrt import nn, settings
from cyrt.builtin import library_conv

OPERATIONS = "conv", "input_vjp", "weight_vjp"
DTYPES = "float16", "bfloat16", "float32"
ROTATED = 256 << 20  # bytes of the inputs in all sets, at least
# Relative to the largest result: a rounding to the type; float32's transforms (Winograd, FFT) and
# orders of summation are not exact (2.7e-5 was measured, and 2.9e-4 in TF32).
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


def _cyrt_function(case: Case, operation: str) -> Callable[[Inputs], Any]:
    options: dict[str, Any] = {
        "stride": case.stride,
        "padding": case.padding,
        "groups": case.groups,
    }
    shapes = case.shapes
    return {
        "conv": lambda a: nn.conv2d(a["x"], a["w"], **options),
        "input_vjp": lambda a: nn.conv_input_vjp(a["g"], a["w"], shapes["x"], **options),
        "weight_vjp": lambda a: nn.conv_weight_vjp(a["g"], a["x"], shapes["w"], **options),
    }[operation]


def _torch_function(case: Case, operation: str) -> Callable[[Inputs], Any]:
    """PyTorch's function of arrays with channels last, seen with channels first."""
    import torch

    pair, pads = [case.stride] * 2, [case.padding] * 2
    wanted = [operation == "input_vjp", operation == "weight_vjp", False]

    def function(a: Inputs) -> Any:
        torch.backends.cudnn.benchmark = settings.get("CYRT_CONV_AUTOTUNE")
        torch.backends.cudnn.allow_tf32 = settings.get("CYRT_TF32")
        x, w, g = (a[name].permute(0, 3, 1, 2) for name in "xwg")
        if operation == "conv":
            found = torch.nn.functional.conv2d(x, w, None, pair, pads, 1, case.groups)
        else:
            found = torch.ops.aten.convolution_backward(
                g, x, w, None, pair, pads, [1, 1], False, [0, 0], case.groups, wanted
            )[wanted.index(True)]
        return found.permute(0, 2, 3, 1)

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


def _measure_case(
    session: Session,
    library: Library,
    variant: str,
    function: Callable[[Inputs], Any],
    expected: list[tuple[Any, np.ndarray]],
    operation: str,
    case: Case,
    dtype: str,
    sets: list[Inputs],
) -> Row:
    found = library.to_host(function(sets[0])).astype(np.float32)
    for key, wanted in expected:
        kind = "TF32" if dtype == "float32" and settings.get("CYRT_TF32") else dtype
        limit = TOLERANCES[kind] * np.abs(wanted).max()
        np.testing.assert_allclose(found[key], wanted, rtol=0, atol=limit)
    work = lambda i: function(sets[i])  # noqa: E731
    if library.name == "PyTorch" and not session.small:
        work = _replayed(function, sets)
    took = session.device_time(library, work, len(sets))
    note = ""
    if took is not None:
        nbytes = cyrt.dtype(dtype).itemsize * sum(map(int, map(np.prod, case.shapes.values())))
        note = f"{2 * case.macs / took / 1e6:,.1f} TFLOPS; {nbytes / took / 1e3:,.0f} GB/s"
    return Row(operation, f"{variant}: {case.what}, {dtype}", took, note=note)


_FUNCTIONS = {"cyrt": _cyrt_function, "PyTorch": _torch_function}


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every shape, element type, operation and library."""
    libraries = [each for each in session.libraries if each.name in ("cyrt", "PyTorch")]
    for case in SMALL_CASES if session.small else CASES:
        numbers = _inputs(case, "float32")  # the same in every type
        expected = {each: _expected(case, each, numbers) for each in OPERATIONS}
        for dtype in DTYPES:
            host = _inputs(case, dtype)
            nbytes = sum(each.nbytes for each in host.values())
            count = 1 if session.small else max(2, -(-ROTATED // nbytes))
            sets = {
                library.name: [
                    {name: library.to_device(each) for name, each in host.items()}
                    for _ in range(count)
                ]
                for library in libraries
            }
            for operation in OPERATIONS:
                for library in libraries:
                    own = (False, None) if library.name == "cyrt" else (None,)
                    for served in own:
                        library_conv.decide(operator.index(cyrt.Device()), served)
                        function = _FUNCTIONS[library.name](case, operation)
                        variant = library.name if served is None else "cyrt, own kernels"
                        yield _measure_case(
                            session,
                            library,
                            variant,
                            function,
                            expected[operation],
                            operation,
                            case,
                            dtype,
                            sets[library.name],
                        )


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
