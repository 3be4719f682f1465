"""Reading and writing with index arrays and masks, compared with PyTorch and CuPy.

Rates count bytes read and written, each once, including the indices.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Case, Row, Session, main

import cyrt

SMALL = 1 << 8  # divisor of the sizes of small cases


def _assign(x: Any, index: Any, value: Any) -> None:
    x[index] = value


def _cupy_take_along_axis(x: Any, indices: Any) -> Any:
    import cupy

    return cupy.take_along_axis(x, indices, 1)


def _rows(count: int, width: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random((count, width), np.float32)
    index = rng.integers(0, count, count)
    nbytes = 2 * x.nbytes + index.nbytes
    what = f"{count:,} rows of {width:,} float32, random"
    yield Case(
        f"take {what}",
        (x, index),
        x[index],
        nbytes,
        {
            "cyrt": lambda x, index: cyrt.take(x, index, axis=0),
            "PyTorch": lambda x, index: x.index_select(0, index),
            "CuPy": lambda x, index: x.take(index, 0),
        },
    )
    order = rng.permutation(count)
    expected = np.empty_like(x)
    expected[order] = x
    yield Case(
        f"put {what}",
        (np.zeros_like(x), order, x),
        expected,
        nbytes,
        {
            "cyrt": _assign,
            "CuPy": _assign,
            "PyTorch": lambda x, index, value: x.index_copy_(0, index, value),
        },
    )


def _elements(count: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random(count, np.float32)
    for name, index in (
        ("random", rng.integers(0, count, count)),
        ("reversed", np.arange(count)[::-1].copy()),
    ):
        yield Case(
            f"take {count:,} float32, {name}",
            (x, index),
            x[index],
            2 * x.nbytes + index.nbytes,
            {
                "cyrt": cyrt.take,
                "PyTorch": lambda x, index: x[index],
                "CuPy": lambda x, index: x[index],
            },
        )
    mask = rng.random(count, np.float32) < 0.5
    yield Case(
        f"x[mask] = 0, {count:,} float32",
        (x, mask),
        np.where(mask, np.float32(0), x),
        2 * x.nbytes + mask.nbytes,
        {
            "cyrt": lambda x, mask: _assign(x, mask, 0.0),
            "PyTorch": lambda x, mask: x.masked_fill_(mask, 0.0),
            "CuPy": lambda x, mask: _assign(x, mask, 0.0),
        },
    )


def _several_axes(rows: int, rng: np.random.Generator) -> Iterator[Case]:
    x = rng.random((rows, 1024), np.float32)
    indices = rng.integers(0, 1024, x.shape)
    yield Case(
        f"take_along_axis, {rows:,} rows of 1,024 float32",
        (x, indices),
        np.take_along_axis(x, indices, 1),
        2 * x.nbytes + indices.nbytes,
        {
            "cyrt": lambda x, indices: cyrt.take_along_axis(x, indices, axis=1),
            "PyTorch": lambda x, indices: x.gather(1, indices),
            "CuPy": _cupy_take_along_axis,
        },
    )
    cube = x.reshape(rows // 4, 4, 1024)
    i, j = rng.integers(0, rows // 4, rows // 4), rng.integers(0, 1024, rows // 4)
    expected = cube[i, :, j]
    # Each 4-byte number requires a sector of 32 bytes.
    yield Case(
        f"x[i, :, j], {rows // 4:,} pairs, with the sectors read",
        (cube, i, j),
        expected,
        9 * expected.nbytes + 2 * i.nbytes,
        dict.fromkeys(("cyrt", "PyTorch", "CuPy"), lambda x, i, j: x[i, :, j]),
    )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    divisor = SMALL if session.small else 1
    rng = np.random.default_rng(13)
    for cases in (
        _rows((1 << 20) // divisor, 256, rng),
        _elements((1 << 26) // divisor, rng),
        _several_axes((1 << 16) // divisor, rng),
    ):
        for case in cases:
            for library in session.libraries:
                yield case.measure(session, library)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
