"""Host time of choosing a built-in kernel and packing its arguments."""

from __future__ import annotations

from collections.abc import Iterator

import cyrt
from cyrt.bench import record_loops
from cyrt.bench.result import BenchResult

ELEMENTS = 1 << 14
LAUNCHES = 1000  # a loop's
LOOPS = 20
READY = """
extern "C" __global__ void ready(const float* a, const float* b, float* out, long n, long, long,
                                 long, long) {}
"""


def run() -> Iterator[BenchResult]:
    """Yield the difference of two loops in C that never commit, one with a kernel chosen before."""
    ready = cyrt.Kernel(READY, "ready")
    encoder = cyrt.CommandEncoder(max_ops=100_000, max_mb=100_000)
    a, b, out = (cyrt.Buffer(4 * ELEMENTS) for _ in range(3))
    a.fill(0)
    b.fill(0)
    cyrt.synchronize()
    whole, recording = [], []
    for _ in range(LOOPS):
        whole.append(
            record_loops.record_binary(encoder, "add", "float32", out, a, b, ELEMENTS, LAUNCHES)
        )
        encoder.synchronize()
        recording.append(record_loops.record_ready(encoder, ready, out, a, b, LAUNCHES))
        encoder.synchronize()
    whole_time, recording_time = (1e6 * min(times) / LAUNCHES for times in (whole, recording))
    yield BenchResult(
        "other",
        "dispatch",
        "choose and pack a contiguous add",
        whole_time - recording_time,
        note=f"{whole_time:.3f} with recording it",
    )
