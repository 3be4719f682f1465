// Prefixes over a warp and over a block, and words that blocks publish to one another.
#pragma once

#include "types.cuh"

namespace cyrt {

constexpr uint32 ALL_LANES = 0xffffffffu;

__device__ inline uint32 lanes_below() {
    uint32 mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

// The value of the lane that is `lanes` below, or the lane's own if there is none.
template <class T> __device__ inline T shuffle_up(T value, int lanes) {
    static_assert(sizeof(T) % 4 == 0, "scan in a compute type of 4, 8 or 16 bytes");
    uint32 words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32& word : words) word = __shfl_up_sync(ALL_LANES, word, lanes);
    memcpy(&value, words, sizeof(T));
    return value;
}

template <class T> __device__ inline T shuffle_from(T value, int lane) {
    uint32 words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32& word : words) word = __shfl_sync(ALL_LANES, word, lane);
    memcpy(&value, words, sizeof(T));
    return value;
}

// Each lane gets the total of the lanes up to itself. All lanes take part.
template <class T, class Op> __device__ inline T warp_scan(T value, Op op) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        T below = shuffle_up(value, lanes);
        if (lane >= lanes) value = op(below, value);
    }
    return value;
}

// The sum of the threads below. `partial` has room for a number a warp, and holds the warps' sums
// afterwards; the block is of whole warps.
template <class T> __device__ inline T block_sum_below(T value, T* partial) {
    auto add = [](T a, T b) { return a + b; };
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T sum = warp_scan(value, add);
    __syncthreads();  // the reads of an earlier call have ended
    if (lane == 31) partial[warp] = sum;
    __syncthreads();
    T below = sum - value;
    for (int w = 0; w < warp; ++w) below += partial[w];
    return below;
}

// -- between blocks -------------------------------------------------------------------------------

// A block's turn: all blocks with lower turns have started. Every thread gets it.
__device__ inline uint32 take_turn(uint32* next) {
    __shared__ uint32 turn;
    if (threadIdx.x == 0) turn = atomicAdd(next, 1);
    __syncthreads();
    return turn;
}

// Whoever acquires the word sees what its writer wrote before it released the word.
__device__ inline void release(uint32* word, uint32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ inline uint32 acquire(const uint32* word) {
    uint32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// A word that orders no other memory.
__device__ inline void publish(uint64* word, uint64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline uint64 published(const uint64* word) {
    uint64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

}  // namespace cyrt
