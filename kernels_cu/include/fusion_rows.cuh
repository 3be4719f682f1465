// Reductions of rows among fused operations, in the order of reduce.cu: a thread has the same
// elements, and they are combined in the same trees.
//
// A block is blockDim.x threads a row, and blockDim.y rows. A thread has UNITS vectors of ITEMS
// elements of its row, those of neighbouring threads side by side; `left` counts the row's vectors
// from the thread's first one on.
#pragma once

#include "fusion.cuh"
#include "reduce.cu"

namespace cyrt {

// Elements of a vector: ITEMS may be those of a narrower type.
template <class T, int ITEMS> constexpr int width_of = smaller(ITEMS, VECTOR_BYTES / sizeof(T));

template <class T, int ITEMS, int UNITS>
__device__ inline Items<T, ITEMS * UNITS> load_row(const void* memory, int64 row, uint32 left) {
    constexpr int WIDTH = width_of<T, ITEMS>;
    Items<T, ITEMS * UNITS> items = {};
#pragma unroll
    for (int first = 0; first < ITEMS * UNITS; first += WIDTH) {
        uint32 unit = first / ITEMS * blockDim.x;
        if (unit >= left) break;
        int64 offset = row + int64(unit + threadIdx.x) * ITEMS + first % ITEMS;
        Items<T, WIDTH> loaded = load_vector<WIDTH>(global<T>(memory) + offset);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) items.item[first + k] = loaded.item[k];
    }
    return items;
}

template <int ITEMS, int UNITS, class T>
__device__ inline void store_row(void* memory, int64 row, uint32 left,
                                 const Items<T, ITEMS * UNITS>& items) {
    constexpr int WIDTH = width_of<T, ITEMS>;
#pragma unroll
    for (int first = 0; first < ITEMS * UNITS; first += WIDTH) {
        uint32 unit = first / ITEMS * blockDim.x;
        if (unit >= left) break;
        int64 offset = row + int64(unit + threadIdx.x) * ITEMS + first % ITEMS;
        Items<T, WIDTH> stored;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) stored.item[k] = items.item[first + k];
        store_vector<WIDTH>(global<T>(memory) + offset, stored);
    }
}

// The number of a run's elements, which is what most operations ask of them.
struct Counted {
    uint32 count;
};

// The state of a thread's elements; see take_loads and take_share of reduce.cu. They are fewer than a
// run's.
template <class Op, class T, int ITEMS, int UNITS>
__device__ inline typename Op::State state_of(const Items<T, ITEMS * UNITS>& items, uint32 left) {
    constexpr int LOADS = batch_loads_of<T, 1, ITEMS>;
    static_assert(UNITS <= RUN_BATCHES * LOADS, "more elements than those of a run");
    typename Op::Run run = Op::start();
    Counted elements = {0};
#pragma unroll
    for (int first = 0; first < UNITS; first += LOADS) {
        if (first * blockDim.x >= left) break;
        Batch<compute_of<T>, LOADS, ITEMS> batch;
        batch.number = elements.count;
#pragma unroll
        for (int j = 0; j < LOADS; ++j) {
            int unit = first + j;
            batch.valid[j] = unit < UNITS && unit * blockDim.x < left;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                batch.value[j][k] =
                    unit < UNITS ? widen(items.item[unit * ITEMS + k]) : compute_of<T>();
            }
        }
        Op::take(run, batch);
#pragma unroll
        for (int j = 0; j < LOADS; ++j) elements.count += batch.valid[j] ? ITEMS : 0;
    }
    return left ? Op::combine(Op::identity(), Op::close(run, elements)) : Op::identity();
}

// The first thread's state, in all threads of its row.
template <class State> __device__ inline State spread_state(State state) {
    if (blockDim.x <= WARP) {
        Words<State> words = Words<State>::of(state);
#pragma unroll
        for (uint32& word : words.word) word = __shfl_sync(0xffffffffu, word, 0, blockDim.x);
        return words.value();
    }
    // No thread is here again before all have read it: reduce_threads has a barrier in between.
    __shared__ Words<State> result;
    if (threadIdx.x == 0) result = Words<State>::of(state);
    __syncthreads();
    return result.value();
}

template <class Op, class R, int ITEMS, int UNITS, class T, int ALL>
__device__ inline Items<R, 1> reduce_row(const Items<T, ALL>& items, uint32 left, double divisor) {
    auto state = state_of<Op, T, ITEMS, UNITS>(fenced(items), left);
    state = spread_state(reduce_threads<Op>(state));
    return fenced(Items<R, 1>{{Op::finish(state, divisor, false)}});
}

// A row's value as that of each of its elements.
template <int N, class T> __device__ inline Items<T, N> along_row(const Items<T, 1>& value) {
    return splat<N>(value.item[0]);
}

}  // namespace cyrt
