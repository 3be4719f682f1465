// Copies that exchange two dimensions, through tiles in shared memory: reads run along the
// dimension that is contiguous in the input, writes along the one that is so in the output.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "strided.cuh"
#include "params/transpose.h"

namespace cyrt {

// A block's tile: the batch's memory, and where the tile begins in it.
template <class T> struct BlockTile {
    const T* in;
    T* out;
    uint32 first_in, first_out;
};

template <class T> __device__ inline BlockTile<T> locate(const Transpose& args, uint32 side) {
    uint32 rest = divide(blockIdx.x, args.tiles_in);
    uint32 batch = divide(rest, args.tiles_out);
    int64 offsets[2];
    locate_row(args.batch, batch, args.num_batch, offsets);
    BlockTile<T> own = {pointer_of<T>(args.input) + offsets[1],
                        static_cast<T*>(args.out) + offsets[0],
                        (blockIdx.x - rest * args.tiles_in.size) * side,
                        (rest - batch * args.tiles_out.size) * side};
    compute_now(own.in, own.out, own.first_in, own.first_out);
    return own;
}

// V elements side by side make a lane's word; with V > 1 strides and addresses are multiples of V
// elements. A side is 64 elements of up to 4 bytes, or a warp's row where that is longer.
template <class T, int V> __device__ inline void transpose(const Transpose& args) {
    constexpr int ROW = 32 * V, SIDE = sizeof(T) <= 4 && ROW < 64 ? 64 : ROW;
    constexpr int COLUMNS = SIDE / ROW, WORDS = SIDE / TRANSPOSE_ROWS * COLUMNS;
    __shared__ T tile[SIDE][SIDE + 1];
    auto [in, out, first_in, first_out] = locate<T>(args, SIDE);
    wait_for_dependencies(args);
    launch_dependents();
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));

    Items<T, V> items[WORDS];
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        uint32 row = threadIdx.y + k / COLUMNS * TRANSPOSE_ROWS;
        uint32 o = first_out + row, i = first_in + threadIdx.x * V + k % COLUMNS * ROW;
        const T* from = in + int64(o) * args.in_stride + i;
        if (o < args.size_out && i + V <= args.size_in) {
            items[k] = load_vector<V>(from);
        } else if (o < args.size_out) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if (i + v < args.size_in) items[k].item[v] = from[v];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        uint32 row = threadIdx.y + k / COLUMNS * TRANSPOSE_ROWS;
        uint32 column = threadIdx.x * V + k % COLUMNS * ROW;
#pragma unroll
        for (int v = 0; v < V; ++v) tile[row][column + v] = items[k].item[v];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        uint32 row = threadIdx.y + k / COLUMNS * TRANSPOSE_ROWS;
        uint32 first = threadIdx.x * V + k % COLUMNS * ROW;
        uint32 i = first_in + row, o = first_out + first;
        Items<T, V> column;
#pragma unroll
        for (int v = 0; v < V; ++v) column.item[v] = tile[first + v][row];
        T* to = out + int64(i) * args.out_stride + o;
        if (i < args.size_in && o + V <= args.size_out) {
            store_vector<V>(to, column);
        } else if (i < args.size_in) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if (o + v < args.size_out) to[v] = column.item[v];
            }
        }
    }
}

// Elements of 2 bytes in blocks of two by two, exchanged in registers: every access to shared memory
// is a word, and no two of a warp are in one bank. Strides and addresses are multiples of 4 bytes.
template <class T> __device__ inline uint32 load_pair(const T* from, uint32 i, uint32 size) {
    uint32 word = 0;
    if (i + 1 < size) {
        word = *reinterpret_cast<const uint32*>(from);
    } else if (i < size) {
        word = *reinterpret_cast<const unsigned short*>(from);
    }
    return word;
}

template <class T> __device__ inline void transpose_pairs(const Transpose& args) {
    static_assert(sizeof(T) == 2, "two make a word");
    constexpr int SIDE = 64, PAIRS = SIDE / 2 / TRANSPOSE_ROWS;
    __shared__ uint32 tile[2][32][33];  // the output's even rows, and its odd ones
    auto [in, out, first_in, first_out] = locate<T>(args, SIDE);
    wait_for_dependencies(args);
    launch_dependents();
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));

    uint32 words[PAIRS][2];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        uint32 o = first_out + 2 * (threadIdx.y + k * TRANSPOSE_ROWS),
               i = first_in + 2 * threadIdx.x;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            words[k][h] = load_pair(in + int64(o + h) * args.in_stride + i, i,
                                    o + h < args.size_out ? args.size_in : 0);
        }
    }
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        uint32 pair = threadIdx.y + k * TRANSPOSE_ROWS;
        tile[0][threadIdx.x][pair] = (words[k][0] & 0xffff) | words[k][1] << 16;
        tile[1][threadIdx.x][pair] = words[k][0] >> 16 | (words[k][1] & 0xffff0000);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 2 * PAIRS; ++k) {
        uint32 row = threadIdx.y + k * TRANSPOSE_ROWS;
        uint32 i = first_in + row, o = first_out + 2 * threadIdx.x;
        uint32 word = tile[row & 1][row >> 1][threadIdx.x];
        T* to = out + int64(i) * args.out_stride + o;
        if (i < args.size_in && o + 1 < args.size_out) {
            *reinterpret_cast<uint32*>(to) = word;
        } else if (i < args.size_in && o < args.size_out) {
            *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(word);
        }
    }
}

}  // namespace cyrt

#define CYRT_TRANSPOSE(NAME, TYPE)                                                  \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Transpose args) { \
        cyrt::transpose<TYPE, 1>(args);                                             \
    }
// For types of 1 and 2 bytes where all strides and addresses are multiples of 4 bytes.
#define CYRT_TRANSPOSE_WIDE(NAME, TYPE)                                                    \
    extern "C" __global__ void NAME##_wide(const __grid_constant__ cyrt::Transpose args) { \
        if constexpr (sizeof(TYPE) == 2) {                                                 \
            cyrt::transpose_pairs<TYPE>(args);                                             \
        } else {                                                                           \
            cyrt::transpose<TYPE, 4 / sizeof(TYPE)>(args);                                 \
        }                                                                                  \
    }
