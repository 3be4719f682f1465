// Tiles of rows of 16-bit floats, which the kernels of attention of many rows share.
#pragma once

#include "memory.cuh"
#include "online_softmax.cuh"

namespace cyrt {

// Rows in shared memory. Eight neighbouring ones are in different banks.
template <class T, int ROWS, int WIDTH> struct alignas(VECTOR_BYTES) Tile {
    T item[ROWS][WIDTH + 8];
};

// Begins to copy the first nbytes of a vector of 16 bytes to shared memory; the others become 0.
__device__ inline void fetch_vector(void* to, const void* from, uint32 nbytes) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(uint32(__cvta_generic_to_shared(to))),
        "l"(from), "r"(nbytes)
        : "memory");
}

// Begins to copy rows `first` and further to a tile; rows and features that there are not become 0.
template <int THREADS, class T, int ROWS, int WIDTH>
__device__ inline void fetch_tile(Tile<T, ROWS, WIDTH>& to, const T* from, int64 step, int first,
                                  int rows, uint32 features) {
    constexpr int VECTOR = VECTOR_BYTES / sizeof(T), VECTORS = WIDTH / VECTOR;
    const uint32 feature = threadIdx.x % VECTORS * VECTOR, row = threadIdx.x / VECTORS;
    const uint32 known = feature < features ? min(features - feature, VECTOR) * sizeof(T) : 0;
#pragma unroll
    for (int i = 0; i < ROWS; i += THREADS / VECTORS) {
        const int at = first + row + i;
        const uint32 nbytes = at < rows ? known : 0;
        fetch_vector(&to.item[row + i][feature], from + (nbytes ? at * step + feature : 0), nbytes);
    }
}

// Waits until this thread's copies are done, then the others', and all have read the tile before.
__device__ inline void await_tile() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

// Two neighbouring features of a row, a multiple of 4 bytes from its beginning.
template <class T>
__device__ inline uint32 load_pair(const T* row, uint32 feature, uint32 features) {
    if (feature + 1 < features) return *reinterpret_cast<const uint32*>(row + feature);
    return feature < features ? row[feature].bits : 0;
}

// Stores two neighbouring features of a row, an even number from its beginning.
template <class T>
__device__ inline void store_pair(T* row, uint32 feature, uint32 features, float low, float high) {
    const uint32 two = pack<T>(low, high);
    if (features % 2 == 0) {  // so every row begins at a word
        if (feature < features) *reinterpret_cast<uint32*>(row + feature) = two;
    } else {
        if (feature < features) row[feature] = {uint16(two)};
        if (feature + 1 < features) row[feature + 1] = {uint16(two >> 16)};
    }
}

}  // namespace cyrt
