"""What the emulated device needs for a few kernels; on a GPU the same kernels' wall time.

Emulated times say how long the tests take, nothing of a GPU.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import cyrt
from cyrt.bench import Row

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


def _median(work, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        cyrt.synchronize()
        begin = time.perf_counter()
        work()
        cyrt.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def run() -> list[Row]:
    """Add of 1 M floats, softmax of 1024 x 1024, and a launch that does nothing."""
    module = cyrt.Module(SOURCE)
    rng = np.random.default_rng(0)
    n = 1 << 20
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    dx, dy, dz = (cyrt.Buffer(4 * n) for _ in range(3))
    dx.copy_from(x)
    dy.copy_from(y)
    out = np.empty(n, np.float32)

    def add():
        module["add"][n // 256, 256](dx, dy, dz, n)

    def softmax():
        module["softmax"][1024, 256](dx, dz, 1024)

    def nothing():
        for _ in range(1000):
            module["nothing"][1, 32]()

    add()
    dz.copy_to(out)
    np.testing.assert_array_equal(out, x + y)
    softmax()
    dz.copy_to(out)
    rows = np.exp(x.reshape(1024, 1024).astype(np.float64))
    np.testing.assert_allclose(out.reshape(1024, 1024), rows / rows.sum(1, keepdims=True),
                               rtol=1e-5)
    return [
        Row("emulated", "add of 1 M float32", _median(add, 15)),
        Row("emulated", "softmax of 1024 x 1024 float32", _median(softmax, 15)),
        Row("emulated", "an empty launch", _median(nothing, 9) / 1000),
    ]
