"""Normalisation, softmax, cross entropy and their gradients, and those of swiglu: bytes read and
written per second, compared with a device copy and PyTorch.

Each input counts once, and each result once. The last rows have the time of one operation on a
single row, in a chain where each needs the result of the one before.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import ROUNDS, Library, Row, Session, main

import cyrt
from cyrt import nn

SHAPES = (8192, 1024), (8192, 4096), (8192, 8192), (4096, 16384)
SMALL_SHAPES = (96, 128), (3, 16500)
DTYPES = "bfloat16", "float32"
ROTATED = 256 << 20  # bytes of x in all sets of inputs, at least
CHAIN = 100  # operations of the chain, fewer than a batch holds
CHAIN_ROW = 4096
HEAD_START = 1024, 16384  # the shape of as many operations before the chain
SLICE = 256  # rows of which references are computed at once
COLUMNS = 256  # columns whose sums over rows are compared
EPS = 1e-5
TOLERANCES = {"bfloat16": 2e-2, "float32": 1e-5}

Inputs = dict[str, Any]
# The rows that are compared, with their results; and the sums over all rows of some columns.
Expectation = tuple[list[tuple[slice, np.ndarray]], list[np.ndarray]]
# Rows of numbers that each operation reads and writes, in numbers of x's.
MOVED = {
    "layer_norm": 2,
    "layer_norm_vjp": 3,
    "rms_norm": 2,
    "rms_norm_vjp": 3,
    "softmax": 2,
    "softmax_vjp": 3,
    "cross_entropy": 1,
    "cross_entropy_vjp": 2,
    "swiglu_vjp": 5,
}


def _cyrt_function(name: str) -> Callable[[Inputs], Any]:
    return {
        "layer_norm": lambda a: nn.layer_norm(a["x"], a["w"], a["b"], EPS),
        "layer_norm_vjp": lambda a: nn.layer_norm_vjp(a["g"], a["x"], a["w"], a["b"], EPS),
        "rms_norm": lambda a: nn.rms_norm(a["x"], a["w"], EPS),
        "rms_norm_vjp": lambda a: nn.rms_norm_vjp(a["g"], a["x"], a["w"], EPS),
        "softmax": lambda a: nn.softmax(a["x"]),
        "softmax_vjp": lambda a: nn.softmax_vjp(a["g"], a["y"]),
        "cross_entropy": lambda a: nn.cross_entropy(a["x"], a["t"]),
        "cross_entropy_vjp": lambda a: nn.cross_entropy_vjp(a["h"], a["x"], a["t"]),
        "swiglu_vjp": lambda a: nn.swiglu_vjp(a["g"], a["x"], a["y"])[0],
    }[name]


def _torch_function(name: str) -> Callable[[Inputs], Any] | None:
    """PyTorch's own kernels; None where it has none for the gradient alone."""
    import torch
    from torch.nn import functional

    def layer_norm_vjp(a: Inputs) -> Any:
        if "mean" not in a:  # saved by the forward pass, which is not timed
            _, a["mean"], a["scale"] = torch.native_layer_norm(
                a["x"], a["w"].shape, a["w"], a["b"], EPS
            )
        return torch.ops.aten.native_layer_norm_backward(
            a["g"], a["x"], a["w"].shape, a["mean"], a["scale"], a["w"], a["b"], [True, True, True]
        )

    return {
        "layer_norm": lambda a: functional.layer_norm(a["x"], a["w"].shape, a["w"], a["b"], EPS),
        "layer_norm_vjp": layer_norm_vjp,
        "rms_norm": lambda a: functional.rms_norm(a["x"], a["w"].shape, a["w"], EPS),
        "softmax": lambda a: torch.softmax(a["x"], -1),
        "softmax_vjp": lambda a: torch.ops.aten._softmax_backward_data(
            a["g"], a["y"], -1, a["y"].dtype
        ),
        "cross_entropy": lambda a: functional.cross_entropy(a["x"], a["t"], reduction="none"),
    }.get(name)


def _expected(name: str, a: Inputs, rows: slice) -> Any:
    """The results of some rows."""
    x, g, h, y = (a[key][rows].astype(np.float64) for key in "xghy")
    if name == "swiglu_vjp":
        sigmoid = 1 / (1 + np.exp(-x))
        return sigmoid * (1 + x * (1 - sigmoid)) * y * g
    if name == "softmax_vjp":
        return y * (g - (y * g).sum(1, keepdims=True))
    if name.endswith("norm") or name.endswith("norm_vjp"):
        x = x - x.mean(1, keepdims=True) if name.startswith("layer") else x
        scale = 1 / np.sqrt(np.square(x).mean(1, keepdims=True) + EPS)
        x, w = x * scale, a["w"].astype(np.float64)
        if name.endswith("norm"):
            return x * w + (a["b"].astype(np.float64) if name.startswith("layer") else 0)
        slope = g * w
        level = slope.mean(1, keepdims=True) if name.startswith("layer") else 0
        return scale * (slope - level - x * (slope * x).mean(1, keepdims=True))
    x = x - x.max(1, keepdims=True)
    powers = np.exp(x)
    total = powers.sum(1, keepdims=True)
    if name == "softmax":
        return powers / total
    targets = a["t"][rows, None]
    if name == "cross_entropy":
        return (np.log(total) - np.take_along_axis(x, targets, 1))[:, 0]
    found = powers / total
    np.put_along_axis(found, targets, np.take_along_axis(found, targets, 1) - 1, 1)
    return h[:, None] * found


def _expected_sums(name: str, a: Inputs) -> list[np.ndarray]:
    """The sums over all rows, of the first columns."""
    if not name.endswith("norm_vjp"):
        return []
    mean, scale = 0.0, np.empty((len(a["x"]), 1))
    for at in range(0, len(scale), SLICE):
        x = a["x"][at : at + SLICE].astype(np.float32)
        scale[at : at + SLICE] = np.square(x).mean(1, keepdims=True, dtype=np.float64)
    if name.startswith("layer"):
        mean = a["x"].mean(1, keepdims=True, dtype=np.float64)
        scale -= np.square(mean)
    x, g = (a[key][:, :COLUMNS].astype(np.float64) for key in "xg")
    sums = [(g * (x - mean) / np.sqrt(scale + EPS)).sum(0)]
    return [*sums, g.sum(0)] if name.startswith("layer") else sums


def _expectation(name: str, host: Inputs) -> Expectation:
    """Return the reference results with which those of every library are compared."""
    count = len(host["x"])
    slices = [slice(at, min(at + SLICE, count)) for at in range(0, count, SLICE)]
    compared = [slices[i] for i in sorted({0, min(1, len(slices) - 1), len(slices) - 1})]
    return [(rows, _expected(name, host, rows)) for rows in compared], _expected_sums(name, host)


def _check(found: tuple[np.ndarray, ...], expectation: Expectation, tolerance: float) -> None:
    """Compare the first rows and the last ones, and the sums over all rows."""
    compared, sums = expectation
    pairs = [(found[0][rows], wanted) for rows, wanted in compared]
    columns = [each[:COLUMNS] for each in found[1:]]
    for result, wanted in (*pairs, *zip(columns, sums, strict=True)):
        np.testing.assert_allclose(
            result, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max()
        )


def _inputs(shape: tuple[int, int], dtype: str) -> Inputs:
    rng = np.random.default_rng(3)
    to = cyrt.dtype(dtype).numpy
    host: Inputs = {
        name: rng.standard_normal(size, dtype=np.float32).astype(to)
        for name, size in (("x", shape), ("g", shape), ("w", shape[1:]), ("b", shape[1:]))
    }
    host["h"] = rng.standard_normal(shape[:1], dtype=np.float32).astype(to)
    host["t"] = rng.integers(0, shape[1], shape[:1])
    powers = np.exp(host["x"].astype(np.float32))
    host["y"] = (powers / powers.sum(1, keepdims=True)).astype(to)  # the softmax of x
    return host


def _measure_case(
    session: Session,
    library: Library,
    name: str,
    expectation: Expectation,
    dtype: str,
    sets: list[Inputs],
) -> Iterator[Row]:
    function = _cyrt_function(name) if library.name == "cyrt" else _torch_function(name)
    if function is None:
        return
    found = function(sets[0])
    found = found if isinstance(found, tuple) else (found,)
    numbers = tuple(library.to_host(each).astype(np.float64) for each in found)
    _check(numbers, expectation, TOLERANCES[dtype])
    took = session.device_time(library, lambda i: function(sets[i]), len(sets))
    rows, n = sets[0]["x"].shape
    nbytes = rows * n * cyrt.dtype(dtype).itemsize
    yield Row(
        name,
        f"{library.name}: {rows} × {n} {dtype}",
        took,
        note=session.copy_note(took, MOVED[name] * nbytes),
    )


def _chain(session: Session, library: Library, dtype: str) -> Row:
    host = _inputs((1, CHAIN_ROW), dtype)
    inputs = {key: library.to_device(host[key]) for key in "xwb"}
    function = (_cyrt_function if library.name == "cyrt" else _torch_function)("layer_norm")
    assert function is not None
    found = library.to_host(function(inputs)).astype(np.float64)
    _check((found,), _expectation("layer_norm", host), TOLERANCES[dtype])

    wide = _inputs(HEAD_START, dtype)
    busy = {key: library.to_device(wide[key]) for key in "xwb"}
    times = []
    for _ in range(0 if session.small else ROUNDS):
        for _ in range(CHAIN):  # the device is busy while the host records the chain
            function(busy)
        begin = library.record_event()
        for _ in range(CHAIN):
            inputs["x"] = function(inputs)
        times.append(1e3 * library.elapsed(begin, library.record_event()) / CHAIN)
    took = statistics.median(times) if times else None
    return Row("layer_norm in a chain", f"{library.name}: 1 × {CHAIN_ROW} {dtype}", took)


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every shape, element type, operation and library."""
    libraries = [each for each in session.libraries if each.name in ("cyrt", "PyTorch")]
    for shape in SMALL_SHAPES if session.small else SHAPES:
        for dtype in DTYPES:
            host = _inputs(shape, dtype)
            count = 1 if session.small else max(2, -(-ROTATED // host["x"].nbytes))
            sets = {
                library.name: [
                    {key: library.to_device(each) for key, each in host.items()}
                    for _ in range(count)
                ]
                for library in libraries
            }
            for name in MOVED:
                expectation = _expectation(name, host)
                for library in libraries:
                    yield from _measure_case(
                        session, library, name, expectation, dtype, sets[library.name]
                    )
    for dtype in DTYPES:
        for library in libraries:
            yield _chain(session, library, dtype)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
