"""Sums at indices that repeat: ``add.at``, ``bincount`` and ``histogram`` with weights, and the
gradient of an embedding.

They are compared with PyTorch's and CuPy's.

Their additions are atomic ones, in an order that changes from call to call. Rates count the indices
and the values, and the elements that are read and written, each once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Case, Library, Row, Session, main

import cyrt

SMALL = 1 << 8  # divisor of the sizes of small cases


def _cupy_add_at(x: Any, index: Any, value: Any) -> None:
    import cupy

    cupy.add.at(x, index, value)


def _torch_index_add(x: Any, index: Any, value: Any) -> None:
    x.index_add_(0, index, value)


def _cupy_bincount(index: Any, value: Any) -> Any:
    import cupy

    return cupy.bincount(index, value)


def _sums(size: int, index: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.bincount(index, value, size)


def _add_at(
    name: str, size: int, index: np.ndarray, dtype: Any, rng: np.random.Generator
) -> Iterator[Case]:
    value = (10 * rng.random(len(index))).astype(dtype)
    touched = min(size, len(np.unique(index)))
    yield Case(
        f"add.at {size:,} {value.dtype}, {len(index):,} {name}",
        (np.zeros(size, dtype), index, value),
        _sums(size, index, value),
        index.nbytes + value.nbytes + 2 * touched * value.itemsize,
        {
            "cyrt": lambda x, index, value: cyrt.add.at(x, index, value),
            "CuPy": _cupy_add_at,
            "PyTorch": _torch_index_add,
        },
    )


def _at_indices(count: int, rng: np.random.Generator) -> Iterator[Case]:
    dtype: type[np.generic]
    for dtype in (np.float32, np.float64):
        for name, index in (
            ("equal indices", np.full(count, count // 3)),
            ("different ones", rng.permutation(count)),
            ("random ones", rng.integers(0, count, count)),
            ("random ones of 1,000", rng.integers(0, 1000, count)),
        ):
            yield from _add_at(name, count, index, dtype, rng)
    for dtype in (np.float16, np.int32):
        yield from _add_at("random ones", count, rng.integers(0, count, count), dtype, rng)
    yield from _add_at("random ones", count, rng.integers(0, count, 1000), np.float32, rng)


def _by_bin(count: int, rng: np.random.Generator) -> Iterator[Case]:
    index, value = rng.integers(0, 1000, count), rng.random(count)
    yield Case(
        f"bincount of {count:,} of 1,000, float64",
        (index, value),
        _sums(1000, index, value),
        index.nbytes + value.nbytes,
        {
            "cyrt": cyrt.bincount,
            "CuPy": _cupy_bincount,
            "PyTorch": lambda index, value: index.bincount(value),
        },
    )
    yield Case(
        f"histogram of {count:,} in 1,000 bins, float64",
        (index.astype(np.float64), value),
        _sums(1000, index, value),
        2 * value.nbytes,
        {"cyrt": lambda x, value: cyrt.histogram(x, 1000, (-0.5, 999.5), weights=value)[0]},
    )


def _torch_embedding_vjp(g: Any, x: Any, weight: Any) -> Any:
    import torch

    return torch.ops.aten.embedding_dense_backward(g, x, weight.shape[0], -1, False)


def _embedding_vjp(small: bool, rng: np.random.Generator) -> Iterator[Case]:
    rows, count, features = (500, 64, 64) if small else (32_000, 8_192, 4_096)
    for name, most in (("all rows", rows), ("100 of the rows", 100)):
        x = rng.integers(0, most, count)
        g = rng.random((count, features), np.float32)
        expected = np.zeros((rows, features))
        np.add.at(expected, x, g)
        yield Case(
            f"embedding_vjp, {count:,} x {features:,} of {name} of {rows:,}",
            (g, x, np.zeros((rows, features), np.float32)),
            expected,
            g.nbytes + expected.nbytes // 2,
            {"cyrt": cyrt.nn.embedding_vjp, "PyTorch": _torch_embedding_vjp},
        )


def _measure_case(session: Session, library: Library, case: Case) -> Row:
    # Others round to the element type at each addition: 1.3 % off after ten million in float32.
    exact = library.name == "cyrt" or case.inputs[-1].dtype.itemsize == 8
    tolerance = 1e-5 if exact and case.inputs[-1].dtype.itemsize > 2 else 5e-2
    return case.measure(session, library, tolerance)


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    count = 10_000_000 // (SMALL if session.small else 1)
    rng = np.random.default_rng(13)
    for cases in (_at_indices(count, rng), _by_bin(count, rng), _embedding_vjp(session.small, rng)):
        for case in cases:
            for library in session.libraries:
                if library.name in case.functions:
                    yield _measure_case(session, library, case)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
