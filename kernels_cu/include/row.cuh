// Rows in registers: which elements a thread has, loads, stores and reductions.
//
// A block has blockDim.y rows, and blockDim.x threads a row, a power of two.
#pragma once

#include "memory.cuh"
#include "reduce.cuh"
#include "strided.cuh"
#include "params/row.h"

namespace cyrt {

template <class T> constexpr int row_chunks = ROW_CHUNKS(items_of<T>);

// The vector of elements that a thread has side by side, as words.
template <class T> using Packed = Words<Items<T, items_of<T>>>;

// The vector's elements in their compute type.
template <class T, int N>
__device__ inline void widen(const Words<Items<T, N>>& packed, compute_of<T> (&values)[N]) {
    widen(packed.value(), values);
}
template <class T, int CHUNKS, int N>
__device__ inline void widen(const Words<Items<T, N>> (&packed)[CHUNKS],
                             compute_of<T> (&values)[CHUNKS][N]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) widen(packed[chunk], values[chunk]);
}

// The elements that a thread has of `length` side by side: CHUNKS times N. With VECTOR those of a
// chunk are side by side and aligned; otherwise neighbouring threads have neighbouring elements.
template <class T, int CHUNKS, bool VECTOR> struct ThreadElements {
    static constexpr int N = items_of<T>;
    int held;  // vectors, or elements

    __device__ explicit ThreadElements(int64 length) {
        constexpr int UNIT = VECTOR ? N : 1;
        int shift = 31 - __clz(blockDim.x * UNIT);
        int rest = int(min(length, int64(capacity()))) - int(threadIdx.x) * UNIT;
        held = (rest + (1 << shift) - 1) >> shift;
    }
    // The elements that all threads have together, at most.
    __device__ static uint32 capacity() { return blockDim.x * CHUNKS * N; }

    __device__ uint32 index(int chunk, int k) const {
        return VECTOR ? (chunk * blockDim.x + threadIdx.x) * N + k
                      : (chunk * N + k) * blockDim.x + threadIdx.x;
    }
    __device__ bool has(int chunk, int k) const { return (VECTOR ? chunk : chunk * N + k) < held; }

    // Calls f(chunk, k) for each element.
    template <class F> __device__ void each(F f) const {
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            if (VECTOR && !has(chunk, 0)) continue;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (VECTOR || has(chunk, k)) f(chunk, k);
            }
        }
    }

    // Loads a chunk; elements beyond the row are 0.
    __device__ Packed<T> load(const T* from, int chunk) const {
        if constexpr (VECTOR) {
            Packed<T> packed = {};
            if (has(chunk, 0)) packed = Packed<T>::of(load_vector<N>(from + index(chunk, 0)));
            return packed;
        } else {
            Items<T, N> items = {};
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (has(chunk, k)) items.item[k] = from[index(chunk, k)];
            }
            return Packed<T>::of(items);
        }
    }
    // All chunks: the loads are in flight together.
    __device__ void load(const T* from, Packed<T> (&chunks)[CHUNKS]) const {
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) chunks[chunk] = load(from, chunk);
    }
    __device__ void store(T* to, int chunk, const Items<T, N>& items) const {
        if constexpr (VECTOR) {
            if (has(chunk, 0)) store_vector<N>(to + index(chunk, 0), items);
        } else {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (has(chunk, k)) to[index(chunk, k)] = items.item[k];
            }
        }
    }
};

// The vectors of a row on their way to shared memory. A thread takes those that it sent for, so no
// barrier is needed, and its vectors may be overwritten as soon as it has read them.
template <class T, int CHUNKS> struct Arriving {
    Packed<T>* first;  // where the thread's first vector is

    template <class ThreadElements>
    __device__ void fetch(const ThreadElements& elements, const T* from) const {
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            uint32 to = __cvta_generic_to_shared(first + chunk * blockDim.x);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                         "l"(from + elements.index(chunk, 0)),
                         "r"(elements.has(chunk, 0) ? VECTOR_BYTES : 0)
                         : "memory");
        }
    }
    __device__ static void await() { asm volatile("cp.async.wait_all;" ::: "memory"); }
    __device__ void take(Packed<T> (&chunks)[CHUNKS]) const {
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            chunks[chunk] = first[chunk * blockDim.x];
        }
    }
};

// A barrier of the threads of a row, which are whole warps. In a block of SEVERAL rows each has its
// own.
template <bool SEVERAL> __device__ inline void synchronize_row() {
    if (SEVERAL) {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.y), "r"(blockDim.x) : "memory");
    } else {
        __syncthreads();
    }
}

// The same as warp_reduce of a whole warp, unrolled: the instructions of the loop count here.
template <class T, class Op> __device__ inline T unrolled_reduce(T value, Op op) {
#pragma unroll
    for (int lanes = WARP / 2; lanes; lanes /= 2) value = op(value, shuffle_xor(value, lanes));
    return value;
}

// threadIdx.x, read anew: in a loop, what follows from it occupies no registers.
__device__ inline uint32 thread_of_row() {
    uint32 x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

// Every thread of a row gets the result. All threads of the block take part. SEVERAL: rows of more
// than a warp may share a block. Operations of many instructions are not UNROLLED.
//
// One barrier a call: two calls in succession have different turns, 0 and 1, or different types.
// Then the barrier of the second has all reads of the first behind it, before a third one writes.
template <bool SEVERAL = false, bool UNROLLED = true, class T, class Op>
__device__ inline T row_reduce(T value, Op op, uint32 turn) {
    __shared__ alignas(16) unsigned char bytes[2 * WARP * sizeof(T)];
    uint32 thread = thread_of_row(), lane = thread % WARP, warps = blockDim.x / WARP;
    T* partial = reinterpret_cast<T*>(bytes) + turn * WARP + (SEVERAL ? threadIdx.y * warps : 0);
    if (UNROLLED && blockDim.x >= WARP) {
        value = unrolled_reduce(value, op);
    } else {
        value = warp_reduce(value, op, min(blockDim.x, WARP));
    }
    if (warps <= 1) return value;
    if (lane == 0) partial[thread / WARP] = value;
    synchronize_row<SEVERAL>();
    return warp_reduce(partial[lane & (warps - 1)], op, warps);
}

template <bool SEVERAL = false, class T> __device__ inline T row_sum(T value, uint32 turn) {
    return row_reduce<SEVERAL>(value, [](T a, T b) { return a + b; }, turn);
}

// -- parts of long rows ---------------------------------------------------------------------------

// The part of a row that a block works on: elements from `begin` to before `end`.
struct RowPart {
    int64 row, begin, end;

    __device__ RowPart(const Divider& parts, int64 length, int64 n)
        : row(divide(blockIdx.x, parts)) {
        begin = (blockIdx.x - row * parts.size) * length;
        end = min(begin + length, n);
    }
};

// Combines the states that the blocks of a row's parts wrote, always in the same order. Every thread
// gets the result.
template <class State, class Op>
__device__ inline State combine_parts(const State* states, uint32 count, Op op, State identity) {
    return row_reduce<false, false>(threadIdx.x < count ? states[threadIdx.x] : identity, op, 0);
}

}  // namespace cyrt
