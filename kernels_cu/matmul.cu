// Products of matrices, batched: tiles in shared memory, a square of sums in each thread's
// registers. Products in which an operand is a vector are computed by dot.cuh, those in which one
// has few rows by skinny.cuh and skinny_ring.cuh.
//
// Any strides will do: the lanes of a tile run along the dimension of an operand's smaller stride.
// Where tiles are few the summed dimension is split, and sum_parts adds the parts.
#pragma once

#include "dot.cuh"
#include "skinny.cuh"
#include "skinny_ring.cuh"

namespace cyrt {

// Threads are SIDE by SIDE, each with R by R sums; two buffers in shared memory hold DEPTH elements
// of k.
template <class T, int SIDE_, int R_, int DEPTH_> struct MatmulTile {
    using C = compute_of<T>;
    static constexpr int SIDE = SIDE_, R = R_, DEPTH = DEPTH_, THREADS = SIDE * SIDE;
    static constexpr int SIZE = SIDE * R, PER_THREAD = SIZE * DEPTH / THREADS;
    static constexpr int WORD = 16 / sizeof(C) < R ? 16 / sizeof(C) : R;  // sums side by side
    static constexpr int VECTOR = 16 / sizeof(T) < PER_THREAD ? 16 / sizeof(T) : PER_THREAD;
    static constexpr int ROW = SIZE + WORD;  // no two lanes' words are in one bank

    struct alignas(16) Shared {
        C item[DEPTH][ROW];
    };
};

// The elements of one operand that a thread copies to shared memory: `first`, first + step, ... in
// the dimension that lanes do not run along, VECTOR side by side in the other.
template <class Shape, class T> struct MatmulShare {
    using C = typename Shape::C;
    const T* at;
    int64 step_bytes, next;  // to the next of this thread, to those of the next tile
    uint32 fast, slow, step, size;
    bool along, vector;
    T item[Shape::PER_THREAD];

    __device__ MatmulShare(const T* from, int64 stride, int64 summed, uint32 begin, uint32 size,
                           uint32 k, bool along, bool vector)
        : next(summed * Shape::DEPTH), size(size - begin), along(along), vector(vector) {
        uint32 lanes = along ? Shape::DEPTH : Shape::SIZE, width = vector ? Shape::VECTOR : 1;
        uint32 each = lanes / width;
        fast = threadIdx.x % each * width;
        slow = threadIdx.x / each;
        step = Shape::THREADS / each;
        int64 fast_stride = along ? summed : stride, slow_stride = along ? stride : summed;
        at = from + begin * stride + k * summed + fast * fast_stride + slow * slow_stride;
        step_bytes = step * slow_stride;
    }

    // Elements of k from `left` on, and of other tiles, are 0.
    __device__ void load(uint32 left) {
        uint32 fast_limit = along ? left : size, slow_limit = along ? size : left;
        __builtin_assume(__isGlobal(at));
        if (vector) {
#pragma unroll
            for (int j = 0; j < Shape::PER_THREAD / Shape::VECTOR; ++j) {
                Items<T, Shape::VECTOR> items = {};
                if (fast < fast_limit && slow + j * step < slow_limit) {
                    items = load_vector<Shape::VECTOR>(at + j * step_bytes);
                }
#pragma unroll
                for (int v = 0; v < Shape::VECTOR; ++v) {
                    item[j * Shape::VECTOR + v] = items.item[v];
                }
            }
        } else {
#pragma unroll
            for (int j = 0; j < Shape::PER_THREAD; ++j) {
                item[j] = T();
                if (fast < fast_limit && slow + j * step < slow_limit) {
                    item[j] = at[j * step_bytes];
                }
            }
        }
        at += next;
    }

    __device__ void store(typename Shape::Shared& shared) const {
        constexpr int VECTOR = Shape::VECTOR, ROW = Shape::ROW;
        C* to = &shared.item[0][0] + (along ? fast * ROW + slow : slow * ROW + fast);
        uint32 stride = along ? step : step * ROW;
        if (!vector) {
#pragma unroll
            for (int j = 0; j < Shape::PER_THREAD; ++j) to[j * stride] = widen(item[j]);
        } else if (along) {
#pragma unroll
            for (int j = 0; j < Shape::PER_THREAD; ++j) {
                to[j / VECTOR * stride + j % VECTOR * ROW] = widen(item[j]);
            }
        } else {
            constexpr int WORD = VECTOR < Shape::WORD ? VECTOR : Shape::WORD;
#pragma unroll
            for (int j = 0; j < Shape::PER_THREAD; j += WORD) {
                Items<C, WORD> word;
#pragma unroll
                for (int v = 0; v < WORD; ++v) word.item[v] = widen(item[j + v]);
                store_vector<WORD>(to + j / VECTOR * stride + j % VECTOR, word);
            }
        }
    }
};

// Sum number i of a thread is number index<Shape>(i, thread) of its tile.
template <class Shape> __device__ inline uint32 index(int i, uint32 thread) {
    return i / Shape::WORD * Shape::SIDE * Shape::WORD + thread * Shape::WORD + i % Shape::WORD;
}

// The thread's sums are those of a tile at (first_m, first_n) of the matrix that begins at `first` of
// the results.
template <class Shape, class To, class Results>
__device__ inline void finish_sums(const Product& args, const Results& results, int64 first,
                                   uint32 first_m, uint32 first_n, uint32 x, uint32 y,
                                   const typename Shape::C (&sums)[Shape::R][Shape::R]) {
    constexpr int WORD = Shape::WORD;
#pragma unroll
    for (int i = 0; i < Shape::R; ++i) {
        uint32 m = first_m + index<Shape>(i, y);
        if (m >= args.m) continue;
#pragma unroll
        for (int j = 0; j < Shape::R; j += WORD) {
            uint32 n = first_n + index<Shape>(j, x);
            int64 offset = first + int64(m) * args.n + n;
            if (Results::VECTORS && args.flags & PRODUCT_VECTOR_OUT) {
                Items<To, WORD> word;
#pragma unroll
                for (int v = 0; v < WORD; ++v) word.item[v] = cast<To>(sums[i][j + v]);
                if (n < args.n) store_vector<WORD>(global<To>(args.out) + offset, word);
            } else {
#pragma unroll
                for (int v = 0; v < WORD; ++v) {
                    if (n + v < args.n) results(args.out, offset + v, sums[i][j + v]);
                }
            }
        }
    }
}

template <class T, class Shape, class Results = StoreResults<T>>
__device__ inline void product(const Product& args, const Results& results = {},
                               Blocks blocks = {}) {
    using C = typename Shape::C;
    constexpr int R = Shape::R, WORD = Shape::WORD, DEPTH = Shape::DEPTH;
    __shared__ typename Shape::Shared tile_a[2], tile_b[2];
    wait_for_dependencies(args);
    launch_dependents();
    uint32 rest = divide(blocks.number, args.tiles_n);
    uint32 first_n = (blocks.number - rest * args.tiles_n.size) * Shape::SIZE;
    uint32 above = divide(rest, args.tiles_m);
    uint32 first_m = (rest - above * args.tiles_m.size) * Shape::SIZE;
    uint32 batch = divide(above, args.parts), part = above - batch * args.parts.size;
    uint32 begin = part * args.depth;
    uint32 left = args.k - begin < args.depth ? args.k - begin : args.depth;
    int64 offsets[2];
    locate_row(args.batch, batch, args.num_batch, offsets);
    MatmulShare<Shape, T> a(static_cast<const T*>(args.a) + offsets[0], args.a_stride,
                            args.a_summed, first_m, args.m, begin, args.flags & PRODUCT_ALONG_A,
                            args.flags & PRODUCT_VECTOR_A);
    MatmulShare<Shape, T> b(static_cast<const T*>(args.b) + offsets[1], args.b_stride,
                            args.b_summed, first_n, args.n, begin, args.flags & PRODUCT_ALONG_B,
                            args.flags & PRODUCT_VECTOR_B);

    // A warp is 8 threads of the tile wide and 4 high.
    uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32 x = lane % 8 + warp % (Shape::SIDE / 8) * 8, y = lane / 8 + warp / (Shape::SIDE / 8) * 4;
    C sums[R][R] = {};
    a.load(left);
    b.load(left);
    a.store(tile_a[0]);
    b.store(tile_b[0]);
    __syncthreads();
#pragma unroll 1
    for (uint32 now = 0;; now ^= 1) {
        bool more = left > DEPTH;
        left -= DEPTH;
        if (more) {
            a.load(left);
            b.load(left);
        }
#pragma unroll 4
        for (int k = 0; k < DEPTH; ++k) {
            C of_a[R], of_b[R];
#pragma unroll
            for (int i = 0; i < R; i += WORD) {
                auto word_a = load_vector<WORD>(&tile_a[now].item[k][index<Shape>(i, y)]);
                auto word_b = load_vector<WORD>(&tile_b[now].item[k][index<Shape>(i, x)]);
#pragma unroll
                for (int v = 0; v < WORD; ++v) {
                    of_a[i + v] = word_a.item[v];
                    of_b[i + v] = word_b.item[v];
                }
            }
#pragma unroll
            for (int i = 0; i < R; ++i) {
#pragma unroll
                for (int j = 0; j < R; ++j) multiply_add(sums[i][j], of_a[i], of_b[j]);
            }
        }
        if (!more) break;
        a.store(tile_a[now ^ 1]);
        b.store(tile_b[now ^ 1]);
        __syncthreads();
    }

    int64 size = int64(args.m) * args.n;
    if (args.flags & MATMUL_PARTS) {
        int64 batches = blocks.count / (args.tiles_m.size * args.tiles_n.size * args.parts.size);
        finish_sums<Shape, C>(args, StoreResults<C>(), (part * batches + batch) * size, first_m,
                              first_n, x, y, sums);
    } else {
        finish_sums<Shape, T>(args, results, batch * size, first_m, first_n, x, y, sums);
    }
}

template <class T>
using Large = MatmulTile<T, 16, sizeof(compute_of<T>) <= 4 ? 8 : 4, sizeof(T) <= 2 ? 16 : 8>;
template <class T> using Small = MatmulTile<T, 8, 4, sizeof(compute_of<T>) <= 4 ? 32 : 16>;

}  // namespace cyrt

// A kernel; its function, with template arguments, comes last.
#define CYRT_PRODUCT(NAME, STRUCT, BOUNDS, ...)               \
    extern "C" __global__ void __launch_bounds__ BOUNDS NAME( \
        const __grid_constant__ cyrt::STRUCT args) {          \
        cyrt::__VA_ARGS__(args);                              \
    }
