"""A CUDA kernel from source: compiled, launched, checked against NumPy, and timed."""

from __future__ import annotations

import time

import numpy as np

import cyrt

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void nothing(const float* x, float* y, int n) {}
"""


def main() -> None:
    device = cyrt.Device()
    kind = "emulated, on the CPU" if device.emulated else "GPU"
    print(f"device {device.index}: {device.name} ({kind})")

    n = 1_000_000
    rng = np.random.default_rng(0)
    x, y = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)

    begin = time.perf_counter()
    module = cyrt.Module(SOURCE)
    saxpy = module["saxpy"]
    print(f"compiled {saxpy.signature} in {1e3 * (time.perf_counter() - begin):.0f} ms")

    device_x, device_y = cyrt.Buffer(x.nbytes), cyrt.Buffer(y.nbytes)
    device_x.copy_from(x)
    device_y.copy_from(y)
    block = 256
    saxpy[-(-n // block), block](2.0, device_x, device_y, n)
    result = np.empty_like(y)
    device_y.copy_to(result)
    np.testing.assert_allclose(result, 2 * x + y, rtol=1e-6)
    print(f"saxpy of {n:,} elements agrees with NumPy")

    nothing = module["nothing"]
    launches, best = 500, float("inf")
    for _ in range(5):
        cyrt.synchronize()
        begin = time.perf_counter()
        for _ in range(launches):
            nothing[1, 32](device_x, device_y, n)
        best = min(best, time.perf_counter() - begin)
    cyrt.synchronize()
    print(f"a launch costs {1e6 * best / launches:.2f} µs of the host's time")


if __name__ == "__main__":
    main()
