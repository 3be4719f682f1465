// Sums of products along one dimension, one for each element of the result: matrix by vector,
// vector by matrix, and batches of dot products.
//
// Two layouts. Where elements that are summed are side by side, threads of a row share a sum
// (`rows`); where those of neighbouring results do, threads take a column each and blockDim.y of
// them share it (`columns`). Where that makes few blocks the summed dimension is split, and
// `sum_parts` adds the parts, in one order always.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "product.cuh"
#include "reduce.cuh"
#include "strided.cuh"
#include "params/matmul.h"

namespace cyrt {

template <class C> __device__ inline C conjugate(C a, uint32) { return a; }
template <class T> __device__ inline complex<T> conjugate(complex<T> a, uint32 flags) {
    return flags & DOT_CONJUGATE ? conj(a) : a;
}

template <class C, int N> __device__ inline C sum_items(Items<C, N> items) {
#pragma unroll
    for (int half = N / 2; half; half /= 2) {
#pragma unroll
        for (int k = 0; k < half; ++k) items.item[k] = items.item[k] + items.item[k + half];
    }
    return items.item[0];
}

// Adds the products of AHEAD pairs of vectors, where they are there. All are on their way before
// the first is used, also those beyond the end, which are loaded from before it.
template <class T, int N, int AHEAD>
__device__ inline void multiply_all(Items<compute_of<T>, N>& sums, const Items<T, N> (&x)[AHEAD],
                                    const Items<T, N> (&y)[AHEAD], const bool (&there)[AHEAD],
                                    uint32 flags) {
    asm volatile("" ::: "memory");
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        if (!there[i]) continue;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            multiply_add(sums.item[k], conjugate(widen(x[i].item[k]), flags), widen(y[i].item[k]));
        }
    }
}

template <class T, class Results>
__device__ inline void finish_sum(const Dot& args, const Results& results, int64 offset, int64 part,
                                  compute_of<T> sum) {
    if (args.flags & MATMUL_PARTS) {
        static_cast<compute_of<T>*>(args.out)[part * args.rows * args.columns + offset] = sum;
    } else {
        results(args.out, offset, sum);
    }
}

// A vector in its type in memory. Vectors cross branches in this form, because elements of 16 bits
// would take a register each.
template <class T, int N> using Packed = typename Word<sizeof(T) * N>::type;

// Loads AHEAD vectors from index `at` on; those beyond the limit are loaded from `at` again.
template <class T, int N, int AHEAD>
__device__ inline void load_ahead(Packed<T, N> (&x)[AHEAD], const T* from, int64 stride, int64 at,
                                  uint32 step, int64 limit) {
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        int64 k = at + i * step;
        if (k >= limit) k = at;
        x[i] = *reinterpret_cast<const Packed<T, N>*>(from + k * stride);
    }
}

template <class T, int N, int AHEAD>
__device__ inline void unpack(Items<T, N> (&items)[AHEAD], const Packed<T, N> (&x)[AHEAD]) {
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) memcpy(&items[i], &x[i], sizeof(x[i]));
}

// A thread's sum of a row's elements from begin to limit; it waits for what the kernel depends on.
template <class T, int N>
__device__ inline compute_of<T> sum_row(const Dot& args, const T* a, const T* b, int64 begin,
                                        int64 limit) {
    constexpr int AHEAD = N > 1 ? 4 : 8;
    uint32 step = blockDim.x * N;
    Items<compute_of<T>, N> sums = {};
    auto load = [&](Packed<T, N>(&x)[AHEAD], int64 at) {
        load_ahead<T, N>(x, a, N > 1 ? 1 : args.a_stride, at, step, limit);
    };
    auto add = [&](const Packed<T, N>(&packed)[AHEAD], int64 at) {
        Items<T, N> x[AHEAD], y[AHEAD];
        Packed<T, N> of_b[AHEAD];
        bool there[AHEAD];
        load_ahead<T, N>(of_b, b, N > 1 ? 1 : args.b_stride, at, step, limit);
        unpack<T, N>(x, packed);
        unpack<T, N>(y, of_b);
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) there[i] = at + i * step < limit;
        multiply_all<T>(sums, x, y, there, args.flags);
    };
    int64 at = begin + threadIdx.x * N;
    Packed<T, N> x[AHEAD];
    if (!args.early) wait_for_dependencies(args);
    if (at < limit) load(x, at);
    if (args.early) wait_for_dependencies(args);
    launch_dependents<PRODUCT_BLOCKS>();
#pragma unroll 1
    while (at < limit) {
        add(x, at);
        at += AHEAD * step;
        if (at < limit) load(x, at);
    }
    return sum_items(sums);
}

// blockDim.x threads, a power of two, share a row; blockDim.y rows make whole warps.
template <class T, class Results = StoreResults<T>>
__device__ inline void rows(const Dot& args, const Results& results = {}, Blocks blocks = {}) {
    using C = compute_of<T>;
    __shared__ alignas(16) unsigned char bytes[32 * sizeof(C)];
    C* of_warp = reinterpret_cast<C*>(bytes);
    uint32 row_block = divide(blocks.number, args.parts);
    uint32 part = blocks.number - row_block * args.parts.size;
    uint32 row = row_block * blockDim.y + threadIdx.y;
    int64 begin = part * args.depth, limit = begin + args.depth;
    if (limit > args.length) limit = args.length;
    int64 offsets[2];
    locate_row(args.outer, row < args.rows ? row : 0, args.num_outer, offsets);
    const T* a = static_cast<const T*>(args.a) + offsets[0];
    const T* b = static_cast<const T*>(args.b) + offsets[1];
    __builtin_assume(__isGlobal(a));
    __builtin_assume(__isGlobal(b));

    C sum = args.flags & DOT_VECTOR ? sum_row<T, items_of<T>>(args, a, b, begin, limit)
                                    : sum_row<T, 1>(args, a, b, begin, limit);
#pragma unroll 1
    for (uint32 lanes = (blockDim.x < 32 ? blockDim.x : 32) / 2; lanes; lanes /= 2) {
        sum = sum + shuffle_xor(sum, lanes);
    }
    if (blockDim.x > 32) {
        uint32 warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32;
        if (threadIdx.x % 32 == 0) of_warp[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (uint32 w = 1; w < blockDim.x / 32; ++w) sum = sum + of_warp[warp + w];
        }
    }
    if (threadIdx.x == 0 && row < args.rows) finish_sum<T>(args, results, row, part, sum);
}

// Adds up the sums of all threads of a column, in a block of x times y threads: x is a power of two
// of at most 32, and y, at least N, makes whole warps of them. Thread i, below x * N, gets that of
// column i; a thread's N are side by side.
template <class C, int N> __device__ inline C sum_columns(Items<C, N> sums) {
    __shared__ alignas(16) unsigned char bytes[32 * 32 * N * sizeof(C)];
    C* of_warp = reinterpret_cast<C*>(bytes);
    uint32 thread = threadIdx.y * blockDim.x + threadIdx.x, width = blockDim.x * N;
#pragma unroll 1
    for (uint32 lanes = blockDim.x; lanes < 32; lanes *= 2) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            sums.item[k] = sums.item[k] + shuffle_xor(sums.item[k], lanes);
        }
    }
    if (thread % 32 < blockDim.x) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            of_warp[thread / 32 * width + threadIdx.x * N + k] = sums.item[k];
        }
    }
    __syncthreads();
    C sum = {};
    if (thread < width) {
        sum = of_warp[thread];
#pragma unroll 4
        for (uint32 w = 1; w < blockDim.x * blockDim.y / 32; ++w) {
            sum = sum + of_warp[w * width + thread];
        }
    }
    return sum;
}

// A block takes blockDim.x * N columns, side by side in the result. It waits for what the kernel
// depends on.
template <class T, int N, class Results>
__device__ inline void sum_products(const Dot& args, const Results& results, const T* a, const T* b,
                                    uint32 row, uint32 chunk, uint32 part) {
    constexpr int AHEAD = 4;
    uint32 left = chunk * blockDim.x * N, column = left + threadIdx.x * N;
    int64 begin = part * args.depth, limit = begin + args.depth;
    if (limit > args.length) limit = args.length;
    if (column >= args.columns) limit = 0;
    a += column * args.a_column;
    b += column * args.b_column;
    Items<compute_of<T>, N> sums = {};
    auto load = [&](Packed<T, N>(&x)[AHEAD], int64 at) {
        load_ahead<T, N>(x, a, args.a_stride, at, blockDim.y, limit);
    };
    auto add = [&](const Packed<T, N>(&packed)[AHEAD], int64 at) {
        Items<T, N> x[AHEAD], y[AHEAD];
        bool there[AHEAD];
        if (args.b_column == 0) {
            Packed<T, 1> of_b[AHEAD];
            Items<T, 1> single[AHEAD];
            load_ahead<T, 1>(of_b, b, args.b_stride, at, blockDim.y, limit);
            unpack<T, 1>(single, of_b);
#pragma unroll
            for (int i = 0; i < AHEAD; ++i) y[i] = splat<N>(single[i].item[0]);
        } else {
            Packed<T, N> of_b[AHEAD];
            load_ahead<T, N>(of_b, b, args.b_stride, at, blockDim.y, limit);
            unpack<T, N>(y, of_b);
        }
        unpack<T, N>(x, packed);
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) there[i] = at + i * blockDim.y < limit;
        multiply_all<T>(sums, x, y, there, args.flags);
    };
    int64 at = begin + threadIdx.y;
    Packed<T, N> x[AHEAD];
    if (!args.early) wait_for_dependencies(args);
    if (at < limit) load(x, at);
    if (args.early) wait_for_dependencies(args);
    launch_dependents<PRODUCT_BLOCKS>();
#pragma unroll 1
    while (at < limit) {
        add(x, at);
        at += AHEAD * blockDim.y;
        if (at < limit) load(x, at);
    }
    auto sum = sum_columns(sums);
    uint32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    if (thread < blockDim.x * N && left + thread < args.columns) {
        finish_sum<T>(args, results, int64(row) * args.columns + left + thread, part, sum);
    }
}

template <class T, class Results = StoreResults<T>>
__device__ inline void columns(const Dot& args, const Results& results = {}, Blocks blocks = {}) {
    uint32 rest = divide(blocks.number, args.parts), row = divide(rest, args.chunks);
    uint32 part = blocks.number - rest * args.parts.size, chunk = rest - row * args.chunks.size;
    int64 offsets[2];
    locate_row(args.outer, row, args.num_outer, offsets);
    const T* a = static_cast<const T*>(args.a) + offsets[0];
    const T* b = static_cast<const T*>(args.b) + offsets[1];
    __builtin_assume(__isGlobal(a));
    __builtin_assume(__isGlobal(b));
    if (args.flags & DOT_VECTOR) {
        sum_products<T, items_of<T>>(args, results, a, b, row, chunk, part);
    } else {
        sum_products<T, 1>(args, results, a, b, row, chunk, part);
    }
}

template <class T, class Results = StoreResults<T>>
__device__ inline void sum_parts(const Parts& args, const Results& results = {},
                                 Blocks blocks = {}) {
    using C = compute_of<T>;
    constexpr int AHEAD = 4;
    wait_for_dependencies(args);
    launch_dependents();
    int64 offset = int64(blocks.number) * blockDim.x + threadIdx.x;
    const C* in = static_cast<const C*>(args.input) + offset;
    __builtin_assume(__isGlobal(in));
    Items<C, 1> sum = {};
    if (offset < args.n) {
#pragma unroll 1
        for (uint32 part = threadIdx.y; part < args.count; part += AHEAD * blockDim.y) {
            C x[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; ++i) {
                uint32 k = part + i * blockDim.y;
                x[i] = k < args.count ? in[k * args.n] : C();
            }
#pragma unroll
            for (int i = 0; i < AHEAD; ++i) sum.item[0] = sum.item[0] + x[i];
        }
    }
    C whole = sum_columns(sum);
    if (threadIdx.y == 0 && offset < args.n) results(args.out, offset, whole);
}

}  // namespace cyrt
