"""Matrix instructions, asynchronous copies and barriers in shared memory, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cyrt

WMMA = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

template <int m, int n, int k, class In, class Stored, class Sum, class Order, bool by_row>
__global__ void wmma_gemm(const Stored* a, const Stored* b, const Sum* c, Sum* d, int columns,
                          int inner) {
    int row = blockIdx.x * m, column = blockIdx.y * n;
    wmma::fragment<wmma::matrix_a, m, n, k, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, m, n, k, In, Order> right;
    wmma::fragment<wmma::accumulator, m, n, k, Sum> sum;
    wmma::load_matrix_sync(sum, c + row * columns + column, columns, wmma::mem_row_major);
    for (int i = 0; i < inner; i += k) {
        wmma::load_matrix_sync(left, a + row * inner + i, inner);
        if (by_row) wmma::load_matrix_sync(right, b + i * columns + column, columns);
        else wmma::load_matrix_sync(right, b + column * inner + i, inner);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(d + row * columns + column, sum, columns, wmma::mem_row_major);
}
"""

TYPES = {
    "half": ("__half", "__half", np.float16, "float", np.float32),
    "half to half": ("__half", "__half", np.float16, "__half", np.float16),
    "bfloat16": ("__nv_bfloat16", "__nv_bfloat16", ml_dtypes.bfloat16, "float", np.float32),
    "tf32": ("wmma::precision::tf32", "float", np.float32, "float", np.float32),
    "double": ("double", "double", np.float64, "double", np.float64),
    "signed char": ("signed char", "signed char", np.int8, "int", np.int32),
    "unsigned char": ("unsigned char", "unsigned char", np.uint8, "int", np.int32),
}
SHAPES = [
    *(("half", s) for s in [(16, 16, 16), (32, 8, 16), (8, 32, 16)]),
    ("half to half", (16, 16, 16)),
    ("bfloat16", (16, 16, 16)),
    ("bfloat16", (8, 32, 16)),
    ("tf32", (16, 16, 8)),
    ("double", (8, 8, 4)),
    *(("signed char", s) for s in [(16, 16, 16), (32, 8, 16), (8, 32, 16)]),
    ("unsigned char", (16, 16, 16)),
]


def device(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(np.ascontiguousarray(array))
    return buffer


def host(buffer, dtype, shape):
    out = np.empty(shape, dtype)
    buffer.copy_to(out)
    return out


def numbers(rng, shape, dtype):
    return rng.integers(0 if dtype is np.uint8 else -7, 8, shape).astype(dtype)


@pytest.mark.parametrize(
    ("kind", "shape", "order"),
    [("half", (16, 16, 16), "row_major"), *((kind, shape, "col_major") for kind, shape in SHAPES)],
)
def test_wmma(rng, kind, shape, order):
    (m, n, k), (cxx, stored, dtype, total, total_dtype) = shape, TYPES[kind]
    by_row = order == "row_major"
    types = f"{cxx}, {stored}, {total}, wmma::{order}, {str(by_row).lower()}"
    name = f"wmma_gemm<{m}, {n}, {k}, {types}>"
    kernel = cyrt.Kernel(WMMA, name)
    rows, columns, inner = 2 * m, 3 * n, 2 * k
    a, b = numbers(rng, (rows, inner), dtype), numbers(rng, (inner, columns), dtype)
    c = numbers(rng, (rows, columns), total_dtype)
    d = cyrt.Buffer(c.nbytes)
    kernel[(2, 3), 32](device(a), device(b if by_row else b.T), device(c), d, columns, inner)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64))
    np.testing.assert_array_equal(host(d, total_dtype, c.shape).astype(np.float64), expected)


MMA = r"""
#include <cuda_fp16.h>
// A block's warp multiplies 16 x 16 by 16 x 8, the operands fetched as the hardware lays them out.
extern "C" __global__ void mma_by_ldmatrix(const __half* a, const __half* b, float* d,
                                           __half* b_again) {
    __shared__ alignas(16) __half left[16][16], right[16][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) left[i / 16][i % 16] = a[i];
    for (int i = lane; i < 128; i += 32) right[i / 8][i % 8] = b[i];
    __syncwarp();
    unsigned fa[4], fb[2], again;
    unsigned at = __cvta_generic_to_shared(&left[lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at));
    at = __cvta_generic_to_shared(&right[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1]) : "r"(at));
    float c[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3},"
                 " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(again) : "r"(fb[0]));
    reinterpret_cast<unsigned*>(b_again)[lane] = again;
}

// Each lane fills in its fragments by the tables of the PTX ISA.
extern "C" __global__ void mma_tf32(const float* a, const float* b, float* d) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3},"
                 " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(__float_as_uint(a[g * 8 + t])), "r"(__float_as_uint(a[(g + 8) * 8 + t])),
                   "r"(__float_as_uint(a[g * 8 + t + 4])),
                   "r"(__float_as_uint(a[(g + 8) * 8 + t + 4])),
                   "r"(__float_as_uint(b[t * 8 + g])), "r"(__float_as_uint(b[(t + 4) * 8 + g])));
    for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
}

extern "C" __global__ void mma_s8(const int* a, const signed char* b, int* d) {   // 16 x 32, 32 x 8
    int g = threadIdx.x / 4, t = threadIdx.x % 4, c[4] = {}, fb[2];
    for (int r = 0; r < 2; ++r)
        for (int i = 0; i < 4; ++i)
            reinterpret_cast<signed char*>(&fb[r])[i] = b[(r * 16 + t * 4 + i) * 8 + g];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3},"
                 " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[g * 8 + t]), "r"(a[(g + 8) * 8 + t]), "r"(a[g * 8 + t + 4]),
                   "r"(a[(g + 8) * 8 + t + 4]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = c[i];
}
"""


@pytest.fixture(scope="module")
def mma():
    return cyrt.Module(MMA)


def test_mma_by_ldmatrix(rng, mma):
    a, b = numbers(rng, (16, 16), np.float16), numbers(rng, (16, 8), np.float16)
    d, again = cyrt.Buffer(16 * 8 * 4), cyrt.Buffer(128)
    mma["mma_by_ldmatrix"][1, 32](device(a), device(b), d, again)
    start = np.array([[1, 2] * 4, [3, 4] * 4]).repeat(8, 0)
    expected = a.astype(np.float64) @ b.astype(np.float64) + start
    np.testing.assert_array_equal(host(d, np.float32, (16, 8)), expected)
    np.testing.assert_array_equal(host(again, np.float16, (8, 8)), b[:8])


def test_mma_tf32(rng, mma):
    a, b = numbers(rng, (16, 8), np.float32), numbers(rng, (8, 8), np.float32)
    d = cyrt.Buffer(16 * 8 * 4)
    mma["mma_tf32"][1, 32](device(a), device(b), d)
    np.testing.assert_array_equal(host(d, np.float32, (16, 8)), a @ b)


def test_mma_s8(rng, mma):
    a, b = rng.integers(-128, 128, (16, 32), np.int8), rng.integers(-128, 128, (32, 8), np.int8)
    d = cyrt.Buffer(16 * 8 * 4)
    mma["mma_s8"][1, 32](device(a), device(b), d)
    np.testing.assert_array_equal(host(d, np.int32, (16, 8)), a.astype(int) @ b.astype(int))


COPIES = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

extern "C" __global__ void pipelined(const int4* x, int4* out, int rounds) {
    __shared__ int4 stage[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &x[t], 16);
    __pipeline_commit();
    for (int i = 0; i < rounds; ++i) {
        if (i + 1 < rounds)
            __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[(i + 1) * 64 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 64 + t] = stage[i % 2][63 - t];
        __syncthreads();
    }
}

extern "C" __global__ void partly(const char* x, char* out, const unsigned* sizes) {
    __shared__ alignas(16) char stage[32][16];
    int t = threadIdx.x;
    unsigned at = __cvta_generic_to_shared(stage[t]);
    // Where nothing is to be copied, the address may be any.
    const char* from = sizes[t] ? x + 16 * t : nullptr;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
                 "cp.async.wait_all;" :: "r"(at), "l"(from), "r"(sizes[t]) : "memory");
    for (int i = 0; i < 16; ++i) out[16 * t + i] = stage[t][i];
}

extern "C" __global__ void by_group(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x + n * blockIdx.x, sizeof(float) * n);
    cg::wait(block);
    for (int i = block.thread_rank(); i < n; i += block.size())
        out[n * blockIdx.x + i] = tile[n - 1 - i];
}

// Half of the threads produce, the others consume.
extern "C" __global__ void handed_over(int* out, int rounds) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(8) char memory[2 * sizeof(Barrier)];
    __shared__ int slot[32];
    Barrier* full = reinterpret_cast<Barrier*>(memory);
    Barrier* empty = full + 1;
    if (threadIdx.x == 0) {
        init(full, blockDim.x);
        init(empty, blockDim.x);
    }
    __syncthreads();
    int t = threadIdx.x % 32;
    for (int i = 0; i < rounds; ++i) {
        if (threadIdx.x < 32) {
            slot[t] = i * 100 + t;
            (void)full->arrive();
            empty->arrive_and_wait();
        } else {
            full->arrive_and_wait();
            out[i * 32 + t] = slot[31 - t];
            (void)empty->arrive();
        }
    }
}
"""


@pytest.fixture(scope="module")
def copies():
    return cyrt.Module(COPIES)


@pytest.mark.parametrize("rounds", [1, 5])
def test_pipelined_copies(rng, copies, rounds):
    x = rng.integers(0, 2**31, (rounds, 64, 4), np.int32)
    out = cyrt.Buffer(x.nbytes)
    copies["pipelined"][1, 64](device(x), out, rounds)
    np.testing.assert_array_equal(host(out, np.int32, x.shape), x[:, ::-1])


def test_partial_copies(rng, copies):
    x = rng.integers(1, 127, (32, 16), np.int8)
    sizes = rng.choice(np.array([0, 1, 4, 7, 12, 16], np.uint32), 32)
    out = cyrt.Buffer(x.nbytes)
    copies["partly"][1, 32](device(x), out, device(sizes))
    expected = np.where(np.arange(16) < sizes[:, None], x, 0)
    np.testing.assert_array_equal(host(out, np.int8, x.shape), expected)


@pytest.mark.parametrize("n", [4, 37, 512])
def test_copies_by_group(rng, copies, n):
    x = rng.random((3, n), np.float32)
    out = cyrt.Buffer(x.nbytes)
    copies["by_group"][3, 64, 4 * n](device(x), out, n)
    np.testing.assert_array_equal(host(out, np.float32, x.shape), x[:, ::-1])


def test_barriers_in_memory(copies):
    out = cyrt.Buffer(4 * 32 * 6)
    copies["handed_over"][1, 64](out, 6)
    expected = np.arange(6)[:, None] * 100 + np.arange(32)[::-1]
    np.testing.assert_array_equal(host(out, np.int32, (6, 32)), expected)
