"""Copies that overlap with kernels: parts of a large array, two streams, page-locked memory.

``copy_from`` and ``copy_to`` return when host memory has been read or written, so each waits for
its own stream, and for no other. A copy therefore overlaps with the kernels of the other stream
once those are launched, which ``commit`` does. In this loop one part is copied in while the part
before it is computed, and a part is copied out while the next one is computed. A copy in and a
copy out do not overlap, because one thread makes both.
"""

from __future__ import annotations

import argparse
import time

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
STREAMS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="elements in a part")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--times", type=int, default=50, help="work for each element")
    options = parser.parse_args()
    n, parts = options.size, options.parts

    kernel = cyrt.Kernel(SOURCE, "iterate")
    nbytes = 4 * n
    # All parts lie in page-locked memory, which the device reads and writes by itself.
    pinned = cyrt.PinnedBuffer(parts * nbytes)
    values = np.frombuffer(pinned, np.float32).reshape(parts, n)
    slots = [cyrt.Buffer(nbytes) for _ in range(STREAMS)]
    streams = [cyrt.Stream() for _ in range(STREAMS)]

    def part(i: int) -> cyrt.Buffer:
        return pinned[i * nbytes : (i + 1) * nbytes]

    def copy_in(i: int) -> None:
        slots[i % STREAMS].copy_from(part(i), stream=streams[i % STREAMS])

    def compute(i: int) -> None:
        with streams[i % STREAMS]:
            kernel.for_each(n, slots[i % STREAMS], n, options.times)
            cyrt.commit()  # launches; the host goes on

    def copy_out(i: int) -> None:
        slots[i % STREAMS].copy_to(part(i), stream=streams[i % STREAMS])

    def one_by_one() -> None:
        for i in range(parts):
            copy_in(i)
            compute(i)
            copy_out(i)

    def overlapped() -> None:
        copy_in(0)
        compute(0)
        for i in range(1, parts):
            copy_in(i)  # while part i - 1 is computed
            compute(i)
            copy_out(i - 1)  # while part i is computed
        copy_out(parts - 1)

    rng = np.random.default_rng(0)
    start = rng.uniform(1, 2, (parts, n)).astype(np.float32)
    for name, run in (
        ("first run", one_by_one),
        ("one by one", one_by_one),
        ("overlapped", overlapped),
    ):
        values[:] = start
        begin = time.perf_counter()
        run()
        seconds = time.perf_counter() - begin
        np.testing.assert_allclose(values, 2**0.5, rtol=1e-6)
        print(f"{name}: {1e3 * seconds:.1f} ms")
    if cyrt.Device().emulated:
        print(
            "the emulated device copies and computes on the same processors: its times say nothing"
        )


if __name__ == "__main__":
    main()
