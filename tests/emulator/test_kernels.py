"""Whole kernels of the kinds that people write, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

SOURCE = r"""
#include <cooperative_groups.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

template <int block> __global__ void reduce(const float* x, float* out, int n) {
    __shared__ float part[block];
    float sum = 0;
    for (int i = blockIdx.x * block + threadIdx.x; i < n; i += gridDim.x * block) sum += x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = block / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

__global__ void reduce_by_shuffles(const float* x, float* out, int n) {
    __shared__ float part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? x[i] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : 0;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

__global__ void scan(const int* x, int* out) {           // Blelloch's, a block
    extern __shared__ int tree[];
    int t = threadIdx.x, n = 2 * blockDim.x, offset = 1;
    tree[2 * t] = x[2 * t];
    tree[2 * t + 1] = x[2 * t + 1];
    for (int d = n / 2; d > 0; d /= 2, offset *= 2) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    }
    if (t == 0) tree[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, old = tree[a];
            tree[a] = tree[b];
            tree[b] += old;
        }
    }
    __syncthreads();
    out[2 * t] = tree[2 * t];
    out[2 * t + 1] = tree[2 * t + 1];
}

// Each block waits for the one before it: blocks must start in order.
__device__ volatile unsigned chain[1024];
__global__ void chained_scan(const unsigned* x, unsigned* out) {
    __shared__ unsigned before;
    unsigned value = x[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned sum = __reduce_add_sync(~0u, value);
    if (threadIdx.x == 0) {
        while (blockIdx.x && chain[blockIdx.x - 1] == 0) {}
        before = blockIdx.x ? chain[blockIdx.x - 1] - 1 : 0;
        __threadfence();
        chain[blockIdx.x] = before + sum + 1;
    }
    __syncthreads();
    for (int step = 1; step < 32; step *= 2) {
        unsigned left = __shfl_up_sync(~0u, value, step);
        if (threadIdx.x >= step) value += left;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = before + value;
}

__global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

__global__ void spin_lock(int* lock, volatile int* counter) {
    for (int turn = 0; turn < 3; ++turn) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                *counter = *counter + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}

__device__ unsigned arrived;
__global__ void last_block_sums(const float* x, volatile float* part, float* out, int n) {
    __shared__ bool last;
    __shared__ float sums[64];
    float sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += x[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 64; ++i) sum += sums[i];
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (int i = 0; i < gridDim.x; ++i) total += part[i];
        *out = total;
    }
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
__global__ void recursive(int* out) {
    int i = threadIdx.x;
    out[i] = i % 2 ? fibonacci(i % 12) : ackermann(2, i % 5);
}

typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ float negated(float x) { return -x; }
__device__ Function table[] = {twice, square, negated};
struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape {
    float a;
    __device__ Square(float a) : a(a) {}
    __device__ float area() const override { return a * a; }
};
struct Box : Shape {
    float a, b;
    __device__ Box(float a, float b) : a(a), b(b) {}
    __device__ float area() const override { return a * b; }
};
__global__ void by_pointers(const float* x, float* out) {
    int i = threadIdx.x;
    Shape* shape = i % 2 ? static_cast<Shape*>(new Square(x[i])) : new Box(x[i], 3);
    out[i] = table[i % 3](x[i]) + shape->area();
    delete shape;
}

template <int width> __global__ void tiles(const int* x, int* out) {
    auto tile = cg::tiled_partition<width>(cg::this_thread_block());
    int value = x[threadIdx.x];
    for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_down(value, step);
    int sum = tile.shfl(value, 0);
    out[threadIdx.x] = sum * 100 + tile.thread_rank();
}

__global__ void coalesced(const int* x, int* counter, int* ranks) {
    ranks[threadIdx.x] = -1;
    if (x[threadIdx.x] % 3 == 0) {
        auto group = cg::coalesced_threads();
        int base = 0;
        if (group.thread_rank() == 0) base = atomicAdd(counter, group.size());
        ranks[threadIdx.x] = group.shfl(base, 0) + group.thread_rank();
    }
}

__device__ unsigned grid_arrived;
__global__ void grid_barrier(volatile int* a, volatile int* b, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int phase = 0; phase < 2 * rounds; ++phase) {
        if (phase % 2) a[i] = b[(i + 1) % n];
        else b[i] = a[(i + 1) % n] + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&grid_arrived, 1u);
            while (atomicAdd(&grid_arrived, 0u) < (phase + 1) * gridDim.x) __nanosleep(20);
        }
        __syncthreads();
    }
}

__global__ void votes(const int* x, unsigned* out) {
    int i = threadIdx.x;
    out[4 * i] = __ballot_sync(~0u, x[i] > 0);
    out[4 * i + 1] = __any_sync(~0u, x[i] == 7) | __all_sync(~0u, x[i] > -10) << 1;
    out[4 * i + 2] = __match_any_sync(~0u, x[i]);
    out[4 * i + 3] = i % 2 ? __activemask() : __popc(__activemask());
}

__constant__ float weights[5];
__global__ void stencil(const float* x, float* out, int n) {
    extern __shared__ float line[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 2;
    line[t] = i < n ? x[i] : 0;
    if (threadIdx.x < 2) {
        line[threadIdx.x] = i >= 2 ? x[i - 2] : 0;
        int right = i + blockDim.x;
        line[t + blockDim.x] = right < n ? x[right] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int k = -2; k <= 2; ++k) sum += weights[k + 2] * line[t + k];
    if (i < n) out[i] = sum;
}

__global__ void bitonic(unsigned* keys) {
    extern __shared__ unsigned shared_keys[];
    int t = threadIdx.x;
    shared_keys[t] = keys[t];
    for (int k = 2; k <= blockDim.x; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            int other = t ^ j;
            unsigned a = shared_keys[t], b = shared_keys[other];
            __syncthreads();
            if ((other > t) == ((t & k) == 0) ? a > b : a < b) shared_keys[t] = b;
        }
    __syncthreads();
    keys[t] = shared_keys[t];
}

template <typename T, int tile> __global__ void gemm(const T* a, const T* b, T* c, int n) {
    __shared__ T as[tile][tile], bs[tile][tile + 1];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * tile + y, col = blockIdx.x * tile + x;
    T sum = T(0.0f);
    for (int k = 0; k < n; k += tile) {
        as[y][x] = row < n && k + x < n ? a[row * n + k + x] : T(0.0f);
        bs[y][x] = k + y < n && col < n ? b[(k + y) * n + col] : T(0.0f);
        __syncthreads();
        for (int i = 0; i < tile; ++i) sum += as[y][i] * bs[i][x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

struct Particle { float3 at; double mass; short kind; char name[3]; };
__global__ void by_value(Particle p, float* out, int2 size, bool flag) {
    Particle copies[4];
    for (int i = 0; i < 4; ++i) { copies[i] = p; copies[i].at.x += i; }
    Particle q = copies[threadIdx.x % 4];
    out[threadIdx.x] = q.at.x + q.at.y * q.at.z + q.mass + q.kind + q.name[2] + size.y + flag;
}

__global__ void early_exit(const int* x, int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (x[threadIdx.x] < 0) return;
    atomicAdd(&sum, x[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = sum;
}

__global__ void producer_consumer(int* out) {            // named barriers of two warps each
    __shared__ volatile int slot;
    for (int i = 0; i < 8; ++i) {
        if (threadIdx.x < 32) {
            if (threadIdx.x == 0) slot = i * i;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            if (threadIdx.x == 32) out[i] = slot;
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}
"""

NAMES = [
    *("reduce<64>", "reduce<256>", "tiles<4>", "tiles<16>", "tiles<32>"),
    *("gemm<float, 16>", "gemm<double, 8>", "gemm<__half, 16>"),
    *("reduce_by_shuffles", "scan", "chained_scan", "histogram", "spin_lock", "last_block_sums"),
    *("recursive", "by_pointers", "coalesced", "grid_barrier", "votes", "stencil", "bitonic"),
    *("by_value", "early_exit", "producer_consumer"),
]


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE, NAMES)


def device(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(np.ascontiguousarray(array))
    return buffer


def host(buffer, dtype, shape=-1):
    out = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    buffer.copy_to(out)
    return out.reshape(shape)


def zeros(count, dtype):
    return device(np.zeros(count, dtype))


@pytest.mark.parametrize("n", [1, 1000, 50_000])
@pytest.mark.parametrize(
    ("name", "block"), [("reduce<64>", 64), ("reduce<256>", 256), ("reduce_by_shuffles", 96)]
)
def test_reductions(module, rng, name, block, n):
    x = rng.random(n, np.float32)
    out = zeros(1, np.float32)
    module[name][-(-n // block), block](device(x), out, n)
    np.testing.assert_allclose(host(out, np.float32), x.sum(dtype=np.float64), rtol=1e-5)


@pytest.mark.parametrize("block", [1, 16, 64, 512])
def test_scan(module, rng, block):
    x = rng.integers(-100, 100, 2 * block, np.int32)
    out = zeros(2 * block, np.int32)
    module["scan"][1, block, 8 * block](device(x), out)
    np.testing.assert_array_equal(host(out, np.int32), np.cumsum(x) - x)


def test_chained_scan(module, rng):
    module.get_global("chain").fill(0)
    x = rng.integers(0, 1000, 300 * 32, np.uint32)
    out = zeros(x.size, np.uint32)
    module["chained_scan"][300, 32](device(x), out)
    np.testing.assert_array_equal(host(out, np.uint32), np.cumsum(x))


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (7, 100), (16, 256)])
def test_histogram(module, rng, grid, block):
    x = rng.integers(0, 256, 20_000, np.uint8)
    bins = zeros(256, np.uint32)
    module["histogram"][grid, block](device(x), bins, x.size)
    np.testing.assert_array_equal(host(bins, np.uint32), np.bincount(x, minlength=256))


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (8, 64)])
def test_spin_lock(module, grid, block):
    counter = zeros(1, np.int32)
    module["spin_lock"][grid, block](zeros(1, np.int32), counter)
    assert host(counter, np.int32)[0] == 3 * grid * block


def test_last_block(module, rng):
    x = rng.random(10_000, np.float32)
    out = zeros(1, np.float32)
    for _ in range(2):  # the counter wraps to 0
        module["last_block_sums"][20, 64](device(x), zeros(20, np.float32), out, x.size)
        np.testing.assert_allclose(host(out, np.float32), x.sum(), rtol=1e-5)


def test_recursion(module):
    out = zeros(64, np.int32)
    module["recursive"][1, 64](out)
    fibonacci = [0, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    expected = [fibonacci[i % 12] if i % 2 else 2 * (i % 5) + 3 for i in range(64)]
    np.testing.assert_array_equal(host(out, np.int32), expected)


def test_calls_by_pointer(module, rng):
    x = rng.random(60, np.float32)
    out = zeros(60, np.float32)
    module["by_pointers"][1, 60](device(x), out)
    i = np.arange(60)
    expected = np.choose(i % 3, [2 * x, x * x, -x]) + np.where(i % 2, x * x, 3 * x)
    np.testing.assert_allclose(host(out, np.float32), expected, rtol=1e-6)


@pytest.mark.parametrize("width", [4, 16, 32])
def test_tiles(module, rng, width):
    x = rng.integers(-50, 50, 96, np.int32)
    out = zeros(96, np.int32)
    module[f"tiles<{width}>"][1, 96](device(x), out)
    sums = np.repeat(x.reshape(-1, width).sum(1), width)
    np.testing.assert_array_equal(host(out, np.int32), sums * 100 + np.arange(96) % width)


def test_coalesced_groups(module, rng):
    x = rng.integers(0, 30, 128, np.int32)
    counter, ranks = zeros(1, np.int32), zeros(128, np.int32)
    module["coalesced"][1, 128](device(x), counter, ranks)
    got = host(ranks, np.int32)
    chosen = x % 3 == 0
    assert host(counter, np.int32)[0] == chosen.sum()
    np.testing.assert_array_equal(np.sort(got[chosen]), np.arange(chosen.sum()))
    assert (got[~chosen] == -1).all()


def test_grid_barrier(module):
    n = 6 * 64
    a = np.arange(n, dtype=np.int32)
    da, db = device(a), zeros(n, np.int32)
    module.get_global("grid_arrived").fill(0)
    module["grid_barrier"][6, 64](da, db, 5)
    for _ in range(5):
        a = np.roll(np.roll(a, -1) + 1, -1)
    np.testing.assert_array_equal(host(da, np.int32), a)


def test_votes(module, rng):
    x = rng.integers(-3, 8, 32, np.int32)
    out = zeros(128, np.uint32)
    module["votes"][1, 32](device(x), out)
    bits = 1 << np.arange(32, dtype=np.uint64)
    got = host(out, np.uint32, (32, 4))
    assert (got[:, 0] == bits[x > 0].sum()).all()
    assert (got[:, 1] == (7 in x) + 2).all()
    np.testing.assert_array_equal(got[:, 2], [bits[x == value].sum() for value in x])
    assert set(got[1::2, 3]) <= {0xFFFFFFFF, 0xAAAAAAAA}


@pytest.mark.parametrize("block", [32, 100, 128])
def test_stencil(module, rng, block):
    n = 1001
    x, weights = rng.random(n, np.float32), rng.random(5, np.float32)
    module.get_global("weights").copy_from(weights)
    out = zeros(n, np.float32)
    module["stencil"][-(-n // block), block, 4 * (block + 4)](device(x), out, n)
    expected = np.convolve(x, weights[::-1], "same")
    np.testing.assert_allclose(host(out, np.float32), expected, rtol=1e-4)


@pytest.mark.parametrize("n", [2, 64, 1024])
def test_bitonic_sort(module, rng, n):
    keys = rng.integers(0, 2**32, n, np.uint32)
    buffer = device(keys)
    module["bitonic"][1, n, 4 * n](buffer)
    np.testing.assert_array_equal(host(buffer, np.uint32), np.sort(keys))


@pytest.mark.parametrize(
    ("name", "dtype", "tile", "tolerance"),
    [
        ("float, 16", np.float32, 16, 1e-5),
        ("double, 8", np.float64, 8, 1e-12),
        ("__half, 16", np.float16, 16, 2e-2),
    ],
)
@pytest.mark.parametrize("n", [16, 37, 64])
def test_gemm(module, rng, name, dtype, tile, tolerance, n):
    a, b = rng.random((n, n)).astype(dtype), rng.random((n, n)).astype(dtype)
    c = zeros(n * n, dtype)
    blocks = -(-n // tile)
    module[f"gemm<{name}>"][(blocks, blocks), (tile, tile)](device(a), device(b), c, n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(host(c, dtype, (n, n)), expected, rtol=tolerance)


def test_structs_by_value(module):
    layout = np.dtype(
        [("at", np.float32, 3), ("mass", np.float64), ("kind", np.int16), ("name", np.int8, 3)],
        align=True,
    )
    particle = np.zeros(1, layout)
    particle["at"], particle["mass"], particle["kind"] = (1.5, 2, 3), 0.25, -7
    particle["name"] = (1, 2, 9)
    out = zeros(8, np.float32)
    size = np.zeros(1, [("x", np.int32), ("y", np.int32)])
    size["y"] = 11
    module["by_value"][1, 8](particle[0], out, size[0], True)
    expected = 1.5 + np.arange(8) % 4 + 6 + 0.25 - 7 + 9 + 11 + 1
    np.testing.assert_array_equal(host(out, np.float32), expected)


def test_barrier_after_threads_have_left(module, rng):
    x = rng.integers(-10, 100, 128, np.int32)
    out = zeros(128, np.int32)
    module["early_exit"][1, 128](device(x), out)
    expected = np.where(x < 0, 0, x[x >= 0].sum())
    np.testing.assert_array_equal(host(out, np.int32), expected)


def test_named_barriers(module):
    out = zeros(8, np.int32)
    module["producer_consumer"][1, 64](out)
    np.testing.assert_array_equal(host(out, np.int32), np.arange(8) ** 2)


def test_printf(python):
    done = python(r'''
        import cyrt
        kernel = cyrt.Kernel(r"""
        #include <cstdio>
        extern "C" __global__ void hello(double x) {
            if (threadIdx.x % 16 == 3)
                printf("thread %2d of %s: %.3f %lld %5.1e%% %c %#x\n", threadIdx.x, "warp", x,
                       -12345678901ll, 0.5f, 'q', 255);
        }""", "hello")
        kernel[1, 32](2.5)
        cyrt.synchronize()
    ''')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"thread {i:2} of warp: 2.500 -12345678901 5.0e-01% q 0xff" for i in (3, 19)
    ]
