"""Elementwise kernels and strided copies: bytes per second, compared with a device copy.

Rates are bytes read and written, each once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import Row, Session, main

import cyrt

NBYTES = 256 << 20
SMALL = 1 << 18
SETS = 4  # sets of operands: more than a cache holds
ROWS, COLUMNS = 64, 96  # shape of the three-dimensional arrays


def _cases(
    x: np.ndarray, other: str
) -> Iterator[tuple[str, int, Callable[..., cyrt.Array], np.ndarray]]:
    """Yield each case's name, number of operands, function, and result for operands equal to x."""
    yield "add", 2, cyrt.add, x + x
    yield "exp", 1, cyrt.exp, np.exp(x)
    yield f"to {other}", 1, lambda a: cyrt.astype(a, other), x
    side = int(x.size**0.5) // 64 * 64
    yield (
        "transposing copy",
        1,
        lambda a: cyrt.copy(a[: side * side].reshape(side, side).T),
        x[: side * side].reshape(side, side).T,
    )
    middle = x.size // ROWS // COLUMNS
    shape = ROWS, middle, COLUMNS
    size = ROWS * middle * COLUMNS
    cube = x[:size].reshape(shape)
    yield (
        "strided 3-d copy, rows of 64 of 96",
        1,
        lambda a: cyrt.copy(a[:size].reshape(shape)[:, :, :64]),
        cube[:, :, :64],
    )
    even = slice(None, None, 2)
    yield (
        "strided 3-d copy, every second of all",
        1,
        lambda a: cyrt.copy(a[:size].reshape(shape)[even, even, even]),
        cube[even, even, even],
    )


def _call(function: Callable[..., Any], sets: Sequence[Sequence[cyrt.Array]], i: int) -> Any:
    return function(*sets[i])


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and element type."""
    rng = np.random.default_rng(11)
    library = session.libraries[0]
    for dtype, other in (("float32", "bfloat16"), ("bfloat16", "float32")):
        itemsize = cyrt.dtype(dtype).itemsize
        x = rng.integers(-4, 5, (SMALL if session.small else NBYTES) // itemsize)
        x = x.astype(np.float32)
        sets = [[cyrt.asarray(x, dtype=dtype) for _ in range(2)] for _ in range(SETS)]
        for case, operands, function, expected in _cases(x, other):
            found = function(*sets[0][:operands])
            np.testing.assert_allclose(
                found.numpy().astype(np.float32),
                expected,
                rtol=2e-6 if dtype == "float32" else 1e-2,
            )
            took = session.device_time(
                library, partial(_call, function, [each[:operands] for each in sets]), SETS
            )
            nbytes = operands * expected.size * itemsize + found.nbytes
            yield Row(
                case,
                f"{dtype}, {nbytes / 1e6:,.0f} MB moved",
                took,
                note=session.copy_note(took, nbytes),
            )


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
