"""Copies between pageable host memory and the device: bytes per second, compared with PyTorch.

"waited for": from the call until the data has arrived. "in a row": of several calls, each of which
begins when the one before has returned. Two versions of cyrt are compared by running this script
with one and the other by turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import Library, Row, Session, main

SIZES = (1, 4, 8, 12, 16, 20, 64, 256)  # MB
ROW = 8  # calls in a row
ROUNDS = 15


def _to_device(library: Library, target: Any, host: np.ndarray) -> Callable[[], Any]:
    if library.name == "cyrt":
        return lambda: target.copy_from(host)
    if library.name == "PyTorch":
        import torch

        source = torch.from_numpy(host)
        return lambda: target.copy_(source)
    return lambda: target.set(host)


def _to_host(library: Library, source: Any, host: np.ndarray) -> Callable[[], Any]:
    if library.name == "cyrt":
        return lambda: source.copy_to(host)
    if library.name == "PyTorch":
        import torch

        target = torch.from_numpy(host)
        return lambda: target.copy_(source)
    return lambda: source.get(out=host)


def _time(library: Library, call: Callable[[], Any], calls: int) -> float:
    """Median µs per call, of which so many are made before the device is waited for."""
    times = []
    for _ in range(ROUNDS):
        library.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        library.synchronize()
        times.append(1e6 * (time.perf_counter() - begin) / calls)
    return statistics.median(times)


def _measure_size(session: Session, library: Library, nbytes: int) -> Iterator[Row]:
    rng = np.random.default_rng(nbytes)
    host = rng.integers(0, 1 << 31, nbytes // 4, np.int32)
    found = np.zeros_like(host)
    memory = library.to_device(np.zeros_like(host))
    send, receive = _to_device(library, memory, host), _to_host(library, memory, found)
    send()
    receive()
    np.testing.assert_array_equal(found, host)
    for what, call in (("to the device", send), ("to the host", receive)):
        for how, calls in (("waited for", 1), ("in a row", ROW)):
            took = None if session.small else _time(library, call, calls)
            yield Row(
                f"{nbytes / (1 << 20):,.3g} MB {what}",
                f"{library.name}: {how}",
                host=took,
                note="" if took is None else f"{nbytes / took / 1e3:,.2f} GB/s",
            )


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every size, direction and library."""
    for megabytes in SIZES:
        nbytes = (megabytes << 20) // (8 if session.small else 1)
        for library in session.libraries:
            yield from _measure_size(session, library, nbytes)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
