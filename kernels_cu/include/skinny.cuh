// Skinny products: a few rows times a matrix of 16-bit floats, by tensor cores.
//
// The time is that of reading the matrix, so each of its elements is read once, from global memory
// into the registers of the thread that multiplies it, 8 or 16 bytes at a time. A tensor core takes
// elements of the summed dimension in any order, if both factors come in the same one: each thread
// takes neighbouring elements. The warps of a block share out the summed dimension, and the last
// step adds their sums in one order.
//
// In mma.m16n8k16 (PTX ISA) the matrix is the factor of 16 rows, the few rows are the columns.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "mma.cuh"
#include "strided.cuh"
#include "params/matmul.h"

namespace cyrt {

// Lanes are 8 groups of 4. The tensor core's result has rows `group` and group + 8, and of both the
// columns 2 * member and the next one.
struct Lane {
    uint32 group = threadIdx.x / 4, member = threadIdx.x % 4;
};

// The matrix's rows lie along the summed dimension. A thread takes 8 of its elements, for two
// steps of the tensor core, of rows `group` and group + 8.
template <class T> struct AlongSum {
    static constexpr int ROWS = 16, TILES = 1, STEP = 32;
    Lane lane;
    uint4 low, high;

    __device__ void load(const T* matrix, const Skinny& args, uint32 row, uint32 k, uint32 end) {
        uint32 first = row + lane.group, at = k + 8 * lane.member;
        low = high = uint4{};
        if (at >= end) return;
        const T* from = matrix + int64(first) * args.wide_step + at;
        if (first < args.wide) low = *reinterpret_cast<const uint4*>(from);
        if (first + 8 < args.wide) {
            high = *reinterpret_cast<const uint4*>(from + 8 * args.wide_step);
        }
    }
    struct Few {
        uint4 word;
        __device__ void load(const T* from, const Lane& lane, uint32 k, uint32 end) {
            uint32 at = k + 8 * lane.member;
            word = at < end ? *reinterpret_cast<const uint4*>(from + at) : uint4{};
        }
    };
    __device__ void multiply(float (&sums)[1][4], const Few& few) const {
        multiply_tiles<T>(sums[0], low.x, high.x, low.y, high.y, few.word.x, few.word.y);
        multiply_tiles<T>(sums[0], low.z, high.z, low.w, high.w, few.word.z, few.word.w);
    }
    // The matrix's row of a tensor core's row.
    __device__ static uint32 row_of(uint32, uint32 group, uint32 half) { return group + 8 * half; }
};

// The matrix's rows are neighbours in memory, at each index of the summed dimension. A thread takes
// 4 rows at 4 indices, and pairs the elements of two indices.
template <class T> struct AcrossSum {
    static constexpr int ROWS = 32, TILES = 2, STEP = 16;
    Lane lane;
    uint2 word[4];

    __device__ void load(const T* matrix, const Skinny& args, uint32 row, uint32 k, uint32 end) {
        uint32 first = row + 4 * lane.group, at = k + 4 * lane.member;
        const T* from = matrix + int64(at) * args.wide_step + first;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            word[i] = uint2{};
            if (first < args.wide && at < end) {
                word[i] = *reinterpret_cast<const uint2*>(from + i * args.wide_step);
            }
        }
    }
    struct Few {
        uint2 word;
        __device__ void load(const T* from, const Lane& lane, uint32 k, uint32 end) {
            uint32 at = k + 4 * lane.member;
            word = at < end ? *reinterpret_cast<const uint2*>(from + at) : uint2{};
        }
    };
    __device__ void multiply(float (&sums)[2][4], const Few& few) const {
        constexpr uint32 EVEN = 0x5410, ODD = 0x7632;  // the lower, the upper halves of two words
        multiply_tiles<T>(sums[0], __byte_perm(word[0].x, word[1].x, EVEN),
                          __byte_perm(word[0].x, word[1].x, ODD),
                          __byte_perm(word[2].x, word[3].x, EVEN),
                          __byte_perm(word[2].x, word[3].x, ODD), few.word.x, few.word.y);
        multiply_tiles<T>(sums[1], __byte_perm(word[0].y, word[1].y, EVEN),
                          __byte_perm(word[0].y, word[1].y, ODD),
                          __byte_perm(word[2].y, word[3].y, EVEN),
                          __byte_perm(word[2].y, word[3].y, ODD), few.word.x, few.word.y);
    }
    __device__ static uint32 row_of(uint32 tile, uint32 group, uint32 half) {
        return 4 * group + 2 * tile + half;
    }
};

// A block of 32 by y threads takes Wide::ROWS rows of the matrix; its warps take every y-th AHEAD
// steps of the summed dimension. EIGHTS times 8 is the most that the few rows can be.
template <class T, class Wide, int EIGHTS> __device__ inline void skinny(const Skinny& args) {
    constexpr int AHEAD = EIGHTS <= 2 ? 4 : 2, ROWS = Wide::ROWS, COLUMNS = 8 * EIGHTS;
    extern __shared__ float shared[];  // of each warp: COLUMNS by ROWS
    uint32 rest = divide(blockIdx.x, args.tiles);
    uint32 row = (blockIdx.x - rest * args.tiles.size) * ROWS;
    uint32 batch = divide(rest, args.parts), part = rest - batch * args.parts.size;
    uint32 begin = part * args.depth;
    uint32 end = args.k - begin < args.depth ? args.k : begin + args.depth;
    int64 offsets[2];
    locate_row(args.batch, batch, args.num_batch, offsets);
    const T* few = global<T>(args.few_rows) + offsets[0];
    const T* matrix = global<T>(args.matrix) + offsets[1];
    Lane lane;
    float sums[EIGHTS][Wide::TILES][4] = {};
    uint32 stride = Wide::STEP * AHEAD, k = begin + threadIdx.y * stride;
    Wide wide[AHEAD];
    auto load_matrix = [&] {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) wide[i].load(matrix, args, row, k + i * Wide::STEP, end);
    };
    if (!args.early) wait_for_dependencies(args);
    load_matrix();
    if (args.early) wait_for_dependencies(args);
    launch_dependents<PRODUCT_BLOCKS>();
#pragma unroll 1
    while (k < end) {
        asm volatile("" ::: "memory");  // all of them are on their way before the first is used
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            typename Wide::Few columns[EIGHTS];
#pragma unroll
            for (int eight = 0; eight < EIGHTS; ++eight) {
                uint32 column = 8 * eight + lane.group;
                columns[eight].load(few + int64(column) * args.few_step, lane, k + i * Wide::STEP,
                                    column < args.few ? end : 0);
            }
#pragma unroll
            for (int eight = 0; eight < EIGHTS; ++eight) {
                wide[i].multiply(sums[eight], columns[eight]);
            }
        }
        k += blockDim.y * stride;
        load_matrix();
    }
    float* own = shared + threadIdx.y * COLUMNS * ROWS;
#pragma unroll
    for (int eight = 0; eight < EIGHTS; ++eight) {
#pragma unroll
        for (int tile = 0; tile < Wide::TILES; ++tile) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                uint32 column = 8 * eight + 2 * lane.member + i % 2;
                own[column * ROWS + Wide::row_of(tile, lane.group, i / 2)] = sums[eight][tile][i];
            }
        }
    }
    __syncthreads();
    int64 size = int64(args.few) * args.wide;
    int64 batches = gridDim.x / (args.tiles.size * args.parts.size);
#pragma unroll 1
    for (uint32 i = threadIdx.y * 32 + threadIdx.x; i < COLUMNS * ROWS; i += 32 * blockDim.y) {
        uint32 column = i / ROWS, index = row + i % ROWS;
        if (column >= args.few || index >= args.wide) continue;
        float sum = shared[i];
#pragma unroll 4
        for (uint32 warp = 1; warp < blockDim.y; ++warp) sum += shared[warp * COLUMNS * ROWS + i];
        int64 place = column * args.few_out + index * args.wide_out;
        if (args.flags & MATMUL_PARTS) {
            global<float>(args.out)[(part * batches + batch) * size + place] = sum;
        } else {
            global<T>(args.out)[batch * size + place] = cast<T>(sum);
        }
    }
}

}  // namespace cyrt
