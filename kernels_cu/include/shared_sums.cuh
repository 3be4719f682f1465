// Sums over the rows that a block takes, one for each element of a row.
#pragma once

#include "row.cuh"

namespace cyrt {

// Sums that a thread keeps in shared memory, one for each of its elements: vectors, those of
// neighbouring threads side by side.
template <class V, int N> struct SharedSums {
    static constexpr int WIDTH = VECTOR_BYTES / sizeof(V), VECTORS = N / WIDTH;
    V* first;  // the thread's first sum

    __device__ V* at(int chunk, int vector) const {
        return first + (chunk * VECTORS + vector) * WIDTH * blockDim.x;
    }
    __device__ void clear(int chunk) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) store_vector<WIDTH>(at(chunk, v), splat<WIDTH>(V(0)));
    }
    __device__ void read(int chunk, V (&terms)[N]) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Items<V, WIDTH> sums = load_vector<WIDTH>(at(chunk, v));
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) terms[v * WIDTH + k] = sums.item[k];
        }
    }
    __device__ void write(int chunk, const V (&terms)[N]) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Items<V, WIDTH> sums;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sums.item[k] = terms[v * WIDTH + k];
            store_vector<WIDTH>(at(chunk, v), sums);
        }
    }
};

// Adds up what the rows of threads of a block have, `region` numbers apart, and writes it to a row
// of partials.
template <class ThreadElements, class V, int CHUNKS, int N>
__device__ inline void write_partials(const ThreadElements& elements, SharedSums<V, N> sums,
                                      uint32 region, V* partials) {
    V terms[N];
#pragma unroll 1
    for (uint32 half = blockDim.y / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.y >= half) continue;
        SharedSums<V, N> others{sums.first + half * region};
#pragma unroll 1
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            V found[N];
            sums.read(chunk, terms);
            others.read(chunk, found);
#pragma unroll
            for (int k = 0; k < N; ++k) terms[k] += found[k];
            sums.write(chunk, terms);
        }
    }
    if (threadIdx.y > 0) return;
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        sums.read(chunk, terms);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (elements.has(chunk, k)) partials[elements.index(chunk, k)] = terms[k];
        }
    }
}

}  // namespace cyrt
