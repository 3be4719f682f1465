// Skinny products of 16-bit floats: a few rows times a matrix, which travels through shared memory.
//
// The time is that of reading the matrix, so each of its elements is read once, and many are on their
// way at any time (cp.async). What they are multiplied by travels beside them: loads into registers
// return in their order, so that the few rows, from L2, would wait for the matrix, from memory, at
// every step. The warps of a block share out the summed dimension, and the last step adds their sums
// in one order.
#pragma once

#include "async_copy.cuh"
#include "dependency.cuh"
#include "product.cuh"
#include "skinny_tiles.cuh"
#include "strided.cuh"

namespace cyrt {

// Vector number i of a lane, of 16 bytes, where a lane reads what it has copied itself.
__device__ inline char* vector_at(char* first, int i) {
    return first + (32 * i + threadIdx.x) * VECTOR_BYTES;
}

// TILES times 16 rows of the matrix, which are along the summed dimension: see AlongSum.
template <class T, int TILES> struct AlongRing : AlongSum<T, TILES> {
    using Base = AlongSum<T, TILES>;
    using Rows = typename Base::Rows;
    static constexpr bool SHARED = false;  // a lane reads what it has copied itself

    // Copies a step, from k on; elements beyond the end are zeros.
    __device__ static void copy(char* to, const Rows& rows, uint32 k, uint32 end) {
        bool inside = k + Base::K * rows.lane.member < end;
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            copy_async<VECTOR_BYTES>(vector_at(to, i), rows.first[i / 2][i % 2] + k,
                                     inside && rows.there[i / 2][i % 2]);
        }
    }
    __device__ void take(char* vectors) {
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            this->half[i / 2][i % 2] = Fragment<T, Base::K>::take(vector_at(vectors, i));
        }
    }
};

// TILES times 16 rows of the matrix, neighbours in memory at each index of the summed dimension. The
// 32 indices of a step are in shared memory in the order in which tensor cores take them, if a lane
// has 8 neighbouring ones of the few rows: slot 43210, in bits, has the index 21430.
// Pieces of 8 rows exchange their slots, so that those of 8 indices are in all banks.
template <class T, int TILES_> struct AcrossRing {
    static constexpr int TILES = TILES_, K = VECTOR_BYTES / sizeof(T), PIECES = 2 * TILES;
    static constexpr bool SHARED = true;
    using Few = Eight<T, K>;
    uint32 part[2][TILES][4];

    struct Rows {
        const T* first;
        int64 step;
        bool there;

        __device__ Rows() {}
        __device__ Rows(const T* matrix, const Skinny& args, uint32 row, bool)
            : step(args.wide_step) {
            row += threadIdx.x % PIECES * 8;
            first = matrix + row;
            there = row < args.wide;
        }
    };
    __device__ static uint32 offset(uint32 slot, uint32 piece) {
        uint32 turn = TILES == 1 ? slot / 4 % 2 : slot / 2 % 4;
        return (slot * PIECES + (piece ^ turn)) * VECTOR_BYTES;
    }
    __device__ static void copy(char* to, const Rows& rows, uint32 k, uint32 end) {
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
            uint32 slot = (32 * i + threadIdx.x) / PIECES;
            uint32 at = k + slot % 2 + slot / 2 % 4 * 8 + slot / 8 * 2;
            copy_async<VECTOR_BYTES>(to + offset(slot, threadIdx.x % PIECES),
                                     rows.first + at * rows.step, at < end && rows.there);
        }
    }
    __device__ void take(const char* vectors) {
        uint32 half = threadIdx.x / 8 % 2, later = threadIdx.x / 16;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                uint32 slot = 16 * i + 8 * later + threadIdx.x % 8;
                load_matrices<true>(part[i][tile], vectors + offset(slot, 2 * tile + half));
            }
        }
    }
    __device__ void multiply(typename Few::Sums (&sums)[TILES], const Few& few) const {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                const auto& a = part[i][tile];
                multiply_tiles<T>(sums[tile], a[0], a[1], a[2], a[3], few.row.word[2 * i],
                                  few.row.word[2 * i + 1]);
            }
        }
    }
    __device__ static uint32 row_of(uint32 tile, uint32 group, uint32 half) {
        return 16 * tile + 8 * half + group;
    }
};

// What a block multiplies at once: a tile of the matrix, in a part of the summed dimension.
struct Work {
    uint32 row, batch, part, begin, end;

    __device__ Work(const Skinny& args, uint32 index, uint32 rows) {
        uint32 rest = divide(index, args.tiles);
        row = (index - rest * args.tiles.size) * rows;
        batch = divide(rest, args.parts);
        part = rest - batch * args.parts.size;
        begin = part * args.depth;
        end = args.k - begin < args.depth ? args.k : begin + args.depth;
    }
};

// A warp's steps, in order, of all works of its block: copies them into shared memory, ahead of the
// multiplications. A step is the vectors of the matrix, and those of the few rows.
template <class T, class Wide, int EIGHTS> struct Supply {
    uint32 index;           // the index of the work
    uint32 blocks;          // the distance to the block's next work
    uint32 k = 0, end = 0;  // along the summed dimension; no step is left if they are equal
    typename Wide::Rows rows;
    const T* few;

    // Goes to the first work from `index` on that has a step for this warp.
    __device__ void locate(const Skinny& args) {
        for (; index < args.works; index += blocks) {
            Work work(args, index, RING_ROWS * Wide::TILES);
            k = work.begin + threadIdx.y * RING_STEP;
            end = work.end;
            if (k >= end) continue;
            int64 offsets[2];
            locate_row(args.batch, work.batch, args.num_batch, offsets);
            few = global<T>(args.few_rows) + offsets[0];
            rows = typename Wide::Rows(global<T>(args.matrix) + offsets[1], args, work.row, false);
            return;
        }
        k = end = 0;
    }
    __device__ void advance(const Skinny& args) {
        if (k >= end) return;
        k += blockDim.y * RING_STEP;
        if (k < end) return;
        index += blocks;
        locate(args);
    }
    __device__ void copy_matrix(char* to) const {
        if (k < end) Wide::copy(to, rows, k, end);
    }
    // Rows beyond the last one are zeros.
    __device__ void copy_few(char* to, const Skinny& args) const {
        if (k >= end) return;
        Lane lane;
        uint32 at = k + Wide::K * lane.member;
#pragma unroll
        for (int eight = 0; eight < EIGHTS; ++eight) {
            uint32 row = 8 * eight + lane.group;
            copy_async<VECTOR_BYTES>(vector_at(to, 2 * Wide::TILES + eight),
                                     few + row * args.few_step + at, at < end && row < args.few);
        }
    }
};

// Adds up the warps' sums of a work: its results.
template <int COLUMNS, int ROWS, class Results>
__device__ inline void finish_work(const Skinny& args, const Results& results, const Work& work,
                                   const float* sums) {
    int64 size = int64(args.few) * args.wide;
#pragma unroll 1
    for (uint32 i = threadIdx.y * 32 + threadIdx.x; i < args.few * ROWS; i += 32 * blockDim.y) {
        uint32 index = work.row + i % ROWS;
        if (index >= args.wide) continue;
        int64 offset = i / ROWS * args.few_out + index * args.wide_out;
        float sum = sum_warps(sums + i, COLUMNS * ROWS);
        if (args.flags & MATMUL_PARTS) {
            int64 batches = args.works / (args.tiles.size * args.parts.size);
            global<float>(args.out)[(work.part * batches + work.batch) * size + offset] = sum;
        } else {
            results(args.out, work.batch * size + offset, sum);
        }
    }
}

// Blocks of 32 by y threads. The blocks take turns at the tiles, of 16 times TILES rows of the matrix; a
// block's warps take every y-th step of the summed dimension. STAGES steps of a warp are on their way,
// also beyond the end of a tile. EIGHTS times 8 is the most that the few rows can be.
template <class T, class Wide, int EIGHTS, class Results = StoreResults<T>>
__device__ inline void skinny_ring(const Skinny& args, const Results& results = {},
                                   Blocks blocks = {}) {
    constexpr int TILES = Wide::TILES, ROWS = RING_ROWS * TILES, COLUMNS = 8 * EIGHTS;
    constexpr int STAGES = RING_STAGES(EIGHTS), STAGE = RING_STAGE_BYTES(TILES, EIGHTS);
    extern __shared__ uint4 steps[];  // STAGES steps of each warp, and then the sums of all
    char* ring = reinterpret_cast<char*>(steps) + threadIdx.y * STAGES * STAGE;
    float* sums_of_block =
        reinterpret_cast<float*>(reinterpret_cast<char*>(steps) + blockDim.y * STAGES * STAGE);
    Supply<T, Wide, EIGHTS> supply;
    supply.index = blocks.number;
    supply.blocks = blocks.count;
    supply.locate(args);
    const auto first = supply;
    if (!args.early) wait_for_dependencies(args);
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        supply.copy_matrix(ring + i * STAGE);
        supply.advance(args);
    }
    if (args.early) wait_for_dependencies(args);
    launch_dependents<PRODUCT_BLOCKS>();
    supply = first;
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        supply.copy_few(ring + i * STAGE, args);
        supply.advance(args);
        commit_copies();
    }
    Lane lane;
    uint32 slot = 0;
#pragma unroll 1
    for (uint32 index = blocks.number; index < args.works; index += blocks.count) {
        Work work(args, index, ROWS);
        typename Wide::Few::Sums sums[EIGHTS][TILES] = {};
#pragma unroll 1
        for (uint32 k = work.begin + threadIdx.y * RING_STEP; k < work.end;
             k += blockDim.y * RING_STEP) {
            await_copies<STAGES - 1>();
            if (Wide::SHARED) __syncwarp();
            char* vectors = ring + slot * STAGE;
            Wide wide;
            wide.take(vectors);
#pragma unroll
            for (int eight = 0; eight < EIGHTS; ++eight) {
                typename Wide::Few few;
                few.row = Fragment<T, Wide::K>::take(vector_at(vectors, 2 * TILES + eight));
                wide.multiply(sums[eight], few);
            }
            if (Wide::SHARED) __syncwarp();
            supply.copy_matrix(vectors);
            supply.copy_few(vectors, args);
            supply.advance(args);
            commit_copies();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        if (index != blocks.number) __syncthreads();  // the sums of the work before have been read
        float* of_warp = sums_of_block + threadIdx.y * COLUMNS * ROWS;
#pragma unroll
        for (int eight = 0; eight < EIGHTS; ++eight) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    uint32 column = 8 * eight + 2 * lane.member + i % 2;
                    of_warp[column * ROWS + Wide::row_of(tile, lane.group, i / 2)] =
                        sums[eight][tile][i];
                }
            }
        }
        __syncthreads();
        finish_work<COLUMNS, ROWS>(args, results, work, sums_of_block);
    }
}

}  // namespace cyrt
