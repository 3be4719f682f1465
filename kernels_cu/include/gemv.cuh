// A linear layer of one row: the row times a matrix whose rows lie along the summed dimension.
//
// The time is that of reading the matrix. A block reads GEMV_ROWS rows of it at once, each as one
// piece; a thread has some elements of the single row in registers, for all of them. The squares
// that an rms_norm needs are summed beside the products, which are scaled at the end.
#pragma once

#include "dependency.cuh"
#include "linear_epilogue.cuh"
#include "skinny_tiles.cuh"

namespace cyrt {

// Adds up each of the sums over a warp. Lane l gets that number l / 4: half of the sums change hands
// each time, and then the four lanes add up what is left.
__device__ inline float sum_lanes(float (&sums)[GEMV_ROWS]) {
    static_assert(GEMV_ROWS == 8, "8 sums in 32 lanes");
#pragma unroll
    for (int half = 4, lanes = 16; half; half /= 2, lanes /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) {
            sums[i] = add_across(sums[i], sums[i + half], threadIdx.x & lanes, lanes);
        }
    }
    float sum = sums[0];
    sum += shuffle_xor(sum, 2);
    return sum + shuffle_xor(sum, 1);
}

template <class T> __device__ inline void gemv(const Linear& all) {
    const Skinny& args = all.product;
    constexpr int K = VECTOR_BYTES / sizeof(T), ROWS = GEMV_ROWS;
    __shared__ float of_warp[16][ROWS + 1];  // the last one: of squares
    bool gated = all.gated;
    uint32 kept = gated ? ROWS / 2 : ROWS, first = blockIdx.x * kept;
    uint32 thread = threadIdx.y * 32 + threadIdx.x;
    const T* rows[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        // A row that there is not is the last one: its sum is not used.
        uint32 row = first + (gated ? i % (ROWS / 2) : i);
        if (row >= args.wide) row = args.wide - 1;
        if (gated && i >= ROWS / 2) row += args.wide;
        rows[i] = global<T>(args.matrix) + row * args.wide_step;
    }
    uint32 at = thread * K, step = 32 * blockDim.y * K;
    Fragment<T, K> matrix[ROWS];
    auto load_matrix = [&] {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            matrix[i] = Fragment<T, K>::load(rows[i] + at, at < args.k);
        }
    };
    if (!args.early) wait_for_dependencies(all);
    load_matrix();
    if (args.early) wait_for_dependencies(all);
    launch_dependents<PRODUCT_BLOCKS>();
    const T* few = global<T>(args.few_rows);
    const T* weight = static_cast<const T*>(all.norm);
    bool stores = thread < kept && first + thread < args.wide;
    uint32 index = stores ? first + thread : first;
    LinearEpilogue<T> epilogue(all, index, index * args.wide_out);
    float sums[ROWS] = {}, squares = 0;
#pragma unroll 1
    while (at < args.k) {
        float x[K];
        Fragment<T, K>::load(few + at, true).widen_to(x);
        if (weight) {
            float weights[K];
            Fragment<T, K>::load(weight + at, true).widen_to(weights);
#pragma unroll
            for (int i = 0; i < K; ++i) {
                squares += x[i] * x[i];
                x[i] *= weights[i];
            }
        }
        at += step;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            float row[K];
            matrix[i].widen_to(row);
#pragma unroll
            for (int k = 0; k < K; ++k) sums[i] += row[k] * x[k];
            matrix[i] = Fragment<T, K>::load(rows[i] + at, at < args.k);
        }
    }
    float sum = sum_lanes(sums);
    if (threadIdx.x % 4 == 0) of_warp[threadIdx.y][threadIdx.x / 4] = sum;
    if (weight) {
#pragma unroll
        for (int lanes = 16; lanes; lanes /= 2) squares += shuffle_xor(squares, lanes);
        if (threadIdx.x == 0) of_warp[threadIdx.y][ROWS] = squares;
    }
    __syncthreads();
    if (!stores) return;
    auto sum_warps = [&](uint32 i) {
        float sum = of_warp[0][i];
#pragma unroll 4
        for (uint32 warp = 1; warp < blockDim.y; ++warp) sum += of_warp[warp][i];
        return sum;
    };
    float factor = weight ? rsqrt(sum_warps(ROWS) / float(args.k) + all.eps) : 1;
    float gated_sum = gated ? factor * sum_warps(thread + ROWS / 2) : 0;
    global<T>(args.out)[index * args.wide_out] =
        epilogue.apply(all, factor * sum_warps(thread), gated_sum);
}

}  // namespace cyrt
