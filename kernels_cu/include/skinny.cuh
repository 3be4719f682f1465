// Skinny products: a few rows times a matrix; and linear layers of a few rows, whose norm, bias,
// activation and residual are computed in the same launch.
//
// The time is that of reading the matrix, so each of its elements is read once, and many are on their
// way at any time. They travel to shared memory (cp.async), and the few rows' elements that they are
// multiplied by travel beside them: loads into registers would return in order, and the few rows, from
// L2, would wait for the matrix, from memory, at every step. The warps of a block share out the summed
// dimension, and the last step adds their sums in one order.
#pragma once

#include "dependency.cuh"
#include "linear_epilogue.cuh"
#include "skinny_tiles.cuh"
#include "strided.cuh"

namespace cyrt {

// The product of a kernel's parameters.
__device__ inline const Skinny& product_of(const Skinny& args) { return args; }
__device__ inline const Skinny& product_of(const Linear& args) { return args.product; }
template <class Args> constexpr bool IS_LINEAR = false;
template <> constexpr bool IS_LINEAR<Linear> = true;

// Computes the factors of the few rows' normalisation, 1 / sqrt(mean of squares + eps). `partial`
// has room for each warp's sum of each row.
template <class T>
__device__ inline void measure_rows(const Skinny& args, float eps, const T* few, float* factors,
                                    float* partial) {
    constexpr int K = VECTOR_BYTES / sizeof(T);
    uint32 thread = threadIdx.y * 32 + threadIdx.x;
#pragma unroll 4
    for (uint32 row = 0; row < args.few; ++row) {
        float sum = 0;
#pragma unroll 1
        for (uint32 at = thread * K; at < args.k; at += 32 * K * blockDim.y) {
            float x[K];
            Fragment<T, K>::load(few + row * args.few_step + at, true).widen_to(x);
#pragma unroll
            for (int i = 0; i < K; ++i) sum += x[i] * x[i];
        }
#pragma unroll
        for (int lanes = 16; lanes; lanes /= 2) sum += shuffle_xor(sum, lanes);
        if (threadIdx.x == 0) partial[row * blockDim.y + threadIdx.y] = sum;
    }
    __syncthreads();
    if (thread < args.few) {
        float sum = 0;
#pragma unroll 4
        for (uint32 warp = 0; warp < blockDim.y; ++warp) sum += partial[thread * blockDim.y + warp];
        factors[thread] = rsqrt(sum / float(args.k) + eps);
    }
    __syncthreads();
}

// What a block multiplies at once: a tile of the matrix, in a part of the summed dimension.
struct Work {
    uint32 row, batch, part, begin, end;

    __device__ Work(const Skinny& args, uint32 index, uint32 kept) {
        uint32 rest = divide(index, args.tiles);
        row = (index - rest * args.tiles.size) * kept;
        batch = divide(rest, args.parts);
        part = rest - batch * args.parts.size;
        begin = part * args.depth;
        end = args.k - begin < args.depth ? args.k : begin + args.depth;
    }
};

// Adds up the warps' sums, each of WARP_SUMS, and stores the results of a work.
template <class T, int WARP_SUMS, class Args>
__device__ inline void store_work(const Args& all, const Work& work, const float* sums, uint32 rows,
                                  uint32 kept, bool gated) {
    const Skinny& args = product_of(all);
    int64 size = int64(args.few) * args.wide;
#pragma unroll 1
    for (uint32 i = threadIdx.y * 32 + threadIdx.x; i < args.few * kept; i += 32 * blockDim.y) {
        uint32 column = i / kept, result = i % kept, index = work.row + result;
        if (index >= args.wide) continue;
        const float* found = sums + column * rows + (gated ? result + (result & ~7u) : result);
        int64 place = column * args.few_out + index * args.wide_out;
        float sum = sum_warps(found, WARP_SUMS);
        if (args.flags & MATMUL_PARTS) {
            int64 batches = args.works / (args.tiles.size * args.parts.size);
            global<float>(args.out)[(work.part * batches + work.batch) * size + place] = sum;
        } else if constexpr (IS_LINEAR<Args>) {
            float gated_sum = gated ? sum_warps(found + 8, WARP_SUMS) : 0;
            global<T>(args.out)[work.batch * size + place] =
                LinearEpilogue<T>(all, index, place).apply(all, sum, gated_sum);
        } else {
            global<T>(args.out)[work.batch * size + place] = cast<T>(sum);
        }
    }
}

// A warp's steps, in order, of all works of its block: copies them into shared memory, ahead of the
// multiplications. A step is the vectors of the matrix, those of the few rows, and those of the
// norm's weight.
template <class T, class Wide, int EIGHTS> struct Supply {
    static constexpr uint32 K = Wide::K, STEP = SKINNY_STEP / sizeof(T);
    static constexpr int MATRIX_BYTES = 1024 * Wide::TILES;
    uint32 index, kept;     // of the work, and the results of it
    uint32 k = 0, end = 0;  // of the summed dimension; no step is left if they are equal
    bool gated;
    typename Wide::Rows rows;
    const T* few;

    // Goes to the first work from `index` on that has a step for this warp.
    __device__ void locate(const Skinny& args) {
        for (; index < args.works; index += gridDim.x) {
            Work work(args, index, kept);
            k = work.begin + threadIdx.y * STEP;
            end = work.end;
            if (k >= end) continue;
            int64 offsets[2];
            locate_row(args.batch, work.batch, args.num_batch, offsets);
            few = global<T>(args.few_rows) + offsets[0];
            rows.locate(global<T>(args.matrix) + offsets[1], args, work.row, gated);
            return;
        }
        k = end = 0;
    }
    __device__ void advance(const Skinny& args) {
        if (k >= end) return;
        k += blockDim.y * STEP;
        if (k < end) return;
        index += gridDim.x;
        locate(args);
    }
    __device__ void copy_matrix(char* to) const {
        if (k < end) rows.copy(to, k, end);
    }
    // Rows that there are not are zeros.
    __device__ void copy_few(char* to, const Skinny& args, const T* weight) const {
        if (k >= end) return;
        Lane lane;
        uint32 at = k + K * lane.member;
#pragma unroll
        for (int eight = 0; eight <= EIGHTS; ++eight) {
            uint32 row = 8 * eight + lane.group;
            bool there = at < end && row < args.few;
            const T* from = few + row * args.few_step;
            if (eight == EIGHTS) {
                if (!weight) break;
                there = at < end;
                from = weight;
            }
            copy_async<VECTOR_BYTES>(
                vector_at<VECTOR_BYTES>(to + MATRIX_BYTES, eight, threadIdx.x), from + at, there);
        }
    }
};

// Blocks of 32 by y threads. A block takes every gridDim.x-th tile of 16 times TILES rows of the
// matrix; its warps take every y-th step of the summed dimension. STAGES steps of a warp are on their
// way to shared memory, also beyond the end of a tile: nothing that has to come from memory waits for
// another thing that does. EIGHTS times 8 is the most that the few rows can be.
template <class T, class Wide, int EIGHTS, class Args>
__device__ inline void skinny(const Args& all) {
    constexpr int TILES = Wide::TILES, ROWS = SKINNY_ROWS * TILES, COLUMNS = 8 * EIGHTS;
    constexpr int STAGES = SKINNY_STAGES(EIGHTS);
    using Columns = typename Wide::Few;
    constexpr bool SHARED = Wide::SHARED || Columns::SHARED;  // lanes read what others have copied
    extern __shared__ uint4 shared[];  // of each warp: STAGES steps, and then the sums of all
    const Skinny& args = product_of(all);
    bool gated = false;
    const T* weight = nullptr;
    if constexpr (IS_LINEAR<Args>) {
        gated = all.gated;
        weight = static_cast<const T*>(all.norm);
    }
    Supply<T, Wide, EIGHTS> supply;
    supply.index = blockIdx.x;
    supply.gated = gated;
    const uint32 kept = supply.kept = gated ? ROWS / 2 : ROWS;
    const uint32 stage = SKINNY_STAGE_BYTES(TILES, EIGHTS, weight ? 1 : 0);
    char* ring = reinterpret_cast<char*>(shared) + threadIdx.y * STAGES * stage;
    float* sums_of_block =
        reinterpret_cast<float*>(reinterpret_cast<char*>(shared) + blockDim.y * STAGES * stage);
    supply.locate(args);
    auto first = supply;
    auto copy_matrix = [&] {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            supply.copy_matrix(ring + i * stage);
            supply.advance(args);
        }
    };
    if (!args.early) wait_for_dependencies(all);
    copy_matrix();
    if (args.early) wait_for_dependencies(all);
    launch_dependents<PRODUCT_BLOCKS>();
    supply = first;
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        supply.copy_few(ring + i * stage, args, weight);
        supply.advance(args);
        commit_copies();
    }
    __shared__ float factors[COLUMNS];
    if constexpr (IS_LINEAR<Args>) {
        if (weight) measure_rows(args, all.eps, first.few, factors, sums_of_block);
    }
    Lane lane;
    uint32 slot = 0;
#pragma unroll 1
    for (uint32 index = blockIdx.x; index < args.works; index += gridDim.x) {
        Work work(args, index, kept);
        typename Columns::Sums sums[EIGHTS][TILES] = {};
#pragma unroll 1
        for (uint32 k = work.begin + threadIdx.y * supply.STEP; k < work.end;
             k += blockDim.y * supply.STEP) {
            await_copies<STAGES - 1>();
            if (SHARED) __syncwarp();
            char* vectors = ring + slot * stage;
            Wide wide;
            wide.take(vectors);
#pragma unroll
            for (int eight = 0; eight < EIGHTS; ++eight) {
                const char* few = vectors + supply.MATRIX_BYTES;
                Columns columns;
                columns.take(few + 512 * eight, lane);
                if constexpr (IS_LINEAR<Args>) {
                    if (weight) {
                        float weights[Wide::K];
                        Fragment<T, Wide::K>::take(vector_at<VECTOR_BYTES>(few, EIGHTS, threadIdx.x))
                            .widen_to(weights);
                        columns.scale(weights, factors + 8 * eight, lane);
                    }
                }
                wide.multiply(sums[eight], columns);
            }
            if (SHARED) __syncwarp();
            supply.copy_matrix(vectors);
            supply.copy_few(vectors, args, weight);
            supply.advance(args);
            commit_copies();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        if (index != blockIdx.x) __syncthreads();  // the sums of the work before have been read
        float* of_warp = sums_of_block + threadIdx.y * COLUMNS * ROWS;
#pragma unroll
        for (int eight = 0; eight < EIGHTS; ++eight) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                float whole[4];
                Columns::finish(sums[eight][tile], lane, whole);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    uint32 column = 8 * eight + 2 * lane.member + i % 2;
                    of_warp[column * ROWS + Wide::row_of(tile, lane.group, i / 2)] = whole[i];
                }
            }
        }
        __syncthreads();
        store_work<T, COLUMNS * ROWS>(all, work, sums_of_block, ROWS, kept, gated);
    }
}

}  // namespace cyrt
