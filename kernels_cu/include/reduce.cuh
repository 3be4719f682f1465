// Reductions over lanes, over a block and over the rows of a block.
#pragma once

#include "types.cuh"

namespace cyrt {

constexpr int WARP = 32;

// The words of a value that is shuffled, of any type whose size is a multiple of 4 bytes.
template <class T> struct Words {
    static_assert(sizeof(T) % 4 == 0, "reduce in types of whole words");
    uint32 word[sizeof(T) / 4];

    __device__ static Words of(const T& value) {
        Words words;
        memcpy(&words, &value, sizeof(T));
        return words;
    }
    __device__ T value() const {
        T value;
        memcpy(&value, this, sizeof(T));
        return value;
    }
};

template <class T> __device__ inline T shuffle_xor(T value, int lanes) {
    Words<T> words = Words<T>::of(value);
#pragma unroll
    for (uint32& word : words.word) word = __shfl_xor_sync(0xffffffffu, word, lanes);
    return words.value();
}

// The first value plus that of a lane `lanes` away; in the upper one of both lanes, the second values.
__device__ inline float add_across(float first, float second, bool upper, int lanes) {
    return (upper ? second : first) + shuffle_xor(upper ? first : second, lanes);
}

// Every lane gets the result. All lanes take part. A warp holds several groups of fewer lanes, a
// power of two.
template <class T, class Op> __device__ inline T warp_reduce(T value, Op op, int size = WARP) {
#pragma unroll 1
    for (int lanes = size / 2; lanes; lanes /= 2) value = op(value, shuffle_xor(value, lanes));
    return value;
}

// Every thread gets the result. The block is of whole warps and one-dimensional; `identity` is the
// value of warps beyond the last one.
template <class T, class Op> __device__ inline T block_reduce(T value, Op op, T identity) {
    __shared__ alignas(16) unsigned char bytes[WARP * sizeof(T)];
    T* partial = reinterpret_cast<T*>(bytes);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int pass = 0;; ++pass) {
        value = warp_reduce(value, op);
        if (pass) return value;
        __syncthreads();  // the reads of an earlier call have ended
        if (lane == 0) partial[warp] = value;
        __syncthreads();
        value = lane < int(blockDim.x / WARP) ? partial[lane] : identity;
    }
}

// Over threadIdx.y, for each of N values and each threadIdx.x: the threads of the first row get the
// results. blockDim.y is a power of two; `shared` has room for N values of half the threads.
template <int N, class T, class Op>
__device__ inline void reduce_columns(T (&values)[N], Op op, T* shared) {
    int threads = blockDim.x * blockDim.y, half = threads / 2;
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (; half >= int(blockDim.x); half /= 2, threads /= 2) {
        if (thread >= half && thread < threads) {
#pragma unroll
            for (int k = 0; k < N; ++k) shared[k * half + thread - half] = values[k];
        }
        __syncthreads();
        if (thread < half) {
#pragma unroll
            for (int k = 0; k < N; ++k) values[k] = op(values[k], shared[k * half + thread]);
        }
        __syncthreads();
    }
}

}  // namespace cyrt
