// Reductions over a warp and over a block.
#pragma once

#include "types.cuh"

namespace cyrt {

template<class T> __device__ inline T shuffle_xor(T value, int lanes) {
    static_assert(sizeof(T) % 4 == 0, "reduce in a compute type of 4, 8 or 16 bytes");
    uint32 words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32& word : words) word = __shfl_xor_sync(0xffffffffu, word, lanes);
    memcpy(&value, words, sizeof(T));
    return value;
}

// Every lane gets the result. All lanes take part.
template<class T, class Op> __device__ inline T warp_reduce(T value, Op op) {
#pragma unroll
    for (int lanes = 16; lanes; lanes /= 2) value = op(value, shuffle_xor(value, lanes));
    return value;
}

// Every thread gets the result. The block is of whole warps and one-dimensional; `identity` stands
// for the warps that there are not.
template<class T, class Op> __device__ inline T block_reduce(T value, Op op, T identity) {
    __shared__ alignas(sizeof(T)) unsigned char bytes[32 * sizeof(T)];
    T* partial = reinterpret_cast<T*>(bytes);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_reduce(value, op);
    __syncthreads();            // the reads of an earlier call have ended
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    return warp_reduce(lane < int(blockDim.x / 32) ? partial[lane] : identity, op);
}

}  // namespace cyrt
