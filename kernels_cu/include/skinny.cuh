// Skinny products of float32, a few rows times a matrix; and linear layers of a few rows, whose norm,
// bias, activation and residual are computed in the same launch. Products of 16-bit floats go through
// shared memory: see skinny_ring.cuh.
//
// The time is that of reading the matrix, so each of its elements is read once, from global memory
// into the registers of the thread that multiplies it, 8 or 16 bytes at a time. The warps of a block
// share out the summed dimension, and the last step adds their sums in one order.
#pragma once

#include "dependency.cuh"
#include "linear_epilogue.cuh"
#include "product.cuh"
#include "skinny_tiles.cuh"
#include "strided.cuh"

// Blocks of a multiprocessor; 0: the compiler decides. Those of float32 spill some registers for two.
#define SKINNY_BLOCKS(ITEMSIZE) ((ITEMSIZE) == 4 ? 2 : 0)

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

// Multiplies a warp's part of the matrix, of which AHEAD steps are loaded. Each step makes room for
// the one AHEAD steps later, so that as many are always on their way.
template <class Wide, int EIGHTS, int AHEAD, class Few>
__device__ inline void multiply_steps(typename Wide::Few::Sums (&sums)[EIGHTS][Wide::TILES],
                                      Wide (&wide)[AHEAD], const typename Wide::Rows& rows,
                                      const Few& few, uint32 k, uint32 end) {
    using Columns = typename Wide::Few;
    // How many eights of the few rows are loaded at once: into 16 registers, if more than one.
    constexpr int FIT = sizeof(Columns) < 64 ? 64 / sizeof(Columns) : 1;
    constexpr int LOADED = FIT < AHEAD * EIGHTS ? FIT : AHEAD * EIGHTS;
    uint32 own = Wide::K * rows.lane.member;
#pragma unroll 1
    while (k < end) {
        uint32 next = k + blockDim.y * AHEAD * Wide::STEP;
#pragma unroll
        for (int first = 0; first < AHEAD * EIGHTS; first += LOADED) {
            Columns columns[LOADED];
#pragma unroll
            for (int i = 0; i < LOADED; ++i) {
                uint32 at = k + (first + i) / EIGHTS * Wide::STEP + own;
                columns[i].load(few, rows.lane, (first + i) % EIGHTS, at, at < end);
            }
#pragma unroll
            for (int i = 0; i < LOADED; ++i) {
                int step = (first + i) / EIGHTS, eight = (first + i) % EIGHTS;
                wide[step].multiply(sums[eight], columns[i]);
                if (eight == EIGHTS - 1) wide[step].load(rows, next + step * Wide::STEP, end);
            }
        }
        k = next;
    }
}

// A block of 32 by y threads takes Wide::ROWS rows of the matrix; its warps take every y-th AHEAD
// steps of the summed dimension. EIGHTS times 8 is the most that the few rows can be.
template <class T, class Wide, int EIGHTS, int AHEAD, class Args, class Results = StoreResults<T>>
__device__ inline void skinny(const Args& all, const Results& results = {}, Blocks blocks = {}) {
    constexpr int ROWS = Wide::ROWS, COLUMNS = 8 * EIGHTS;
    extern __shared__ float shared[];  // COLUMNS by ROWS sums of each warp
    const Skinny& args = product_of(all);
    bool gated = false;
    if constexpr (IS_LINEAR<Args>) gated = all.gated;
    uint32 kept = gated ? ROWS / 2 : ROWS;  // results of the block, of each of the few rows
    uint32 rest = divide(blocks.number, args.tiles);
    uint32 row = (blocks.number - rest * args.tiles.size) * kept;
    uint32 batch = divide(rest, args.parts), part = rest - batch * args.parts.size;
    uint32 begin = part * args.depth;
    uint32 end = args.k - begin < args.depth ? args.k : begin + args.depth;
    int64 offsets[2];
    locate_row(args.batch, batch, args.num_batch, offsets);
    typename Wide::Rows rows(global<T>(args.matrix) + offsets[1], args, row, gated);
    uint32 k = begin + threadIdx.y * AHEAD * Wide::STEP;
    Wide wide[AHEAD];
    auto load_matrix = [&] {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) wide[i].load(rows, k + i * Wide::STEP, end);
    };
    if (!args.early) wait_for_dependencies(all);
    load_matrix();
    if (args.early) wait_for_dependencies(all);
    launch_dependents<PRODUCT_BLOCKS>();
    const T* few = global<T>(args.few_rows) + offsets[0];
    typename Wide::Few::Sums sums[EIGHTS][Wide::TILES] = {};
    bool normed = false;
    if constexpr (IS_LINEAR<Args>) {
        normed = all.norm;
        if (normed) {
            __shared__ float factors[COLUMNS];
            measure_rows(args, all.eps, few, factors, shared);
            FewRows<T, true> scaled = {few, args.few_step, args.few, global<T>(all.norm), factors};
            multiply_steps(sums, wide, rows, scaled, k, end);
        }
    }
    if (!normed) {
        FewRows<T, false> plain = {few, args.few_step, args.few};
        multiply_steps(sums, wide, rows, plain, k, end);
    }
    float* of_warp = shared + threadIdx.y * COLUMNS * ROWS;
    using Lane = typename Wide::Lane;
    Lane lane;
#pragma unroll
    for (int eight = 0; eight < EIGHTS; ++eight) {
#pragma unroll
        for (int tile = 0; tile < Wide::TILES; ++tile) {
            float whole[Lane::VALUES];
            Wide::Few::finish(sums[eight][tile], lane, whole);
#pragma unroll
            for (int i = 0; i < Lane::VALUES; ++i) {
                uint32 column = 8 * eight + lane.column_of(i);
                of_warp[column * ROWS + Wide::row_of(tile, lane.group, lane.half_of(i))] = whole[i];
            }
        }
    }
    __syncthreads();
    int64 size = int64(args.few) * args.wide;
    int64 batches = blocks.count / (args.tiles.size * args.parts.size);
#pragma unroll 1
    for (uint32 i = threadIdx.y * 32 + threadIdx.x; i < args.few * kept; i += 32 * blockDim.y) {
        uint32 column = i / kept, result = i % kept, index = row + result;
        if (index >= args.wide) continue;
        uint32 slot = column * ROWS + (gated ? result + (result & ~7u) : result);
        int64 offset = column * args.few_out + index * args.wide_out;
        float sum = sum_warps(shared + slot, COLUMNS * ROWS);
        if (args.flags & MATMUL_PARTS) {
            global<float>(args.out)[(part * batches + batch) * size + offset] = sum;
        } else if constexpr (IS_LINEAR<Args>) {
            float gated_sum = gated ? sum_warps(shared + slot + 8, COLUMNS * ROWS) : 0;
            global<T>(args.out)[batch * size + offset] =
                LinearEpilogue<T>(all, index, offset).apply(all, sum, gated_sum);
        } else {
            results(args.out, batch * size + offset, sum);
        }
    }
}

}  // namespace cyrt
