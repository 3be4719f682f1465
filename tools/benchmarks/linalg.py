"""Factorizations, systems of equations and eigenvalues beside CuPy and PyTorch.

Device times are those of pipelined calls: many calls and one wait, by the host's clock. Host times
are those of calls without the wait. The note compares cyrt's time with another library's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from common import Library, Row, Session, main

CASES = ((1_000, 16), (1, 32), (1, 64), (1, 256), (1, 1_024))
SMALL = ((3, 4), (1, 9))
FUNCTIONS = ("cholesky", "solve", "inv", "qr", "eigh", "svd")
SECONDS, ROUNDS = 0.2, 5


def adjoint(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.conj(np.swapaxes(x, -1, -2))
    return result


def matrices(batch: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric positive definite matrices, and right-hand sides."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(batch, n, n))
    x = x @ adjoint(x) / n + np.eye(n)
    b = rng.normal(size=(batch, n, 1))
    return x.astype(np.float32), b.astype(np.float32)


def difference(name: str, x: np.ndarray, b: np.ndarray, found: Any) -> float:
    """The backward error of a result, relative to the matrix."""
    parts = [np.asarray(each, np.float64) for each in found]
    wide = x.astype(np.float64)
    if name == "cholesky":
        error = parts[0] @ adjoint(parts[0]) - wide
    elif name == "solve":
        error = wide @ parts[0] - b
    elif name == "inv":
        error = wide @ parts[0] - np.eye(x.shape[-1])
    elif name == "qr":
        error = parts[0] @ parts[1] - wide
    elif name == "eigh":
        error = wide @ parts[1] - parts[1] * parts[0][..., None, :]
    else:
        error = (parts[0] * parts[1][..., None, :]) @ parts[2] - wide
    return float(np.abs(error).max() / np.abs(wide).max())


def _times(
    session: Session, library: Library, call: Callable[[], Any]
) -> tuple[float | None, float | None]:
    """µs a call: pipelined, and the host's part. The best of five rounds."""
    if session.small:
        return None, None
    for _ in range(5):
        call()
    library.synchronize()
    begin = time.perf_counter()
    call()
    library.synchronize()
    count = max(3, min(300, int(SECONDS / (time.perf_counter() - begin + 1e-9))))
    walls, hosts = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        hosts.append(time.perf_counter() - begin)
        library.synchronize()
        walls.append(time.perf_counter() - begin)
    return min(walls) / count * 1e6, min(hosts) / count * 1e6


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every function, size and library."""
    for batch, n in SMALL if session.small else CASES:
        x, b = matrices(batch, n)
        for name in FUNCTIONS:
            own: float | None = None
            operands = (x, b) if name == "solve" else (x,)
            for library in session.libraries:
                arguments = [library.to_device(each) for each in operands]
                call = partial(getattr(library.module.linalg, name), *arguments)
                result = call()
                parts = result if isinstance(result, tuple) else (result,)
                error = difference(name, x, b, [library.to_host(part) for part in parts])
                assert error < 1e-3, (name, batch, n, library.name, error)
                wall, host = _times(session, library, call)
                note = f"cyrt takes {own / wall:.2f} of it" if own and wall else ""
                own = own or wall
                yield Row(
                    f"{name} {batch:,} × {n:,}²", f"{library.name}: float32", wall, host, note
                )


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
