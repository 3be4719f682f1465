"""Discrete Fourier transforms beside PyTorch and CuPy, whose transforms are cuFFT's.

Host times are those of a call, without a wait for its result. Device times are those of several
calls in a row, which the host puts behind other work: otherwise short calls would have the host's
time, and the first rows the slow clock of a device that has waited. The note compares the device's
time with that of a copy of the input and the output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Library, Row, Session, main

SETS = 8  # the number of inputs
CALLS = 64  # the calls of which the host time is taken
BUSY_ELEMENTS, BUSY_CALLS = 1 << 27, 12  # the work behind which device times begin, about 3 ms


@dataclass(frozen=True)
class Case:
    """A transform of an input of some shape."""

    function: str
    shape: tuple[int, ...]
    small: tuple[int, ...]
    real: bool = False
    n: int | None = None


CASES = (
    Case("fft", (1024,), (64,)),
    Case("rfft2", (512, 512), (32, 32), real=True),
    Case("irfft", (4096, 513), (8, 33)),
    Case("fft", (4096, 1024), (8, 64)),
    Case("fft2", (512, 512), (32, 32)),
    Case("fft2", (4096, 1024), (32, 64)),
    Case("fftn", (128, 128, 128), (8, 8, 8)),
    Case("fft", (64, 8192), (2, 8192)),
    Case("fft", (1 << 20,), (1 << 14,)),
    Case("fft", (1 << 24,), (1 << 15,)),
    Case("fft", (1_000_003,), (1009,)),
    Case("fft", (1000, 100), (10, 100)),
    Case("rfft", (100_000, 64), (10, 64), real=True),
)


def _call_time(session: Session, library: Library, work: Callable[[int], Any]) -> float | None:
    """Median µs that the host takes for a call, which does not wait."""
    if session.small:
        return None
    times = []
    for _ in range(12):
        library.synchronize()
        begin = time.perf_counter()
        for i in range(CALLS):
            work(i % SETS)
        times.append(1e6 * (time.perf_counter() - begin) / CALLS)
    library.synchronize()
    return float(np.median(times))


def _busy(session: Session, library: Library) -> Callable[[], None]:
    """Return a function that puts other work on the device."""
    array = library.to_device(np.zeros(1 if session.small else BUSY_ELEMENTS, np.float32))

    def run() -> None:
        for _ in range(BUSY_CALLS):
            array.__iadd__(1)

    return run


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every case and library."""
    rng = np.random.default_rng(3)
    busy = {library.name: _busy(session, library) for library in session.libraries}
    for case in CASES:
        shape = case.small if session.small else case.shape
        host = rng.standard_normal(shape, np.float32)
        if not case.real:
            host = host + 1j * rng.standard_normal(shape, np.float32)
        if case.function == "irfft":
            # NumPy ignores these imaginary parts; cuFFT's results depend on them.
            host[..., [0, -1]] = host[..., [0, -1]].real
        expected = getattr(np.fft, case.function)(host.astype(complex if not case.real else float))
        for library in session.libraries:
            function = getattr(library.module.fft, case.function)
            inputs = [library.to_device(np.roll(host, i, -1)) for i in range(SETS)]

            def work(i: int, function: Any = function, inputs: Any = inputs) -> Any:
                return function(inputs[i])

            found = library.to_host(work(0))
            error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
            assert error < 1e-6, (case, library.name, error)
            for i in range(SETS):
                work(i)
            device = session.device_time(library, work, SETS, busy[library.name])
            note = session.copy_note(device, host.nbytes + found.nbytes)
            text = " × ".join(f"{each:,}" for each in shape)
            yield Row(
                f"{case.function} {text}",
                f"{library.name}: {found.dtype.name}",
                device,
                _call_time(session, library, work),
                note,
            )


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
