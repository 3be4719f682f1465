// Running sums and products along rows, or down columns.
//
// CYRT_SCAN(name, type, output type, compute type, Operation) makes
//   name          a row is at most a tile: some warps, a power of two, scan a row
//   name_tiles    a row is many tiles; blocks take turns at them, and write a tile some turns after
//                 its sum is known to the others: what is before it then is known as well
//   name_columns  a block's tile is a strip of columns and some rows of them
//
// INVARIANT: the result does not depend on timing. What is before a tile is put together in one
// way: tiles in groups of 32, groups in runs of 32, and runs one after another.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "prefix.cuh"
#include "params/scan.h"

namespace cyrt {

struct RunningSum {
    template <class A> __device__ A operator()(A a, A b) const { return a + b; }
    template <class A> static __device__ A identity() { return cast<A>(0); }
};
struct RunningProduct {
    template <class A> __device__ A operator()(A a, A b) const { return a * b; }
    template <class A> static __device__ A identity() { return cast<A>(1); }
};

// VECTORS vectors of a thread, each a row of a warp's vectors behind the one before.
template <class T, class R, class A, class Op, int VECTORS = SCAN_VECTORS> struct ScanTile {
    static constexpr int N = items_of<T, R>;
    static constexpr int WARP = 32 * N * VECTORS;  // elements of a warp
    Items<A, N> vectors[VECTORS];

    // Vector v of the warp's elements, of which `left` are in the row.
    __device__ static Span span_of(int v, int64 left, bool vector) {
        uint32 first = (v * 32 + threadIdx.x % 32) * N;
        uint32 limit = left < 0 ? 0 : left < WARP ? left : WARP;
        return {first, 1, limit, vector && first + N <= limit};
    }

    // Elements beyond the row may be anything: nothing comes after them.
    __device__ void load(const T* from, int64 left, bool vector) {
        Items<T, N> items[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            items[v] = load_items<N>(from, 1, span_of(v, left, vector));
        }
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
#pragma unroll
            for (int k = 0; k < N; ++k) vectors[v].item[k] = cast<A>(widen(items[v].item[k]));
        }
    }

    // Every lane gets the total of the warp's elements; `left` of them are in the row.
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

    __device__ void store(R* to, int64 left, bool vector, bool any_before, A before) {
        Op op;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Span span = span_of(v, left, vector);
            Items<R, N> items;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                A item = vectors[v].item[k];
                items.item[k] = cast<R>(any_before ? op(before, item) : item);
            }
            if (span.first < span.limit) store_items<N>(to, 1, span, items);
        }
    }
};

// -- rows of at most a tile -----------------------------------------------------------------------

// blockDim is (warps of a row * 32, rows of a block).
template <class T, class R, class A, class Op> __device__ inline void scan_rows(const Scan& args) {
    using Mine = ScanTile<T, R, A, Op>;
    __shared__ alignas(16) unsigned char bytes[SCAN_BLOCK / 32 * sizeof(A)];
    wait_for_dependencies(args);
    launch_dependents();
    A* sums = reinterpret_cast<A*>(bytes) + threadIdx.y * (blockDim.x / 32);
    Op op;
    int warp = threadIdx.x / 32;
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y, first = int64(warp) * Mine::WARP;
    int64 n = row < args.rows ? args.n : 0;
    const T* in = static_cast<const T*>(args.input) + row * args.n;
    R* out = static_cast<R*>(args.out) + row * args.out_row + args.initial;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    if (args.initial && row < args.rows && threadIdx.x == 0) {
        out[-1] = cast<R>(Op::template identity<A>());
    }
    Mine mine;
    mine.load(in + first, n - first, args.vector & SCAN_VECTOR_IN);
    A sum = mine.scan(n - first), before = sum;
    if (blockDim.x > 32) {
        if (threadIdx.x % 32 == 0) sums[warp] = sum;
        __syncthreads();
        before = sums[0];
        for (int w = 1; w < warp; ++w) before = op(before, sums[w]);
    }
    mine.store(out + first, n - first, args.vector & SCAN_VECTOR_OUT, warp > 0, before);
}

// -- rows of many tiles ---------------------------------------------------------------------------

// A sum of a tile, a group or a run that a block publishes, in words with a flag each.
template <class A> struct Published {
    static constexpr int WORDS = sizeof(A) / 4;
    static constexpr uint64 WRITTEN = uint64(1) << 32;
    uint64 word[WORDS];

    __device__ static Published load(const uint64* words, int64 at) {
        Published sum;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) sum.word[w] = published(words + at * WORDS + w);
        return sum;
    }
    __device__ static void store(uint64* words, int64 at, A value) {
        uint32 half[WORDS];
        memcpy(half, &value, sizeof(A));
#pragma unroll
        for (int w = 0; w < WORDS; ++w) publish(words + at * WORDS + w, WRITTEN | half[w]);
    }
    __device__ bool is_written() const {
        uint64 all = WRITTEN;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) all &= word[w];
        return all != 0;
    }
    __device__ A value() const {
        uint32 half[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; ++w) half[w] = uint32(word[w]);
        A value;
        memcpy(&value, half, sizeof(A));
        return value;
    }
};

// `count` < 32 published sums from `first`, one a lane. They are loaded at once, so that several of
// these wait for memory together.
template <class A, class Op> struct Earlier {
    const uint64* words;
    int64 at;
    uint32 count;
    Published<A> own;

    __device__ Earlier(const uint64* words, int64 first, uint32 count)
        : words(words), at(first + threadIdx.x % 32), count(count), own{} {
        if (mine()) own = Published<A>::load(words, at);
    }
    __device__ bool mine() const { return threadIdx.x % 32 < count; }

    // Waits for the sums and returns their total; all lanes take part and get it.
    __device__ A sum() {
        while (__any_sync(ALL_LANES, mine() && !own.is_written())) {
            if (mine() && !own.is_written()) own = Published<A>::load(words, at);
        }
        A value = mine() ? own.value() : Op::template identity<A>();
        return shuffle_from(warp_scan(value, Op{}), count - 1);
    }
};

// The bytes of a tile that a thread holds, and the turns for which a tile is held back.
constexpr int HELD_BYTES = 64, HELD_TURNS = 2;

// Where a turn's tile is, and where its row's sums are.
template <class A> struct TilePosition {
    uint32 row, tile, group, run;
    uint64* words;  // the row's sums: of tiles, then of groups, then of runs
    int64 groups, runs;

    __device__ TilePosition(const Scan& args, uint32 turn)
        : row(turn / args.tiles), tile(turn - row * args.tiles), group(tile / 32), run(tile / 1024),
          groups(args.tiles), runs(groups + (args.tiles + 31) / 32) {
        int64 all = runs + (runs - groups + 31) / 32;
        words = static_cast<uint64*>(args.sums) + row * all * Published<A>::WORDS;
    }
};

// A warp publishes the total of a tile, and those of its group and its run if it is their last tile.
template <class A, class Op> __device__ inline void publish_sums(const TilePosition<A>& at,
                                                                 A whole) {
    Op op;
    bool leads = threadIdx.x % 32 == 0;
    if (leads) Published<A>::store(at.words, at.tile, whole);
    if (at.tile % 32 != 31) return;
    whole = op(Earlier<A, Op>(at.words, at.group * 32, 31).sum(), whole);
    if (leads) Published<A>::store(at.words, at.groups + at.group, whole);
    if (at.group % 32 != 31) return;
    whole = op(Earlier<A, Op>(at.words, at.groups + at.run * 32, 31).sum(), whole);
    if (at.run) whole = op(Earlier<A, Op>(at.words, at.runs + at.run - 1, 1).sum(), whole);
    if (leads) Published<A>::store(at.words, at.runs + at.run, whole);
}

// The total of the tiles before a tile, of which there is one at least, for all lanes of a warp.
template <class A, class Op> __device__ inline A sum_before(const TilePosition<A>& at) {
    A before{};
    bool any = false;
    Earlier<A, Op> tiles(at.words, at.group * 32, at.tile % 32);
    Earlier<A, Op> groups(at.words, at.groups + at.run * 32, at.group % 32);
    Earlier<A, Op> runs(at.words, at.runs + at.run - 1, at.run ? 1 : 0);
    auto add = [&](Earlier<A, Op>& earlier) {
        if (earlier.count == 0) return;
        A sum = earlier.sum();
        before = any ? Op{}(sum, before) : sum;
        any = true;
    };
    add(tiles);
    add(groups);
    add(runs);
    return before;
}

// A block loads a tile, publishes its sum, and writes it HELD_TURNS tiles later, while the next one is
// on its way from memory. A turn is taken right before its tile is loaded, since others soon wait
// for it.
//
// INVARIANT: the lowest turn whose sum is not published waits for nothing, however few blocks run.
// Blocks wait only for sums, those of lower turns, and publish their own before they wait.
template <class T, class R, class A, class Op> __device__ inline void scan_tiles(const Scan& args) {
    constexpr int N = items_of<T, R>, VECTORS = HELD_BYTES / int(N * sizeof(A));
    constexpr int warps = SCAN_BLOCK / 32, SLOTS = HELD_TURNS + 2;
    using Mine = ScanTile<T, R, A, Op, VECTORS>;
    __shared__ alignas(16) unsigned char ring[HELD_TURNS * HELD_BYTES * SCAN_BLOCK];
    __shared__ alignas(16) unsigned char bytes[(SLOTS * warps + 1) * sizeof(A)];
    __shared__ uint32 upcoming;
    wait_for_dependencies(args);
    launch_dependents();
    auto* held = reinterpret_cast<Items<A, N>*>(ring) + threadIdx.x;
    A* partial = reinterpret_cast<A*>(bytes);  // a slot: of each warp
    A* before = partial + SLOTS * warps;
    Op op;
    int warp = threadIdx.x / 32;
    uint32 end = args.rows * args.tiles, turns[HELD_TURNS + 1] = {take_turn(args.next)};
    Mine mine;
    auto first_of = [&](const TilePosition<A>& at) {
        return (int64(at.tile) * warps + warp) * Mine::WARP;
    };
    auto load = [&](uint32 turn) {
        TilePosition<A> at(args, turn);
        const T* in = static_cast<const T*>(args.input) + at.row * args.n + first_of(at);
        __builtin_assume(__isGlobal(in));
        mine.load(in, args.n - first_of(at), args.vector & SCAN_VECTOR_IN);
    };
    if (turns[0] < end) load(turns[0]);
    for (uint32 step = 0;; ++step) {
        uint32 next = 0, turn = turns[0], earlier = turns[HELD_TURNS];
        bool writes = step >= HELD_TURNS;
        if (writes && earlier >= end) return;
        if (threadIdx.x == 0) next = atomicAdd(args.next, 1);
        A* sums = partial + step % SLOTS * warps;
        A sum = mine.scan(Mine::WARP);
        if (threadIdx.x % 32 == 0) sums[warp] = sum;
        if (threadIdx.x == 0) upcoming = next;
        Mine done;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Items<A, N>& slot = held[(step % HELD_TURNS * VECTORS + v) * SCAN_BLOCK];
            if (writes) done.vectors[v] = slot;
            slot = mine.vectors[v];
        }
        __syncthreads();
        next = upcoming;
        if (next < end) load(next);
        if (warp == 0 && turn < end) {
            A whole = sums[0];
            for (int w = 1; w < warps; ++w) whole = op(whole, sums[w]);
            publish_sums<A, Op>(TilePosition<A>(args, turn), whole);
        }
        if (warp == 1 && writes) {
            A sum = sum_before<A, Op>(TilePosition<A>(args, earlier));
            if (threadIdx.x % 32 == 0) *before = sum;
        }
        __syncthreads();
        if (writes) {
            TilePosition<A> at(args, earlier);
            R* out = static_cast<R*>(args.out) + at.row * args.out_row + args.initial;
            __builtin_assume(__isGlobal(out));
            if (args.initial && at.tile == 0 && threadIdx.x == 0) {
                out[-1] = cast<R>(Op::template identity<A>());
            }
            const A* own = partial + (step - HELD_TURNS) % SLOTS * warps;
            A below = at.tile ? *before : own[0];
            for (int w = at.tile ? 0 : 1; w < warp; ++w) below = op(below, own[w]);
            done.store(out + first_of(at), args.n - first_of(at), args.vector & SCAN_VECTOR_OUT,
                       at.tile > 0 || warp > 0, below);
        }
#pragma unroll
        for (int i = HELD_TURNS; i > 0; --i) turns[i] = turns[i - 1];
        turns[0] = next;
    }
}

// -- columns --------------------------------------------------------------------------------------

// The sums that tiles of columns publish.
template <class A, class Op> struct ColumnSums {
    uint32* flags;  // flags of the strip's tiles, then of its groups, then of its runs
    A* values;

    // A warp waits for `count` < 32 sums from `first`.
    __device__ void wait(uint32 first, uint32 count) {
        uint32 lane = threadIdx.x % 32;
        bool waits = lane < count;
        while (__any_sync(ALL_LANES, waits)) {
            if (waits) waits = acquire(flags + first + lane) == 0;
        }
    }
};

// Waits for `count` < 32 sums from `first`, then adds up a column of them to what is known.
template <class A, class Op>
__device__ inline void read_column(ColumnSums<A, Op> sums, uint32 first, uint32 count, int width,
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

// Publishes a row of sums, one a thread.
template <class A, class Op>
__device__ inline void publish_row(ColumnSums<A, Op> sums, uint32 at, int width, A value) {
    if (threadIdx.x < width) sums.values[int64(at) * width + threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) release(sums.flags + at, 1);
}

// The total above a tile, for each column, if there is a tile above; `mine` is the total of the
// thread's column within the tile.
template <class A, class Op>
__device__ inline A look_back_columns(ColumnSums<A, Op> sums, uint32 tile, uint32 tiles, int width,
                                      A mine) {
    Op op;
    uint32 groups = (tiles + 31) / 32, group = tile / 32, run = group / 32;
    bool any = false, last = tile % 32 == 31;
    A before = mine;
    publish_row(sums, tile, width, mine);
    if (tile % 32) read_column(sums, group * 32, tile % 32, width, before, any);
    if (last) publish_row(sums, tiles + group, width, op(before, mine));
    if (group % 32) read_column(sums, tiles + run * 32, group % 32, width, before, any);
    if (run) read_column(sums, tiles + groups + run - 1, 1, width, before, any);
    if (last && group % 32 == 31) publish_row(sums, tiles + groups + run, width, op(before, mine));
    return before;
}

// A warp has a strip's rows side by side, one a vector of each thread. Turns go strip by strip, so
// that a tile comes long after the one above it.
template <class T, class R, class A, class Op>
__device__ inline void scan_columns(const Scan& args) {
    constexpr int N = items_of<T, R>, ROWS = SCAN_VECTORS, WIDTH = 32 * N;
    static_assert(WIDTH <= SCAN_BLOCK, "a thread has one column of the sums");
    __shared__ alignas(16) unsigned char bytes[(SCAN_BLOCK / 32 + 1) * WIDTH * sizeof(A)];
    wait_for_dependencies(args);
    launch_dependents();
    A* partial =
        reinterpret_cast<A*>(bytes);  // the sums of each warp's columns, then what is above
    Op op;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    uint32 turn = args.tiles > 1 ? take_turn(args.next) : blockIdx.x, block = turn / args.strips;
    uint32 strip = turn - block * args.strips, outer = block / args.tiles;
    uint32 tile = block - outer * args.tiles;
    int64 column = (int64(strip) * 32 + lane) * N, first = (int64(tile) * warps + warp) * ROWS;
    const T* in = static_cast<const T*>(args.input) + outer * args.n * args.inner;
    R* out = static_cast<R*>(args.out) + (outer * args.out_row + args.initial) * args.inner;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    auto span = [&](uint32 flag) {
        int64 left = args.inner - column;
        return Span{0, 1, uint32(left < N ? left : N), (args.vector & flag) && left >= N};
    };
    Items<T, N> items[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (first + r < args.n && column < args.inner) {
            items[r] =
                load_items<N>(in + (first + r) * args.inner + column, 1, span(SCAN_VECTOR_IN));
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
        ColumnSums<A, Op> left{args.next + 1 + begin, static_cast<A*>(args.sums) + begin * WIDTH};
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
        store_items<N>(out + (first + r) * args.inner + column, 1, span(SCAN_VECTOR_OUT), results);
    }
}

}  // namespace cyrt

#define CYRT_SCAN(NAME, TYPE, OUTPUT, COMPUTE, OP)                                             \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK)                             \
        NAME(const __grid_constant__ cyrt::Scan args) {                                        \
        cyrt::scan_rows<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                                \
    }                                                                                          \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK, cyrt::SCAN_RESIDENT_BLOCKS) \
        NAME##_tiles(const __grid_constant__ cyrt::Scan args) {                                \
        cyrt::scan_tiles<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                               \
    }                                                                                          \
    extern "C" __global__ void __launch_bounds__(cyrt::SCAN_BLOCK)                             \
        NAME##_columns(const __grid_constant__ cyrt::Scan args) {                              \
        cyrt::scan_columns<TYPE, OUTPUT, COMPUTE, cyrt::OP>(args);                             \
    }
