"""``k[grid, block](x, b, y, n)`` on the stream, beside a C loop of ``cuLaunchKernel``."""

from __future__ import annotations

import statistics
import time

import numpy as np

import cyrt
from cyrt.bench import Row, floors

SOURCE = """
extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
"""
N = 1024
CHAIN = 100         # launches between two waits: the queue never fills
ROUNDS = 200


def _floor(kernel: cyrt.Kernel, x: cyrt.Buffer, b: cyrt.Buffer) -> float:
    return floors.launch_loop(kernel, N // 256, 256, x, b, x, N, CHAIN)


def _from_python(kernel: cyrt.Kernel, x: cyrt.Buffer, b: cyrt.Buffer) -> float:
    begin = time.perf_counter()
    for _ in range(CHAIN):
        kernel[4, 256](x, b, x, 1024)
    return time.perf_counter() - begin


def _check(kernel: cyrt.Kernel, x: cyrt.Buffer, b: cyrt.Buffer) -> None:
    x.fill(0)
    b.copy_from(np.ones(N, np.float32))
    _from_python(kernel, x, b)
    _floor(kernel, x, b)
    out = np.empty(N, np.float32)
    x.copy_to(out)
    np.testing.assert_array_equal(out, np.float32(2 * CHAIN))


def run() -> list[Row]:
    """Chains of 100 dependent adds on 1,024 floats; the two take turns."""
    kernel = cyrt.Kernel(SOURCE, "add")
    x, b = cyrt.Buffer(4 * N), cyrt.Buffer(4 * N)
    _check(kernel, x, b)
    ours, floor, wall = [], [], []
    for _ in range(ROUNDS):
        cyrt.synchronize()
        floor.append(_floor(kernel, x, b))
        cyrt.synchronize()
        begin = time.perf_counter()
        ours.append(_from_python(kernel, x, b))
        cyrt.synchronize()
        wall.append(time.perf_counter() - begin)
    scale = 1e6 / CHAIN
    host, raw = statistics.median(ours) * scale, statistics.median(floor) * scale
    return [
        Row("launch", "C loop of cuLaunchKernel, host a launch", raw, "the floor"),
        Row("launch", "k[grid, block](x, b, y, n), host a launch", host,
            f"{host - raw:+.3f} µs, {host / raw:.2f} times the floor"),
        Row("launch", "the same, wall a launch", statistics.median(wall) * scale),
    ]
