// What a mask selects: the elements at which it is true, or their positions, in order.
//
// A block has one tile of the mask. The true elements of each tile are counted, a scan sums the counts,
// and each tile then writes from its sum on. CYRT_COUNT_TRUE(name) makes
//   name            the counts of the tiles
//   name_positions  the positions, int64
// and CYRT_SELECT(name, type) the kernel that copies the selected elements.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "prefix.cuh"
#include "params/compact.h"

namespace cyrt {

// A thread's 16 bytes of the mask, the first at `at`: bit k is set where byte k is not 0.
__device__ inline uint32 mask_bits(const Compact& args, int64 at) {
    const uint8* mask = static_cast<const uint8*>(args.mask);
    __builtin_assume(__isGlobal(mask));
    int64 left = args.n - at;
    Span span{0, 1, uint32(left < 16 ? left : 16), args.vector && left >= 16};
    Items<uint8, 16> bytes = load_items<16>(mask + at, 1, span);
    uint32 bits = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) bits |= uint32(bytes.item[k] != 0) << k;
    return bits;
}

__device__ inline int64 tile_begin() { return int64(blockIdx.x) * COMPACT_TILE; }

__device__ inline void count_true(const Compact& args) {
    __shared__ uint32 partial[COMPACT_BLOCK / 32];
    wait_for_dependencies(args);
    launch_dependents();
    uint32 count = 0;
    for (int at = threadIdx.x * 16; at < COMPACT_TILE; at += blockDim.x * 16) {
        if (tile_begin() + at < args.n) count += __popc(mask_bits(args, tile_begin() + at));
    }
    count = __reduce_add_sync(ALL_LANES, count);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        int64 sum = 0;
        for (int w = 0; w < blockDim.x / 32; ++w) sum += partial[w];
        static_cast<int64*>(args.out)[blockIdx.x] = sum;
    }
}

// Calls put(i, k) for each index i within the tile at which the mask is true; k is the number of
// those before it. Neighbouring threads get neighbouring k.
template <class Put> __device__ inline void for_true(const Compact& args, Put put) {
    __shared__ uint16 indices[COMPACT_TILE];
    __shared__ uint32 partial[COMPACT_BLOCK / 32];
    uint32 before = 0;
    for (int first = 0; first < COMPACT_TILE; first += blockDim.x * 16) {
        int at = first + threadIdx.x * 16;
        uint32 bits = tile_begin() + at < args.n ? mask_bits(args, tile_begin() + at) : 0;
        uint32 to = before + block_sum_below(uint32(__popc(bits)), partial);
        for (; bits; bits &= bits - 1) indices[to++] = at + __ffs(bits) - 1;
        for (int w = 0; w < blockDim.x / 32; ++w) before += partial[w];
        if (tile_begin() + first + blockDim.x * 16 >= args.n) break;
    }
    __syncthreads();
    for (uint32 k = threadIdx.x; k < before; k += blockDim.x) put(indices[k], k);
}

template <class T> __device__ inline void select_true(const Compact& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64 sum = args.sums ? args.sums[blockIdx.x] : 0;
    const T* in = static_cast<const T*>(args.input) + tile_begin();
    T* out = static_cast<T*>(args.out) + sum;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    for_true(args, [&](uint32 i, uint32 k) { out[k] = in[i]; });
}

__device__ inline void positions_true(const Compact& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64* out = static_cast<int64*>(args.out) + (args.sums ? args.sums[blockIdx.x] : 0);
    __builtin_assume(__isGlobal(out));
    for_true(args, [&](uint32 i, uint32 k) { out[k] = tile_begin() + i; });
}

}  // namespace cyrt

#define CYRT_COUNT_TRUE(NAME)                                                                 \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Compact args) {             \
        cyrt::count_true(args);                                                               \
    }                                                                                         \
    extern "C" __global__ void NAME##_positions(const __grid_constant__ cyrt::Compact args) { \
        cyrt::positions_true(args);                                                           \
    }
#define CYRT_SELECT(NAME, TYPE)                                                   \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Compact args) { \
        cyrt::select_true<TYPE>(args);                                            \
    }
