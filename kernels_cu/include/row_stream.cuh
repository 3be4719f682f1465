// Rows that arrive in shared memory while those before them are worked on, and sums over the threads
// of a row behind one barrier.
//
// A row has whole warps, blockDim.x threads, and a block blockDim.y rows at once. It takes rows until
// there are none.
#pragma once

#include "dependency.cuh"
#include "row.cuh"

namespace cyrt {

// Blocks that take rows until there are none let the next kernel start at their end, whatever the grid.
constexpr unsigned ANY_GRID = 0xffffffff;

// The rows that a row of threads takes: `count` of them, `step` rows apart.
struct RowTurns {
    int64 first, step;
    int count;

    __device__ explicit RowTurns(int64 rows)
        : first(int64(blockIdx.x) * blockDim.y + threadIdx.y), step(int64(gridDim.x) * blockDim.y),
          count(first < rows ? (rows - first + step - 1) / step : 0) {}
};

// The vectors that a thread gets of the rows of one array, STAGES rows ahead: `first` is where its
// first one of the first stage comes to lie.
//
// A thread reads none but its own vectors: so copies need no barrier. Each row of every array is a
// group of copies, also one that is not there: thus a constant number of groups is under way.
template <class T, int CHUNKS, int STAGES> struct RowStream {
    Packed<T>* first;
    const T* from;
    int64 hop;  // elements from one row of the thread to its next

    __device__ RowStream(Packed<T>* first, const void* array, int64 row_step, const RowTurns& turns)
        : first(first), from(global<T>(array) + turns.first * row_step),
          hop(turns.step * row_step) {}
    __device__ Arriving<T, CHUNKS> at(uint32 stage, uint32 stage_vectors) const {
        return {first + stage * stage_vectors};
    }
    // Issues the copies of the next row.
    template <class ThreadElements>
    __device__ void fetch(const Arriving<T, CHUNKS>& to, const ThreadElements& elements, bool any) {
        if (any) to.fetch(elements, from);
        from += hop;
    }
};
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most PENDING groups are under way.
template <int PENDING> __device__ inline void await_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// What is a loop's constant may be kept in registers as vectors, not as the numbers in them, of which
// there are twice as many: the compiler takes the words for new ones.
template <class Vector, int CHUNKS> __device__ inline void keep_packed(Vector (&vectors)[CHUNKS]) {
#pragma unroll
    for (Vector& vector : vectors) {
#pragma unroll
        for (uint32& word : vector.word) asm volatile("" : "+r"(word));
    }
}

// -- sums over the threads of a row ---------------------------------------------------------------

__device__ inline float warp_sum(float value) {
    return unrolled_reduce(value, [](float a, float b) { return a + b; });
}
// The sums of two to four numbers over a warp, in few instructions: lane 0 gets that of the first,
// lane 16 of the second, lane 8 of the third, lane 24 of the fourth.
__device__ inline float warp_sums(float first, float second) {
    float sum = add_across(first, second, threadIdx.x & 16, 16);
#pragma unroll
    for (int lanes = 8; lanes; lanes /= 2) sum += shuffle_xor(sum, lanes);
    return sum;
}
__device__ inline float warp_sums(float first, float second, float third) {
    float both = add_across(first, second, threadIdx.x & 16, 16);
    third += shuffle_xor(third, 16);
    float sum = add_across(both, third, threadIdx.x & 8, 8);
#pragma unroll
    for (int lanes = 4; lanes; lanes /= 2) sum += shuffle_xor(sum, lanes);
    return sum;
}

__device__ inline float warp_sums(float first, float second, float third, float fourth) {
    const uint32 upper = threadIdx.x & 16;
    float sum = add_across(add_across(first, second, upper, 16),
                           add_across(third, fourth, upper, 16), threadIdx.x & 8, 8);
#pragma unroll
    for (int lanes = 4; lanes; lanes /= 2) sum += shuffle_xor(sum, lanes);
    return sum;
}

// The reduction over `warps` neighbouring lanes, a power of two, in each group of as many.
template <class V, class Op> __device__ inline V reduce_lanes(V value, uint32 warps, Op op) {
#pragma unroll
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        if (lanes < warps) value = op(value, shuffle_xor(value, lanes));
    }
    return value;
}
__device__ inline float sum_lanes(float value, uint32 warps) {
    return reduce_lanes(value, warps, [](float a, float b) { return a + b; });
}

// How many elements of a row a warp has, and one over that number.
struct WarpShare {
    float count, part;
};
// Sets the shares of the warps in a row of n elements, which all rows of threads use. Every thread
// calls it; a barrier follows.
template <class T, int CHUNKS> __device__ inline const WarpShare* share_row(int n) {
    __shared__ WarpShare shares[WARP];
    constexpr int N = items_of<T>;
    if (threadIdx.y == 0 && threadIdx.x % WARP == 0) {
        int count = 0;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            int begin = (chunk * int(blockDim.x) + int(threadIdx.x)) * N;
            count += min(max(n - begin, 0), WARP * N);
        }
        shares[threadIdx.x / WARP] = {float(count), count > 0 ? 1.0f / float(count) : 0.0f};
    }
    return shares;
}

}  // namespace cyrt
