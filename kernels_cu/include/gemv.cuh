// A linear layer of one row: the row times a matrix whose rows are along the summed dimension.
//
// The time is that of reading the matrix. A block multiplies GEMV_ROWS rows of it at once, and then
// the next ones, gridDim.x blocks further on: the grid fills the device once. What is on its way from
// memory is in shared memory, not in registers: each thread copies vectors for itself, and reads them
// when they are there, so that blocks need few registers, and those of the next kernel find room.
// The next vectors are on their way while the sums of a group are added up.
//
// A kernel lets the next one start before it waits itself: a layer's products then load their first
// vectors while a short kernel before them still works, and the memory is idle.
#pragma once

#include "async_copy.cuh"
#include "dependency.cuh"
#include "linear_epilogue.cuh"
#include "skinny_tiles.cuh"

namespace cyrt {

// Adds up each of the sums over a warp. Lane l gets that number l / 4: lanes exchange half of the sums
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

// The sums of GEMV_ROWS rows times a single one, of the elements that a thread has loaded.
template <class T> struct RowSums {
    static constexpr int K = VECTOR_BYTES / sizeof(T);
    float sums[GEMV_ROWS] = {};

    struct Factors {
        float x[K];
        __device__ void take(const float (&from)[K], bool) {
#pragma unroll
            for (int k = 0; k < K; ++k) x[k] = from[k];
        }
    };
    // Adds the products of rows 2 * pair and 2 * pair + 1.
    __device__ void add(int pair, const Fragment<T, K> (&rows)[2], const Factors& factors) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float row[K];
            rows[i].widen_to(row);
#pragma unroll
            for (int k = 0; k < K; ++k) sums[2 * pair + i] += row[k] * factors.x[k];
        }
    }
    __device__ void finish(float (&whole)[GEMV_ROWS]) const {
#pragma unroll
        for (int i = 0; i < GEMV_ROWS; ++i) whole[i] = sums[i];
    }
};

// Tensor cores multiply bfloat16, which takes fewer instructions. The eight elements that a lane
// has of a row are two parts of row `group` of a tile of 16 by 16 (see Lane), those of the next row
// two of row group + 8, and the single row's are in column `group`: so the sums are on the diagonals
// of the result. Elements that a norm's weight has multiplied, which have more digits, are the sum of
// two numbers of bfloat16.
template <> struct RowSums<bfloat16> {
    static constexpr int K = VECTOR_BYTES / sizeof(bfloat16);
    float sums[GEMV_ROWS / 2][4] = {};

    struct Factors {
        Fragment<bfloat16, K> high, low;
        bool exact;
        __device__ void take(const float (&x)[K], bool weighted) {
            high = Fragment<bfloat16, K>::narrow(x);
            exact = !weighted;
            if (exact) return;
            float rounded[K], rest[K];
            high.widen_to(rounded);
#pragma unroll
            for (int k = 0; k < K; ++k) rest[k] = x[k] - rounded[k];
            low = Fragment<bfloat16, K>::narrow(rest);
        }
    };
    __device__ void add(int pair, const Fragment<bfloat16, K> (&rows)[2], const Factors& factors) {
        const auto &first = rows[0].word, &second = rows[1].word;
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            multiply_tiles<bfloat16>(sums[pair], first[i], second[i], first[i + 1], second[i + 1],
                                     factors.high.word[i], factors.high.word[i + 1]);
        }
        if (factors.exact) return;
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            multiply_tiles<bfloat16>(sums[pair], first[i], second[i], first[i + 1], second[i + 1],
                                     factors.low.word[i], factors.low.word[i + 1]);
        }
    }
    __device__ void finish(float (&whole)[GEMV_ROWS]) const {
        const Lane lane;
        bool on_diagonal = lane.member == lane.group / 2, odd = lane.group % 2;
#pragma unroll
        for (int pair = 0; pair < GEMV_ROWS / 2; ++pair) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float sum = odd ? sums[pair][2 * i + 1] : sums[pair][2 * i];
                whole[2 * pair + i] = on_diagonal ? sum : 0;
            }
        }
    }
};

// The layer has an rms_norm, or no norm.
template <class T> __device__ inline void gemv(const Linear& all) {
    const Skinny& args = all.product;
    constexpr int K = VECTOR_BYTES / sizeof(T), ROWS = GEMV_ROWS;
    extern __shared__ uint4 copies[];               // a vector of each row for every thread
    __shared__ float of_warp[2][GEMV_WARPS][ROWS];  // by turns: a block meets once a group of rows
    __shared__ float squares_of_warp[GEMV_WARPS];
    const bool gated = all.gated;
    const uint32 kept = gated ? ROWS / 2 : ROWS, thread = threadIdx.y * 32 + threadIdx.x;
    const uint32 threads = 32 * blockDim.y, step = threads * K;
    const T* matrix = global<T>(args.matrix);
    // Copies vectors of a group's rows.
    auto copy = [&](uint32 group, uint32 at) {
        bool there = at < args.k && group * kept < args.wide;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            // The last row is loaded instead of rows beyond it: their sums are not used.
            uint32 row = group * kept + (gated ? i % (ROWS / 2) : i);
            if (row >= args.wide) row = args.wide - 1;
            if (gated && i >= ROWS / 2) row += args.wide;
            copy_async<VECTOR_BYTES>(copies + i * threads + thread,
                                     matrix + row * args.wide_step + (there ? at : 0), there);
        }
    };
    if (!args.early) wait_for_dependencies(all);
    copy(blockIdx.x, thread * K);
    launch_dependents<PRODUCT_BLOCKS>();
    if (args.early) wait_for_dependencies(all);
    const T* few = global<T>(args.few_rows);
    const T* weight = static_cast<const T*>(all.norm);
    float squares = 0, factor = 1;
    bool first = true;
    typename RowSums<T>::Factors factors;
#pragma unroll 1
    for (uint32 group = blockIdx.x, turn = 0; group * kept < args.wide;
         group += gridDim.x, turn ^= 1) {
        uint32 index = group * kept + thread;
        bool stores = thread < kept && index < args.wide;
        if (!stores) index = 0;
        LinearEpilogue<T> epilogue(all, index, index * args.wide_out);
        RowSums<T> products;
#pragma unroll 1
        for (uint32 at = thread * K, begin = 0; begin < args.k; begin += step) {
            if (first || args.k > step) {
                float x[K];
                Fragment<T, K>::load(few + at, at < args.k).widen_to(x);
                if (weight) {
                    float weights[K];
                    Fragment<T, K>::load(weight + at, at < args.k).widen_to(weights);
#pragma unroll
                    for (int i = 0; i < K; ++i) {
                        if (first) squares += x[i] * x[i];
                        x[i] *= weights[i];
                    }
                }
                factors.take(x, weight);
            }
            await_all_copies();
#pragma unroll
            for (int pair = 0; pair < ROWS / 2; ++pair) {
                Fragment<T, K> rows[2];
                memcpy(&rows[0], copies + 2 * pair * threads + thread, 16);
                memcpy(&rows[1], copies + (2 * pair + 1) * threads + thread, 16);
                products.add(pair, rows, factors);
            }
            at += step;
            bool more = begin + step < args.k;
            copy(more ? group : group + gridDim.x, more ? at : thread * K);
        }
        float sums[ROWS];
        products.finish(sums);
        float sum = sum_lanes(sums);
        if (threadIdx.x % 4 == 0) of_warp[turn][threadIdx.y][threadIdx.x / 4] = sum;
        if (weight && first) {
#pragma unroll
            for (int lanes = 16; lanes; lanes /= 2) squares += shuffle_xor(squares, lanes);
            if (threadIdx.x == 0) squares_of_warp[threadIdx.y] = squares;
        }
        __syncthreads();
        if (stores) {
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
