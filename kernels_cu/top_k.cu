// The k first elements of rows in the order of their keys, of 1, 2, 4 or 8 bytes; see sort_key.cuh.
//
// CYRT_TOP_K(name, type) makes one kernel, whose parameters are TopK. A block selects the k first of
// a tile and writes them in order, with their indices. Rows of several tiles are selected from
// again: what the tiles of a row selected is the row of the next launch. Tiles are in order, and so are
// equal elements of each: an element's position decides among equals in every launch.
#pragma once

#include "dependency.cuh"
#include "sort_key.cuh"
#include "params/top_k.h"

namespace cyrt {

// The elements of a thread are a block apart. They are selected by a digit of 8 bits after the other,
// the highest first, and at last by their positions: the threshold is one element, so that no two are
// equal.
template <class U> struct Selection {
    static constexpr int DIGITS = 256, POSITION_PASSES = 2, PASSES = sizeof(U) + POSITION_PASSES;
    static_assert(TOP_K_BLOCK * TOP_K_ITEMS <= DIGITS * DIGITS, "two digits are a position");
    U key[TOP_K_ITEMS];
    uint32 chosen, open;  // bits, by item: before the threshold; equal to it as far as is known

    __device__ static uint32 position(int i) { return i * blockDim.x + threadIdx.x; }

    __device__ uint32 digit(int i, int pass) const {
        if (pass < int(sizeof(U))) return uint32(key[i] >> 8 * (sizeof(U) - 1 - pass)) % DIGITS;
        return position(i) >> 8 * (PASSES - 1 - pass) & (DIGITS - 1);
    }

    // Chooses `count` of the block's open elements, which has more of them.
    __device__ void choose(uint32 count) {
        __shared__ uint32 bins[DIGITS];
        __shared__ uint32 found[3];  // the digit, its elements, and how many of them are chosen
#pragma unroll 1
        for (int pass = 0; pass < PASSES; ++pass) {
            for (int d = threadIdx.x; d < DIGITS; d += blockDim.x) bins[d] = 0;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < TOP_K_ITEMS; ++i) {
                if (open >> i & 1) atomicAdd(&bins[digit(i, pass)], 1);
            }
            __syncthreads();
            if (threadIdx.x < 32) find_digit(bins, count, found);
            __syncthreads();
            uint32 all = found[1];
            count = found[2];
#pragma unroll
            for (int i = 0; i < TOP_K_ITEMS; ++i) {
                uint32 bit = open & 1u << i, d = digit(i, pass);
                if (d < found[0]) chosen |= bit;
                if (d != found[0]) open &= ~bit;
            }
            if (all == count) break;
        }
        chosen |= open;
    }

    // A warp finds the digit of element number `count`; each lane has 8 digits.
    __device__ static void find_digit(const uint32* bins, uint32 count, uint32* found) {
        constexpr int SHARE = DIGITS / 32;
        uint32 first = threadIdx.x * SHARE, sum = 0;
        for (int d = 0; d < SHARE; ++d) sum += bins[first + d];
        uint32 up_to = sum;
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            uint32 other = __shfl_up_sync(0xffffffffu, up_to, lanes);
            if (threadIdx.x >= lanes) up_to += other;
        }
        uint32 before = up_to - sum;
        if (before >= count || up_to < count) return;
        uint32 d = first;
        for (; before + bins[d] < count; ++d) before += bins[d];
        found[0] = d;
        found[1] = bins[d];
        found[2] = count - before;
    }
};

template <class U> __device__ inline void top_k(const TopK& args) {
    __shared__ U keys[TOP_K_MOST];
    __shared__ uint32 positions[TOP_K_MOST];
    __shared__ uint32 taken;
    wait_for_dependencies(args);
    launch_dependents();
    constexpr uint32 TILE = TOP_K_BLOCK * TOP_K_ITEMS;
    SortKey<U> order(args.order);
    uint32 row = blockIdx.x / args.tiles, tile = blockIdx.x - row * args.tiles;
    int64 begin = int64(tile) * TILE, left = args.n - begin;
    uint32 size = left < TILE ? uint32(left) : TILE, k = min(args.k, size);
    const U* in = static_cast<const U*>(args.input) + int64(row) * args.step + begin;
    __builtin_assume(__isGlobal(in));
    Selection<U> selection;
    selection.chosen = selection.open = 0;
    if (threadIdx.x == 0) taken = 0;
#pragma unroll
    for (int i = 0; i < TOP_K_ITEMS; ++i) {
        uint32 position = selection.position(i);
        selection.key[i] = 0;
        if (position >= size) continue;
        selection.key[i] = order.of(in[position]);
        selection.open |= 1u << i;
    }
    if (k < size) {
        selection.choose(k);
    } else {
        selection.chosen = selection.open;
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TOP_K_ITEMS; ++i) {
        if (!(selection.chosen >> i & 1)) continue;
        uint32 slot = atomicAdd(&taken, 1);
        keys[slot] = selection.key[i];
        positions[slot] = selection.position(i);
    }
    __syncthreads();
    int64 first = int64(row) * args.step + begin, out = int64(blockIdx.x) * args.k;
    for (uint32 i = threadIdx.x; i < k; i += blockDim.x) {
        U key = keys[i];
        uint32 position = positions[i], before = 0;
        for (uint32 j = 0; j < k; ++j) {
            before += keys[j] < key || (keys[j] == key && positions[j] < position);
        }
        uint32 origin = args.origins ? args.origins[first + position] : uint32(begin) + position;
        static_cast<U*>(args.out)[out + before] = in[position];
        if (args.last) {
            static_cast<int64*>(args.to)[out + before] = origin;
        } else {
            static_cast<uint32*>(args.to)[out + before] = origin;
        }
    }
}

}  // namespace cyrt

#define CYRT_TOP_K(NAME, TYPE)                                      \
    extern "C" __global__ void __launch_bounds__(cyrt::TOP_K_BLOCK) \
        NAME(const __grid_constant__ cyrt::TopK args) {             \
        cyrt::top_k<TYPE>(args);                                    \
    }
