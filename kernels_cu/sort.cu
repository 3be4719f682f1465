// Stable sorting of rows by their keys, of 1, 2, 4 or 8 bytes; see sort_key.cuh for their order.
//
// CYRT_SORT(name, type) makes, for sorted elements and (_arg) for their indices, int64:
//   name, name_arg                  rows of some dozen elements: each counts those before it
//   name_block, name_arg_block      rows of at most a tile: a block sorts by digit after digit
//   name_histogram                  longer ones: how often each digit occurs, and
//   name_sweep, name_arg_sweep      for each digit of 8 bits, the lowest first, a pass over memory
// A sweep's tile is a block. It sorts its elements by the digit, looks back for how many of each
// digit are before it, and writes runs of equal digits.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "prefix.cuh"
#include "sort_key.cuh"
#include "params/sort.h"

namespace cyrt {

// Elements of a thread of a sweep; there are fewer of the widest, as shared memory holds a tile.
template <class U> constexpr int sort_items = sizeof(U) == 8 ? 8 : 16;
template <class U> constexpr int sort_tile = SORT_BLOCK * sort_items<U>;

// -- rows of some dozen elements ------------------------------------------------------------------

// blockDim is (threads of a row, a power of two; rows).
template <class U, bool ARG> __device__ inline void sort_counting(const Sort& args) {
    __shared__ U keys[256];
    wait_for_dependencies(args);
    launch_dependents();
    SortKey<U> order(args.order);
    uint32 i = threadIdx.x, n = args.n;
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool mine = i < n && row < args.rows;
    const U* in = static_cast<const U*>(args.input) + row * n;
    __builtin_assume(__isGlobal(in));
    U bits = mine ? in[i] : 0, key = order.of(bits);
    U* others = keys + threadIdx.y * blockDim.x;
    others[i] = key;
    __syncthreads();
    if (!mine) return;
    uint32 before = 0;
    for (uint32 j = 0; j < i; ++j) before += others[j] <= key;
    for (uint32 j = i + 1; j < n; ++j) before += others[j] < key;
    if (ARG) {
        static_cast<int64*>(args.to)[row * n + before] = i;
    } else {
        static_cast<U*>(args.out)[row * n + before] = bits;
    }
}

// -- a block sorts by a digit ---------------------------------------------------------------------

// A warp has its elements side by side: item k of a lane is the one at k * 32 + lane. Their
// positions in the block's order are two to a register.
template <int ITEMS> struct Ranks {
    uint32 pairs[ITEMS / 2];

    __device__ void add(int k, uint32 rank) { pairs[k / 2] += rank << 16 * (k % 2); }
    __device__ uint32 of(int k) const { return pairs[k / 2] >> 16 * (k % 2) & 0xffff; }
};

// Bytes, four in a register, at first 0.
template <int ITEMS> struct Bytes {
    uint32 words[ITEMS / 4];

    __device__ void set(int k, uint32 byte) { words[k / 4] |= byte << 8 * (k % 4); }
    __device__ uint32 of(int k) const { return words[k / 4] >> 8 * (k % 4) & 0xff; }
};

struct Scratch {
    uint16 counts[SORT_BLOCK / 32][SORT_DIGITS];  // a warp's counts; then where its elements begin
    uint32 partial[SORT_BLOCK / 32];
};

// The lanes that have the same digit as this one.
__device__ inline uint32 same_digit(uint32 digit) {
    uint32 same = ALL_LANES;
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
        bool has = digit & 1u << bit;
        same &= __ballot_sync(ALL_LANES, has) ^ (has ? 0 : ALL_LANES);
    }
    return same;
}

// Ranks a block's elements, `items` of a thread, by the digits that digit(k) returns, and calls
// use(digit, count, first) once for each digit: how many elements have it, and the first's rank.
template <int ITEMS, class Digit, class Use>
__device__ inline Ranks<ITEMS> rank_digits(Scratch& scratch, int items, Digit digit, Use use) {
    Ranks<ITEMS> ranks = {};
    int warps = blockDim.x / 32;
    uint16* mine = scratch.counts[threadIdx.x / 32];
    uint32 below = lanes_below();
    Bytes<ITEMS> digits = {};
    for (int d = threadIdx.x % 32; d < SORT_DIGITS / 2; d += 32)
        reinterpret_cast<uint32*>(mine)[d] = 0;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k >= items) break;
        uint32 d = digit(k), same = same_digit(d), before = mine[d];
        digits.set(k, d);
        ranks.add(k, before + __popc(same & below));
        __syncwarp();
        if ((same & below) == 0) mine[d] = before + __popc(same);
        __syncwarp();
    }
    __syncthreads();

    // Each thread has some digits side by side, or none; the block is a power of two.
    int share = blockDim.x < SORT_DIGITS ? SORT_DIGITS >> (31 - __clz(blockDim.x)) : 1;
    int begin = threadIdx.x * share, end = begin < SORT_DIGITS ? begin + share : begin;
    uint32 sum = 0;
    for (int d = begin; d < end; ++d) {
        for (int w = 0; w < warps; ++w) sum += scratch.counts[w][d];
    }
    uint32 to = block_sum_below(sum, scratch.partial);
    for (int d = begin; d < end; ++d) {
        uint32 first = to;
        for (int w = 0; w < warps; ++w) {
            uint32 count = scratch.counts[w][d];
            scratch.counts[w][d] = to;
            to += count;
        }
        use(d, to - first, first);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k < items) ranks.add(k, mine[digits.of(k)]);
    }
    return ranks;
}

// Exchanges the items of a block through shared memory; position(k) is where item k is read.
template <class V, int ITEMS, class Position>
__device__ inline void exchange(V (&item)[ITEMS], const Ranks<ITEMS>& ranks, void* shared,
                                int items, Position position) {
    V* values = static_cast<V*>(shared);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k < items) values[ranks.of(k)] = item[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k < items) item[k] = values[position(k)];
    }
}

template <class U> __device__ inline uint32 digit_of(U key, uint32 pass) {
    return uint32(key >> 8 * pass) & (SORT_DIGITS - 1);
}

// Items beyond the row have the last digit and come after all others, so they stay last.
template <class U, bool ARG> __device__ inline void sort_block(const Sort& args) {
    constexpr int ITEMS = sort_items<U>, WIDTH = larger(sizeof(U), ARG ? sizeof(uint16) : 1);
    __shared__ Scratch scratch;
    __shared__ alignas(8) unsigned char shared[sort_tile<U> * WIDTH];
    wait_for_dependencies(args);
    launch_dependents();
    SortKey<U> order(args.order);
    int n = args.n, items = (n + blockDim.x - 1) / blockDim.x;
    int first = threadIdx.x / 32 * items * 32 + threadIdx.x % 32;
    int64 row = int64(blockIdx.x) * n;
    const U* in = static_cast<const U*>(args.input) + row;
    __builtin_assume(__isGlobal(in));
    auto position = [&](int k) { return first + k * 32; };
    U item[ITEMS];
    uint16 from[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        item[k] = k < items && position(k) < n ? in[position(k)] : 0;
        from[k] = position(k);
    }
#pragma unroll 1
    for (uint32 pass = 0; pass < sizeof(U); ++pass) {
        Ranks<ITEMS> ranks = rank_digits<ITEMS>(
            scratch, items,
            [&](int k) {
                return position(k) < n ? digit_of(order.of(item[k]), pass) : SORT_DIGITS - 1;
            },
            [](int, uint32, uint32) {});
        exchange(item, ranks, shared, items, position);
        if (ARG) {
            __syncthreads();
            exchange(from, ranks, shared, items, position);
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (k >= items || position(k) >= n) break;
        if (ARG) {
            static_cast<int64*>(args.to)[row + position(k)] = from[k];
        } else {
            static_cast<U*>(args.out)[row + position(k)] = item[k];
        }
    }
}

// -- rows of many tiles ---------------------------------------------------------------------------

// blockIdx counts the parts of rows, `last` of a row. The counts of the sweeps become 0, too.
template <class U> __device__ inline void sort_histogram(const Sort& args) {
    constexpr int PASSES = sizeof(U), COPIES = PASSES < 8 ? 4 : 2;
    __shared__ uint32 bins[COPIES][PASSES][SORT_DIGITS];
    wait_for_dependencies(args);
    launch_dependents();
    for (int i = threadIdx.x; i < COPIES * PASSES * SORT_DIGITS; i += blockDim.x) bins[0][0][i] = 0;
    int64 words = int64(args.rows) * args.tiles * SORT_DIGITS;
    for (int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += int64(gridDim.x) * blockDim.x) {
        args.counts[i] = 0;
    }
    __syncthreads();
    SortKey<U> order(args.order);
    uint32 row = blockIdx.x / args.last, part = blockIdx.x - row * args.last;
    int64 share = (args.n + args.last - 1) / args.last;
    int64 begin = part * share, end = begin + share < args.n ? begin + share : args.n;
    const U* in = static_cast<const U*>(args.input) + row * args.n;
    __builtin_assume(__isGlobal(in));
    auto count = [&](U bits) {
        U key = order.of(bits);
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            atomicAdd(&bins[threadIdx.x % COPIES][pass][digit_of(key, pass)], 1);
        }
    };
    constexpr int AHEAD = 8;
    int64 i = begin + threadIdx.x;
    for (; i + (AHEAD - 1) * int64(blockDim.x) < end; i += AHEAD * blockDim.x) {
        U bits[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) bits[k] = in[i + k * blockDim.x];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) count(bits[k]);
    }
    for (; i < end; i += blockDim.x) count(in[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < PASSES * SORT_DIGITS; i += blockDim.x) {
        uint32 sum = 0;
        for (int copy = 0; copy < COPIES; ++copy) sum += bins[copy][0][i];
        if (sum) atomicAdd(args.totals + int64(row) * PASSES * SORT_DIGITS + i, sum);
    }
}

// A word of `counts`: a pass publishes how many elements of a tile have a digit, and then how many up
// to the end of the tile.
constexpr int STATE = 59;
__device__ inline uint64 tile_state(uint32 pass) { return uint64(2 * pass + 1) << STATE; }
__device__ inline uint64 prefix_state(uint32 pass) { return uint64(2 * pass + 2) << STATE; }

// How many of a digit are before a tile that is not the row's first, and where the row's begin;
// `mine` is the tile's word.
__device__ inline uint64 look_back(const uint64* mine, uint32 tile, uint32 pass) {
    constexpr int AHEAD = 4;
    constexpr uint64 NUMBER = (uint64(1) << STATE) - 1;
    uint64 sum = 0;
    for (;;) {
        uint64 words[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            words[k] = uint32(k) < tile ? published(mine - (k + 1) * SORT_DIGITS) : 0;
        }
        int known = 0;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            uint64 state = words[k] & ~NUMBER;
            if (known == k && state == prefix_state(pass)) return sum + (words[k] & NUMBER);
            if (known == k && state == tile_state(pass)) {
                sum += words[k] & NUMBER;
                ++known;
            }
        }
        tile -= known;
        mine -= known * SORT_DIGITS;
    }
}

template <class U, bool ARG> __device__ inline void sort_sweep(const Sort& args) {
    constexpr int ITEMS = sort_items<U>, TILE = sort_tile<U>;
    constexpr int WIDTH = larger(sizeof(U), ARG ? sizeof(uint32) : 1);
    __shared__ Scratch scratch;
    __shared__ alignas(8) unsigned char shared[TILE * WIDTH];
    __shared__ int64 starts[SORT_DIGITS];  // where a digit's first element goes, less its position
    wait_for_dependencies(args);
    launch_dependents();
    SortKey<U> order(args.order);
    uint32 pass = args.digit, d = threadIdx.x;
    uint32 turn = take_turn(args.turns + pass), row = turn / args.tiles;
    uint32 tile = turn - row * args.tiles;
    int64 begin = row * args.n + int64(tile) * TILE;
    int64 beyond = args.n - int64(tile) * TILE;
    int left = beyond < TILE ? beyond : TILE, first = threadIdx.x / 32 * ITEMS * 32 + d % 32;
    auto position = [&](int k) { return first + k * 32; };
    const U* in = static_cast<const U*>(args.input) + begin;
    __builtin_assume(__isGlobal(in));
    U item[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) item[k] = position(k) < left ? in[position(k)] : 0;
    uint64* mine = args.counts + int64(turn) * SORT_DIGITS + d;
    uint64 before = 0;
    if (tile == 0) {
        uint64* totals = args.totals + (int64(row) * sizeof(U) + pass) * SORT_DIGITS;
        before =
            block_sum_below(d < SORT_DIGITS ? totals[d] : 0, reinterpret_cast<uint64*>(shared));
    }
    uint32 count, start;
    Ranks<ITEMS> ranks = rank_digits<ITEMS>(
        scratch, ITEMS,
        [&](int k) {
            uint32 digit = digit_of(order.of(item[k]), pass);
            return position(k) < left ? digit : SORT_DIGITS - 1;
        },
        [&](uint32, uint32 its_count, uint32 its_start) {
            count = its_count;
            start = its_start;
            publish(mine,
                    tile == 0 ? prefix_state(pass) + before + count : tile_state(pass) + count);
        });
    // Read side by side, elements of a digit are side by side.
    auto next = [&](int k) { return k * SORT_BLOCK + d; };
    exchange(item, ranks, shared, ITEMS, next);
    uint32 from[ITEMS];
#pragma unroll
    for (int k = 0; ARG && k < ITEMS; ++k) {
        from[k] = tile * TILE + position(k);
        if (args.origins && position(k) < left) from[k] = args.origins[begin + position(k)];
    }
    if (d < SORT_DIGITS) {
        if (tile != 0) {
            before = look_back(mine, tile, pass);
            publish(mine, prefix_state(pass) + before + count);
        }
        starts[d] = row * args.n + before - start;
    }
    __syncthreads();
    Bytes<ITEMS> digits = {};
    U* out = static_cast<U*>(args.out);
    __builtin_assume(__isGlobal(out));
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        uint32 digit = digit_of(order.of(item[k]), pass);
        digits.set(k, digit);
        if (next(k) < left && !(ARG && args.last)) out[starts[digit] + next(k)] = item[k];
    }
    if (!ARG) return;
    exchange(from, ranks, shared, ITEMS, next);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (next(k) >= left) break;
        int64 to = starts[digits.of(k)] + next(k);
        if (args.last) {
            static_cast<int64*>(args.to)[to] = from[k];
        } else {
            static_cast<uint32*>(args.to)[to] = from[k];
        }
    }
}

}  // namespace cyrt

#define CYRT_SORT_OF(NAME, TYPE, ARG)                                          \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Sort args) { \
        cyrt::sort_counting<TYPE, ARG>(args);                                  \
    }                                                                          \
    extern "C" __global__ void __launch_bounds__(cyrt::SORT_BLOCK)             \
        NAME##_block(const __grid_constant__ cyrt::Sort args) {                \
        cyrt::sort_block<TYPE, ARG>(args);                                     \
    }                                                                          \
    extern "C" __global__ void __launch_bounds__(cyrt::SORT_BLOCK, 2)          \
        NAME##_sweep(const __grid_constant__ cyrt::Sort args) {                \
        cyrt::sort_sweep<TYPE, ARG>(args);                                     \
    }
#define CYRT_SORT(NAME, TYPE)                                       \
    CYRT_SORT_OF(NAME, TYPE, false)                                 \
    CYRT_SORT_OF(NAME##_arg, TYPE, true)                            \
    extern "C" __global__ void __launch_bounds__(cyrt::SORT_BLOCK)  \
        NAME##_histogram(const __grid_constant__ cyrt::Sort args) { \
        cyrt::sort_histogram<TYPE>(args);                           \
    }
