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
    __shared__ float of_warp[2][16][ROWS];  // by turns, so that a block meets once a group of rows
    __shared__ float squares_of_warp[16];
    bool gated = all.gated;
    uint32 kept = gated ? ROWS / 2 : ROWS, thread = threadIdx.y * 32 + threadIdx.x;
    uint32 step = 32 * blockDim.y * K, group = blockIdx.x, at = thread * K;
    const T* matrix = global<T>(args.matrix);
    Fragment<T, K> loaded[ROWS];
    auto load = [&](int i) {
        // A row that there is not is the last one: its sum is not used.
        uint32 row = group * kept + (gated ? i % (ROWS / 2) : i);
        if (row >= args.wide) row = args.wide - 1;
        if (gated && i >= ROWS / 2) row += args.wide;
        bool there = at < args.k && group * kept < args.wide;
        loaded[i] = Fragment<T, K>::load(matrix + row * args.wide_step + at, there);
    };
    auto load_all = [&] {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) load(i);
    };
    if (!args.early) wait_for_dependencies(all);
    load_all();
    if (args.early) wait_for_dependencies(all);
    launch_dependents<PRODUCT_BLOCKS>();
    const T* few = global<T>(args.few_rows);
    const T* weight = static_cast<const T*>(all.norm);
    float squares = 0, factor = 1;
    bool first = true;
#pragma unroll 1
    for (uint32 turn = 0; group * kept < args.wide; turn ^= 1) {
        uint32 index = group * kept + thread;
        bool stores = thread < kept && index < args.wide;
        if (!stores) index = 0;
        LinearEpilogue<T> epilogue(all, index, index * args.wide_out);
        float sums[ROWS] = {};
        bool more;
#pragma unroll 1
        do {
            float x[K];
            uint32 here = at;
            bool inside = here < args.k;
            Fragment<T, K>::load(few + here, inside).widen_to(x);
            if (weight) {
                float weights[K];
                Fragment<T, K>::load(weight + here, inside).widen_to(weights);
#pragma unroll
                for (int i = 0; i < K; ++i) {
                    if (first) squares += x[i] * x[i];
                    x[i] *= weights[i];
                }
            }
            at += step;
            more = at - thread * K < args.k;  // the same for all threads
            if (!more) {
                at = thread * K;
                group += gridDim.x;
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                float row[K];
                loaded[i].widen_to(row);
#pragma unroll
                for (int k = 0; k < K; ++k) sums[i] += row[k] * x[k];
                load(i);
            }
        } while (more);
        float sum = sum_lanes(sums);
        if (threadIdx.x % 4 == 0) of_warp[turn][threadIdx.y][threadIdx.x / 4] = sum;
        if (weight && first) {
#pragma unroll
            for (int lanes = 16; lanes; lanes /= 2) squares += shuffle_xor(squares, lanes);
            if (threadIdx.x == 0) squares_of_warp[threadIdx.y] = squares;
        }
        __syncthreads();
        if (stores) {
            auto sum_warps = [&](const float* sums, uint32 spacing) {
                float sum = sums[0];
#pragma unroll 4
                for (uint32 warp = 1; warp < blockDim.y; ++warp) sum += sums[warp * spacing];
                return sum;
            };
            if (weight && first) {
                factor = rsqrt(sum_warps(squares_of_warp, 1) / float(args.k) + all.eps);
            }
            const float* found = of_warp[turn][0];
            float gated_sum = gated ? factor * sum_warps(found + thread + ROWS / 2, ROWS) : 0;
            global<T>(args.out)[index * args.wide_out] =
                epilogue.apply(all, factor * sum_warps(found + thread, ROWS), gated_sum);
        }
        first = false;
    }
}

}  // namespace cyrt
