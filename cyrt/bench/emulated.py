"""Times of a few kernels and an empty launch, waits included.

The emulated device's kernels run on the host: their times say how long tests take, and nothing
about a GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

import cyrt
from cyrt.bench.result import BenchResult

SOURCE = """
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}

__device__ float block_reduce(float value, bool maximum) {
    __shared__ float partial[32];
    for (int offset = 16; offset; offset /= 2) {
        float other = __shfl_xor_sync(~0u, value, offset);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp)
        value = maximum ? fmaxf(value, partial[warp]) : value + partial[warp];
    return value;
}

// One block a row, four columns a thread.
extern "C" __global__ void softmax(const float* x, float* y, int columns) {
    const float4* in = (const float4*)(x + (long long)blockIdx.x * columns);
    float4 v = in[threadIdx.x];
    float top = block_reduce(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), true);
    v.x = __expf(v.x - top);
    v.y = __expf(v.y - top);
    v.z = __expf(v.z - top);
    v.w = __expf(v.w - top);
    float scale = 1.0f / block_reduce(v.x + v.y + v.z + v.w, false);
    ((float4*)(y + (long long)blockIdx.x * columns))[threadIdx.x] =
        make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}

extern "C" __global__ void nothing() {}
"""


def _median(work: Callable[[], None], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        cyrt.synchronize()
        begin = time.perf_counter()
        work()
        cyrt.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def run(rounds: int) -> Iterator[BenchResult]:
    """Add of 1 M floats, softmax of 1024 x 1024, and a launch that does nothing."""
    module = cyrt.Module(SOURCE)
    rng = np.random.default_rng(0)
    n = 1 << 20
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    dx, dy, dz = (cyrt.Buffer(4 * n) for _ in range(3))
    dx.copy_from(x)
    dy.copy_from(y)
    out = np.empty(n, np.float32)
    exponents = np.exp(x.reshape(1024, 1024).astype(np.float64))

    def add() -> None:
        module["add"][n // 256, 256](dx, dy, dz, n)

    def check_add() -> None:
        dz.copy_to(out)
        np.testing.assert_array_equal(out, x + y)

    def softmax() -> None:
        module["softmax"][1024, 256](dx, dz, 1024)

    def check_softmax() -> None:
        dz.copy_to(out)
        np.testing.assert_allclose(
            out.reshape(1024, 1024), exponents / exponents.sum(1, keepdims=True), rtol=1e-5
        )

    def empty() -> None:
        for _ in range(100):
            module["nothing"][1, 32]()

    for what, work, check, count in (
        ("add of 1 M float32", add, check_add, 1),
        ("softmax of 1024 x 1024 float32", softmax, check_softmax, 1),
        ("an empty launch", empty, None, 100),
    ):
        work()
        dz.fill(0)
        time_taken = _median(work, max(1, rounds // 4)) / count
        if check is not None:
            check()
        host = cyrt.Device().emulated
        yield BenchResult(
            "other", "emulated", what, time_taken if host else None, None if host else time_taken
        )
