// Running sums and products along rows, or down columns.
//
// CYRT_SCAN(name, type, output type, compute type, Operation) makes
//   name          a row is at most a tile: some warps, a power of two, scan a row
//   name_tiles    a row is many tiles; a tile is a block, which looks back for what is before it
//   name_columns  a block's tile is a strip of columns and some rows of them
//
// INVARIANT: the result does not depend on timing. What is before a tile is put together in one
// way: tiles in groups of 32, groups in runs of 32, and runs one after another.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "prefix.cuh"

namespace cyrt {

constexpr int SCAN_BLOCK = 256, SCAN_VECTORS = 8;

struct alignas(16) Scan {
    const void* in;
    void* out;
    int64 n;                    // elements of a row
    int64 out_row;              // elements of a row of the output: n, or n + 1 with the initial one
    uint32 rows, tiles;         // tiles of a row
    uint32 initial;             // 1: the initial one is written
    uint32 vector;              // flags: rows of the input, of the output are aligned to vectors
    uint32* next;               // of many tiles: the turns, and after them the flags; 0 at first
    void* sums;                 // of tiles, groups and runs
    int64 inner;                // columns
    uint32 strips;              // of columns, each as wide as a warp's vectors
};

constexpr uint32 VECTOR_IN = 1, VECTOR_OUT = 2;

struct Sum {
    template<class A> __device__ A operator()(A a, A b) const { return a + b; }
    template<class A> static __device__ A identity() { return cast<A>(0); }
};
struct Product {
    template<class A> __device__ A operator()(A a, A b) const { return a * b; }
    template<class A> static __device__ A identity() { return cast<A>(1); }
};

// SCAN_VECTORS vectors of a thread, one a warp's row of them apart.
template<class T, class R, class A, class Op> struct Tile {
    static constexpr int N = items_of<T, R>, VECTORS = SCAN_VECTORS;
    static constexpr int WARP = 32 * N * VECTORS;       // elements of a warp
    Items<A, N> vectors[VECTORS];

    // The warp's elements begin at `first`. What is beyond `n` is anything: nothing comes after it.
    __device__ void load(const T* row, int64 first, int64 n, bool vector) {
        Items<T, N> items[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Span span{first + (v * 32 + threadIdx.x % 32) * N, 1, n, false};
            span.vector = vector && span.first + N <= n;
            items[v] = load_items<N>(row, 1, span);
        }
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
#pragma unroll
            for (int k = 0; k < N; ++k) vectors[v].item[k] = cast<A>(widen(items[v].item[k]));
        }
    }

    // Every lane gets what the warp's elements come to; `left` of them are in the row.
    __device__ A scan(int64 left) {
        Op op;
        A before = Op::template identity<A>();
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            if (v * 32 * N >= left) break;
            A* item = vectors[v].item;
#pragma unroll
            for (int k = 1; k < N; ++k) item[k] = op(item[k - 1], item[k]);
            A sum = warp_scan(item[N - 1], op);
            A below = shuffle_up(sum, 1);
            below = v == 0 ? below : lane == 0 ? before : op(before, below);
            if (v != 0 || lane != 0) {
#pragma unroll
                for (int k = 0; k < N; ++k) item[k] = op(below, item[k]);
            }
            A all = shuffle_from(sum, 31);
            before = v == 0 ? all : op(before, all);
        }
        return before;
    }

    __device__ void store(R* row, int64 first, int64 n, bool vector, bool any_before, A before) {
        Op op;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Span span{first + (v * 32 + threadIdx.x % 32) * N, 1, n, false};
            span.vector = vector && span.first + N <= n;
            Items<R, N> items;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                A item = vectors[v].item[k];
                items.item[k] = cast<R>(any_before ? op(before, item) : item);
            }
            if (span.first < n) store_items<N>(row, 1, span, items);
        }
    }
};

// -- rows of at most a tile -----------------------------------------------------------------------

// blockDim is (warps of a row * 32, rows of a block).
template<class T, class R, class A, class Op> __device__ inline void scan_rows(const Scan& args) {
    using Mine = Tile<T, R, A, Op>;
    __shared__ alignas(16) unsigned char bytes[SCAN_BLOCK / 32 * sizeof(A)];
    wait_for_dependencies();
    launch_dependents();
    A* sums = reinterpret_cast<A*>(bytes) + threadIdx.y * (blockDim.x / 32);
    Op op;
    int warp = threadIdx.x / 32;
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y, first = int64(warp) * Mine::WARP;
    int64 n = row < args.rows ? args.n : 0;
    const T* in = static_cast<const T*>(args.in) + row * args.n;
    R* out = static_cast<R*>(args.out) + row * args.out_row + args.initial;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    if (args.initial && row < args.rows && threadIdx.x == 0) {
        out[-1] = cast<R>(Op::template identity<A>());
    }
    Mine mine;
    mine.load(in, first, n, args.vector & VECTOR_IN);
    A sum = mine.scan(n - first), before = sum;
    if (blockDim.x > 32) {
        if (threadIdx.x % 32 == 0) sums[warp] = sum;
        __syncthreads();
        before = sums[0];
        for (int w = 1; w < warp; ++w) before = op(before, sums[w]);
    }
    mine.store(out, first, n, args.vector & VECTOR_OUT, warp > 0, before);
}

// -- rows of many tiles ---------------------------------------------------------------------------

// Sums that tiles of a row leave for one another.
template<class A, class Op> struct Sums {
    uint32* flags;              // of the row's tiles, then of its groups, then of its runs
    A* values;

    __device__ void leave(uint32 at, A value) {
        values[at] = value;
        release(flags + at, 1);
    }

    // A warp waits for `count` < 32 of them, from `first`.
    __device__ void wait(uint32 first, uint32 count) {
        uint32 lane = threadIdx.x % 32;
        bool waits = lane < count;
        while (__any_sync(ALL_LANES, waits)) {
            if (waits) waits = acquire(flags + first + lane) == 0;
        }
    }

    // What they come to; all lanes take part and get it.
    __device__ A read(uint32 first, uint32 count) {
        uint32 lane = threadIdx.x % 32;
        wait(first, count);
        A value = lane < count ? values[first + lane] : Op::template identity<A>();
        return shuffle_from(warp_scan(value, Op{}), count - 1);
    }
};

// What is before a tile of a row, where any is; a warp works it out and leaves what others need.
template<class A, class Op>
__device__ inline A look_back(Sums<A, Op> sums, uint32 tile, uint32 tiles, A mine) {
    Op op;
    uint32 groups = (tiles + 31) / 32, group = tile / 32, run = group / 32;
    bool leads = threadIdx.x % 32 == 0;
    if (leads) sums.leave(tile, mine);
    A before = mine;
    bool any = false;
    if (tile % 32) {
        before = sums.read(group * 32, tile % 32);
        any = true;
    }
    A whole = any ? op(before, mine) : mine;            // of the group, where this is its last tile
    bool last = tile % 32 == 31;
    if (last && leads) sums.leave(tiles + group, whole);
    if (group % 32) {
        A earlier = sums.read(tiles + run * 32, group % 32);
        before = any ? op(earlier, before) : earlier;
        whole = op(earlier, whole);                     // of the run, where this is its last group
        any = true;
    }
    if (run) {
        A earlier = sums.read(tiles + groups + run - 1, 1);
        before = any ? op(earlier, before) : earlier;
        whole = op(earlier, whole);
    }
    if (last && group % 32 == 31 && leads) sums.leave(tiles + groups + run, whole);
    return before;
}

template<class T, class R, class A, class Op> __device__ inline void scan_tiles(const Scan& args) {
    using Mine = Tile<T, R, A, Op>;
    __shared__ alignas(16) unsigned char bytes[(SCAN_BLOCK / 32 + 1) * sizeof(A)];
    wait_for_dependencies();
    launch_dependents();
    A* partial = reinterpret_cast<A*>(bytes);
    Op op;
    int warp = threadIdx.x / 32, warps = SCAN_BLOCK / 32;
    uint32 turn = take_turn(args.next), row = turn / args.tiles, tile = turn - row * args.tiles;
    const T* in = static_cast<const T*>(args.in) + row * args.n;
    R* out = static_cast<R*>(args.out) + row * args.out_row + args.initial;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    int64 first = (int64(tile) * warps + warp) * Mine::WARP;
    if (args.initial && tile == 0 && threadIdx.x == 0) {
        out[-1] = cast<R>(Op::template identity<A>());
    }
    Mine mine;
    mine.load(in, first, args.n, args.vector & VECTOR_IN);
    A sum = mine.scan(args.n - first);
    if (threadIdx.x % 32 == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        A whole = partial[0];
        for (int w = 1; w < warps; ++w) whole = op(whole, partial[w]);
        uint32 groups = (args.tiles + 31) / 32;
        int64 words = int64(args.tiles) + groups + (groups + 31) / 32;
        Sums<A, Op> sums{args.next + 1 + row * words, static_cast<A*>(args.sums) + row * words};
        A before = look_back(sums, tile, args.tiles, whole);
        if (threadIdx.x == 0) partial[warps] = before;
    }
    __syncthreads();
    A before = tile ? partial[warps] : partial[0];
    for (int w = tile ? 0 : 1; w < warp; ++w) before = op(before, partial[w]);
    mine.store(out, first, args.n, args.vector & VECTOR_OUT, tile > 0 || warp > 0, before);
}

// -- columns --------------------------------------------------------------------------------------

// Waits for `count` < 32 sums from `first`, then adds up a column of them to what is known.
template<class A, class Op>
__device__ inline void read_column(Sums<A, Op> sums, uint32 first, uint32 count, int width,
                                   A& before, bool& any) {
    if (threadIdx.x < 32) sums.wait(first, count);
    __syncthreads();
    if (threadIdx.x >= width) return;
    const A* values = sums.values + int64(first) * width + threadIdx.x;
    A sum = values[0];
    for (uint32 i = 1; i < count; ++i) sum = Op{}(sum, values[int64(i) * width]);
    before = any ? Op{}(sum, before) : sum;
    any = true;
}

// Leaves a row of sums, one a thread.
template<class A, class Op>
__device__ inline void leave_row(Sums<A, Op> sums, uint32 at, int width, A value) {
    if (threadIdx.x < width) sums.values[int64(at) * width + threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) release(sums.flags + at, 1);
}

// As look_back, for each column; `mine` is what the thread's column of the tile comes to.
template<class A, class Op>
__device__ inline A look_back_columns(Sums<A, Op> sums, uint32 tile, uint32 tiles, int width,
                                      A mine) {
    Op op;
    uint32 groups = (tiles + 31) / 32, group = tile / 32, run = group / 32;
    bool any = false, last = tile % 32 == 31;
    A before = mine;
    leave_row(sums, tile, width, mine);
    if (tile % 32) read_column(sums, group * 32, tile % 32, width, before, any);
    if (last) leave_row(sums, tiles + group, width, op(before, mine));
    if (group % 32) read_column(sums, tiles + run * 32, group % 32, width, before, any);
    if (run) read_column(sums, tiles + groups + run - 1, 1, width, before, any);
    if (last && group % 32 == 31) leave_row(sums, tiles + groups + run, width, op(before, mine));
    return before;
}

// A warp has a strip's rows side by side, one a vector of each thread. Turns go strip by strip, so
// that a tile comes long after the one above it.
template<class T, class R, class A, class Op>
__device__ inline void scan_columns(const Scan& args) {
    constexpr int N = items_of<T, R>, ROWS = SCAN_VECTORS, WIDTH = 32 * N;
    static_assert(WIDTH <= SCAN_BLOCK, "a thread has one column of the sums");
    __shared__ alignas(16) unsigned char bytes[(SCAN_BLOCK / 32 + 1) * WIDTH * sizeof(A)];
    wait_for_dependencies();
    launch_dependents();
    A* partial = reinterpret_cast<A*>(bytes);       // of each warp's columns, then what is above
    Op op;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    uint32 turn = args.tiles > 1 ? take_turn(args.next) : blockIdx.x, block = turn / args.strips;
    uint32 strip = turn - block * args.strips, outer = block / args.tiles;
    uint32 tile = block - outer * args.tiles;
    int64 column = (int64(strip) * 32 + lane) * N, first = (int64(tile) * warps + warp) * ROWS;
    const T* in = static_cast<const T*>(args.in) + outer * args.n * args.inner;
    R* out = static_cast<R*>(args.out) + (outer * args.out_row + args.initial) * args.inner;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    auto span = [&](uint32 flag) {
        bool vector = (args.vector & flag) && column + N <= args.inner;
        return Span{column, 1, args.inner, vector};
    };
    Items<T, N> items[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (first + r < args.n && column < args.inner) {
            items[r] = load_items<N>(in + (first + r) * args.inner, 1, span(VECTOR_IN));
        }
    }
    A sums[ROWS][N];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            A item = cast<A>(widen(items[r].item[k]));
            sums[r][k] = r ? op(sums[r ? r - 1 : 0][k], item) : item;
        }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) partial[warp * WIDTH + lane * N + k] = sums[ROWS - 1][k];
    __syncthreads();
    if (args.tiles > 1) {
        A whole = partial[threadIdx.x % WIDTH];
        for (int w = 1; w < warps; ++w) whole = op(whole, partial[w * WIDTH + threadIdx.x % WIDTH]);
        uint32 groups = (args.tiles + 31) / 32;
        int64 words = int64(args.tiles) + groups + (groups + 31) / 32;
        int64 begin = (int64(outer) * args.strips + strip) * words;
        Sums<A, Op> left{args.next + 1 + begin, static_cast<A*>(args.sums) + begin * WIDTH};
        A before = look_back_columns(left, tile, args.tiles, WIDTH, whole);
        if (threadIdx.x < WIDTH) partial[warps * WIDTH + threadIdx.x] = before;
        __syncthreads();
    }
    A before[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const A* own = partial + lane * N + k;
        before[k] = own[tile ? warps * WIDTH : 0];
        for (int w = tile ? 0 : 1; w < warp; ++w) before[k] = op(before[k], own[w * WIDTH]);
    }
    if (column >= args.inner) return;
#pragma unroll
    for (int r = -1; r < ROWS; ++r) {
        if (r < 0 ? !args.initial || tile || warp : first + r >= args.n) continue;
        Items<R, N> results;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            A item = r < 0 ? Op::template identity<A>() : sums[r < 0 ? 0 : r][k];
            results.item[k] = cast<R>(r >= 0 && (tile || warp) ? op(before[k], item) : item);
        }
        store_items<N>(out + (first + r) * args.inner, 1, span(VECTOR_OUT), results);
    }
}

}  // namespace cyrt

#define CYRT_SCAN(NAME, TYPE, OUTPUT, COMPUTE, OP)                                           \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK)                           \
    NAME(const __grid_constant__ cyrt::Scan args) {                                          \
        cyrt::scan_rows<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                              \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK)                           \
    NAME##_tiles(const __grid_constant__ cyrt::Scan args) {                                  \
        cyrt::scan_tiles<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                             \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK)                           \
    NAME##_columns(const __grid_constant__ cyrt::Scan args) {                                \
        cyrt::scan_columns<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                           \
    }
