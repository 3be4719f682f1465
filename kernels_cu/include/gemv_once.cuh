// A linear layer of one row. A block's threads take the whole row at once, and one group of the
// matrix's rows.
//
// Such layers are short, and each waits for the one before. So the time that counts is that from the
// end of the one before to the last result; the matrix is loaded by then. A block computes several
// passes: the first ones before it waits, without the row, and the last one with it. The first passes
// load the instructions, which a warp would otherwise fetch in that time. For a layer_norm they also
// compute the products that do not depend on the row, those of the matrix with the norm's bias and
// with its weight:
//
//     sum(((x - mean) * scale * weight + bias) * matrix)
//         = scale * (sum((x - p) * weight * matrix) - (mean - p) * sum(weight * matrix))
//           + sum(bias * matrix).
//
// Here p is the mean of the row's first elements: neither a mean that is much larger than the deviation
// nor a few outliers cost accuracy. The same loop sums the row's moments, or an rms_norm's squares.
#pragma once

#include "gemv.cuh"

namespace cyrt {

// The mean of the first elements of a row of n elements, which are whole vectors. The mean of equal
// elements is exact.
template <class T> __device__ inline float mean_of_first(const T* row, uint32 n) {
    constexpr int K = VECTOR_BYTES / sizeof(T), COUNT = 8;
    float x[COUNT / K][K];
#pragma unroll
    for (int i = 0; i < COUNT / K; ++i) {
        Fragment<T, K>::load(row + min(i * K, n - K), true).widen_to(x[i]);
    }
#pragma unroll
    for (int width = COUNT / 2; width; width /= 2) {
#pragma unroll
        for (int k = 0; k < width; ++k) x[k / K][k % K] += x[(k + width) / K][(k + width) % K];
    }
    return x[0][0] * (1.0f / COUNT);
}

// CENTERED: the norm is a layer_norm; otherwise it is an rms_norm, or there is none.
template <class T, bool CENTERED> __device__ inline void gemv_once(const Linear& all) {
    const Skinny& args = all.product;
    constexpr int K = VECTOR_BYTES / sizeof(T), ROWS = GEMV_ROWS, WARPS = GEMV_ONCE_WARPS;
    // With a layer_norm, the products with its bias, with its weight, and with the row.
    constexpr uint32 PASSES = CENTERED ? 3 : 2;
    extern __shared__ uint4 copies[];  // each thread's own vector of each row
    __shared__ float of_warp[PASSES][WARPS][ROWS];
    __shared__ float2 moments_of_warp[PASSES][WARPS];
    const bool gated = all.gated, normed = all.norm;
    const uint32 kept = gated ? ROWS / 2 : ROWS, thread = threadIdx.y * 32 + threadIdx.x;
    const uint32 threads = 32 * blockDim.y, at = thread * K;
    const bool there = at < args.k;
    const float share = 1.0f / float(args.k);
    const T* matrix = global<T>(args.matrix) + (there ? at : 0);
    const T* few = global<T>(args.few_rows);
    uint32 index = blockIdx.x * kept + thread;
    const bool stores = thread < kept && index < args.wide;
    if (!stores) index = 0;
    if (!args.early) wait_for_dependencies(all);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        // The last row is loaded instead of rows beyond it: their sums are not used.
        uint32 row = blockIdx.x * kept + (gated ? i % (ROWS / 2) : i);
        if (row >= args.wide) row = args.wide - 1;
        if (gated && i >= ROWS / 2) row += args.wide;
        copy_async<VECTOR_BYTES>(copies + i * threads + thread, matrix + row * args.wide_step,
                                 there);
    }
    const auto weights =
        Fragment<T, K>::load(static_cast<const T*>(all.norm) + at, there && normed);
    const auto shifts =
        Fragment<T, K>::load(static_cast<const T*>(all.norm_bias) + at, there && CENTERED);
    LinearEpilogue<T> epilogue;
    epilogue.load_bias(all, index);
    launch_dependents<PRODUCT_BLOCKS>();
    Fragment<T, K> row = {};
    float near = 0;
    // Behind the wait, passes that only load instructions would gain nothing.
    const uint32 first = CENTERED || args.early ? 0 : PASSES - 1;
#pragma unroll 1
    for (uint32 pass = first; pass < PASSES; ++pass) {
        const bool last = pass + 1 == PASSES;
        if (last) {
            if (args.early) wait_for_dependencies(all);
            row = Fragment<T, K>::load(few + at, there);
            if (CENTERED) near = mean_of_first(few, args.k);
            epilogue.load_residual(all, index * args.wide_out);
        }
        float x[K], sum = 0, squares = 0;
        row.widen_to(x);
        if (CENTERED || normed) {
            float by[K];
            auto factor = weights;
            if (CENTERED && pass == 0) factor = shifts;
            factor.widen_to(by);
#pragma unroll
            for (int i = 0; i < K; ++i) {
                if (CENTERED) {
                    x[i] = there ? x[i] - near : 0;
                    sum += x[i];
                }
                squares += x[i] * x[i];
                x[i] = CENTERED && !last ? by[i] : x[i] * by[i];
            }
        }
        typename RowSums<T>::Factors factors;
        factors.take(x, CENTERED || normed);
        if (pass == first) await_all_copies();
        RowSums<T> products;
#pragma unroll
        for (int pair = 0; pair < ROWS / 2; ++pair) {
            Fragment<T, K> rows[2];
            memcpy(&rows[0], copies + 2 * pair * threads + thread, 16);
            memcpy(&rows[1], copies + (2 * pair + 1) * threads + thread, 16);
            products.add(pair, rows, factors);
        }
        float sums[ROWS];
        products.finish(sums);
        float product = sum_lanes(sums);
        if (CENTERED || normed) {
#pragma unroll
            for (int lanes = 16; lanes; lanes /= 2) {
                if (CENTERED) sum += shuffle_xor(sum, lanes);
                squares += shuffle_xor(squares, lanes);
            }
            if (threadIdx.x == 0) moments_of_warp[pass][threadIdx.y] = make_float2(sum, squares);
        }
        if (threadIdx.x % 4 == 0) of_warp[pass][threadIdx.y][threadIdx.x / 4] = product;
        __syncthreads();
        if (!stores) continue;
        float mean = 0, scale = 1;
        if (CENTERED || normed) {
            const float* moments = &moments_of_warp[pass][0].x;
            if (CENTERED) mean = sum_warps(moments, 2) * share;
            float variance = sum_warps(moments + 1, 2) * share - mean * mean;
            scale = rsqrt((variance < 0 ? 0 : variance) + all.eps);
        }
        auto result = [&](uint32 row) {
            float found = sum_warps(of_warp[pass][0] + row, ROWS);
            if (CENTERED) found -= mean * sum_warps(of_warp[min(pass, 1)][0] + row, ROWS);
            found *= scale;
            return CENTERED ? found + sum_warps(of_warp[0][0] + row, ROWS) : found;
        };
        T value = epilogue.apply(all, result(thread), gated ? result(thread + ROWS / 2) : 0);
        if (last) global<T>(args.out)[index * args.wide_out] = value;
    }
}

}  // namespace cyrt
