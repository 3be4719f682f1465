"""Copies that overlap with kernels: parts of a large array, three streams, page-locked memory.

With ``blocking=False``, ``copy_from`` and ``copy_to`` return at once, and the copies of a part come
in the order of its stream. So the host puts all work on the streams and waits once; while a part is
computed, the next one is copied in and the one before is copied out.

Each part has page-locked memory of its own: cyrt orders what uses the same memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import cyrt

SOURCE = r"""
extern "C" __global__ void iterate(float* x, int n, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int k = 0; k < times; ++k) value = 0.5f * (value + 2.0f / value);  // towards sqrt(2)
    x[i] = value;
}
"""
STREAMS = 3
STEPS = 64  # of the kernel, from which the number is found that takes as long as the copies


def seconds(run: Callable[[], None]) -> float:
    """The time of a run, the shortest of three."""
    times = []
    for _ in range(3):
        cyrt.synchronize()
        begin = time.perf_counter()
        run()
        cyrt.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, help="elements in a part")
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument(
        "--times", type=int, help="steps for each element; default: as long as the copies take"
    )
    options = parser.parse_args()
    if options.size is not None and options.size < 1:
        parser.error(f"--size: expected 1 or more, got {options.size}")
    emulated = cyrt.Device().emulated
    n, parts = options.size or (2048 if emulated else 1 << 22), options.parts

    kernel = cyrt.Kernel(SOURCE, "iterate")
    pinned = [cyrt.PinnedBuffer(4 * n) for _ in range(parts)]
    values = [np.frombuffer(part, np.float32) for part in pinned]
    slots = [cyrt.Buffer(4 * n) for _ in range(STREAMS)]
    streams = [cyrt.Stream() for _ in range(STREAMS)]

    def copies() -> None:
        for part in pinned:
            slots[0].copy_from(part)
            slots[0].copy_to(part)

    def kernels(times: int) -> None:
        for _ in pinned:
            kernel.for_each(n, slots[0], n, times)

    def one_by_one() -> None:
        for part in pinned:
            slots[0].copy_from(part)
            kernel.for_each(n, slots[0], n, steps)
            slots[0].copy_to(part)

    def overlapped() -> None:
        for i, part in enumerate(pinned):
            slot = slots[i % STREAMS]
            with streams[i % STREAMS]:
                slot.copy_from(part, blocking=False)
                kernel.for_each(n, slot, n, steps)
                slot.copy_to(part, blocking=False)
        cyrt.synchronize()

    rng = np.random.default_rng(0)
    for each in values:
        each[:] = rng.uniform(1, 2, n)
    copying = seconds(copies)
    steps = options.times or max(8, int(STEPS * copying / seconds(lambda: kernels(STEPS))))
    computing = seconds(lambda: kernels(steps))

    def checked(run: Callable[[], None]) -> float:
        for each in values:
            each[:] = 1.5
        run()
        for each in values:
            np.testing.assert_allclose(each, 2**0.5, rtol=1e-6)
        return seconds(run)

    serial, together = checked(one_by_one), checked(overlapped)
    print(f"{parts} parts of {4 * n / 1e6:.2g} MB, {steps} steps for each element")
    print(f"copies {1e3 * copying:.2f} ms, kernels {1e3 * computing:.2f} ms")
    print(f"one by one {1e3 * serial:.2f} ms, overlapped {1e3 * together:.2f} ms")
    if emulated:
        print(
            "the emulated device copies and computes on the same processors: its times say nothing"
        )
    else:
        print(f"{serial / together:.2f} times as fast")


if __name__ == "__main__":
    main()
