"""Sorting, the k greatest, scans, selection with a mask and searching, beside PyTorch and CuPy.

Times are device times; selection waits for the number of elements, so its time is a host time.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Library, Row, Session, main

import cyrt

SETS = 4  # number of input sets
ELEMENTS = 1 << 24
NBYTES = 256 << 20
SMALL = 1 << 14  # elements of each small case


_Inputs = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Case:
    """A call of a function: its inputs, its expected result, and True if the call waits."""

    function: str
    what: str
    inputs: Callable[[np.random.Generator], _Inputs]
    expected: Callable[..., np.ndarray]
    options: dict[str, Any]
    tolerance: float = 0
    waits: bool = False


def _functions(library: str) -> dict[str, Callable[..., Any]]:
    if library == "PyTorch":
        import torch

        return {
            "sort": lambda x: torch.sort(x, stable=True)[0],
            "argsort": lambda x: torch.argsort(x, stable=True),
            "top_k": lambda x, k: torch.topk(x, k)[0],
            "cumulative_sum": lambda x, axis: torch.cumsum(x, axis),
            "select": lambda x, mask: x[mask],
            "searchsorted": torch.searchsorted,
        }
    if library == "CuPy":
        import cupy

        return {
            "sort": cupy.sort,
            "argsort": cupy.argsort,
            "cumulative_sum": lambda x, axis: cupy.cumsum(x, axis),
            "select": lambda x, mask: x[mask],
            "searchsorted": cupy.searchsorted,
        }
    return {
        "sort": cyrt.sort,
        "argsort": cyrt.argsort,
        "top_k": lambda x, k: cyrt.top_k(x, k)[0],
        "cumulative_sum": lambda x, axis: cyrt.cumulative_sum(x, axis=axis),
        "select": lambda x, mask: x[mask],
        "searchsorted": cyrt.searchsorted,
    }


def _random_numbers(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype.startswith("int"):
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, np.dtype(dtype))
    return rng.standard_normal(shape, np.float32).astype(dtype)


def _numbers_alone(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> _Inputs:
    return (_random_numbers(dtype, shape, rng),)


def _logits(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> _Inputs:
    return (rng.standard_normal(shape, np.float32).astype(cyrt.dtype(dtype).numpy),)


def _small_integers(shape: tuple[int, ...], rng: np.random.Generator) -> _Inputs:
    return (rng.integers(-4, 5, shape).astype(np.float32),)


def _numbers_and_mask(n: int, density: float, rng: np.random.Generator) -> _Inputs:
    return _random_numbers("float32", (n,), rng), rng.random(n, np.float32) < density


def _sorted_and_sought(n: int, rng: np.random.Generator) -> _Inputs:
    return np.sort(_random_numbers("float32", (n,), rng)), _random_numbers("float32", (n,), rng)


def _cases(small: bool) -> Iterator[Case]:
    def size(count: int) -> int:
        return SMALL if small else count

    for function, expected, dtypes in (
        ("sort", np.sort, ("float32", "int32", "int64", "float16")),
        ("argsort", functools.partial(np.argsort, kind="stable"), ("float32", "int64")),
    ):
        for dtype in dtypes:
            n = size(ELEMENTS)
            yield Case(
                function,
                f"{dtype}, {n:,}",
                functools.partial(_numbers_alone, dtype, (n,)),
                expected,
                {},
            )
    for rows, columns in ((1 << 16, 256), (1 << 14, 1024), (1 << 12, 4096)):
        rows = size(rows * columns) // columns
        yield Case(
            "sort",
            f"float32, {rows:,} rows of {columns:,}",
            functools.partial(_numbers_alone, "float32", (rows, columns)),
            np.sort,
            {},
        )
    for rows, columns, k, dtype in (
        (1, 128_256, 50, "bfloat16"),
        (1, 128_256, 50, "float32"),
        (8, 128_256, 50, "float32"),
        (512, 128_256, 50, "float32"),
        (1, 1 << 24, 128, "float32"),
    ):
        shape = (1 if small else rows), size(columns)
        yield Case(
            "top_k",
            f"{dtype}, {k} of {shape[0]:,} × {shape[1]:,}",
            functools.partial(_logits, dtype, shape),
            lambda x, k: -np.sort(-x.astype(np.float32), -1)[:, :k],
            {"k": k},
        )
    n = size(NBYTES // 4)
    side = int(n**0.5)
    scans: tuple[tuple[tuple[int, ...], int], ...] = (
        ((n,), 0),
        ((side, side), 1),
        ((side, side), 0),
    )
    for sizes, axis in scans:
        yield Case(
            "cumulative_sum",
            f"float32, {' × '.join(f'{each:,}' for each in sizes)}, axis {axis}",
            functools.partial(_small_integers, sizes),
            np.cumsum,
            {"axis": axis},
            1e-6,
        )
    n = size(1 << 26)
    for density in (0.5, 0.05):
        yield Case(
            "select",
            f"float32, {n:,}, {100 * density:.0f} % true",
            functools.partial(_numbers_and_mask, n, density),
            lambda x, mask: x[mask],
            {},
            waits=True,
        )
    n = size(1 << 20)
    yield Case(
        "searchsorted",
        f"float32, {n:,} in {n:,}",
        functools.partial(_sorted_and_sought, n),
        np.searchsorted,
        {},
    )


def _measure_case(
    session: Session,
    library: Library,
    case: Case,
    sets: list[tuple[np.ndarray, ...]],
    expected: np.ndarray,
) -> Row:
    inputs = [tuple(library.to_device(each) for each in arrays) for arrays in sets]
    function = _functions(library.name)[case.function]

    def work(i: int) -> Any:
        return function(*inputs[i], **case.options)

    found = library.to_host(work(0)).astype(expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=case.tolerance)
    timer = session.host_time if case.waits else session.device_time
    took = timer(library, work, SETS)
    note = session.copy_note(took, sum(each.nbytes for each in sets[0]) + expected.nbytes)
    if took is not None and "sort" in case.function:
        note += f"; {sets[0][0].size / took / 1e3:.2f} G elements/s"
    what = f"{library.name}: {case.what}"
    return (
        Row(case.function, what, host=took, note=note)
        if case.waits
        else Row(case.function, what, took, note=note)
    )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    rng = np.random.default_rng(3)
    for case in _cases(session.small):
        first = case.inputs(rng)
        # The first input of searchsorted has to stay sorted.
        others = (
            first if case.function == "searchsorted" else tuple(np.roll(each, 1) for each in first)
        )
        expected = case.expected(*first, **case.options)
        for library in session.libraries:
            if case.function not in _functions(library.name):
                continue
            yield _measure_case(session, library, case, [first] + [others] * (SETS - 1), expected)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
