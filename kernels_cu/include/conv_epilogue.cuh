// What follows the sums of a convolution: bias and activation, or parts of sums that are added later.
#pragma once

#include "activations.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "strided.cuh"
#include "params/conv.h"

namespace cyrt {

// Results of neighbouring channels, of which `count` are there.
template <class T, int N, class Args>
__device__ inline Items<T, N> finish(const Args& args, uint32 channel, uint32 count,
                                     Items<compute_of<T>, N> sums) {
    if (args.bias) {
        const T* bias = global<T>(args.bias) + channel * args.bias_step;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i < count) sums.item[i] += widen(bias[i * args.bias_step]);
        }
    }
    if (args.activation == ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < N; ++i) sums.item[i] = relu(sums.item[i]);
    } else if (args.activation != ACTIVATION_NONE) {
#pragma unroll
        for (int i = 0; i < N; ++i) sums.item[i] = activate(sums.item[i], args.activation);
    }
    Items<T, N> items;
#pragma unroll
    for (int i = 0; i < N; ++i) items.item[i] = cast<T>(sums.item[i]);
    return items;
}

template <class T, int N>
__device__ inline void store_first(T* to, const Items<T, N>& items, uint32 count, bool vector) {
    constexpr int WORD = sizeof(T) * N > VECTOR_BYTES ? VECTOR_BYTES / sizeof(T) : N;
    if (vector) {
#pragma unroll
        for (int i = 0; i < N; i += WORD) {
            Items<T, WORD> word;
#pragma unroll
            for (int v = 0; v < WORD; ++v) word.item[v] = items.item[i + v];
            store_vector<WORD>(to + i, word);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (i < count) to[i] = items.item[i];
    }
}

// Stores sums of neighbouring columns of a group, those that are there.
template <class T, int N>
__device__ inline void store_sums(const Conv& args, uint32 part, uint32 group, uint32 row,
                                  uint32 column, const Items<compute_of<T>, N>& sums) {
    if (row >= args.rows || column >= args.columns) return;
    uint32 count = args.columns - column, channel = group * args.columns + column;
    bool vector = args.flags & CONV_VECTOR_OUT;
    if (args.flags & CONV_PARTS) {
        int64 above = (int64(part) * args.groups.size + group) * args.rows + row;
        compute_of<T>* to = global<compute_of<T>>(args.out) + above * args.columns + column;
        store_first(to, sums, count, vector);
    } else {
        T* to = global<T>(args.out) + row * args.out_step + channel;
        store_first(to, finish<T>(args, channel, count, sums), count, vector);
    }
}

// Adds the parts of each sum in one order. Of few sums of many parts, blockDim.y threads take every
// blockDim.y-th part each.
template <class T> __device__ inline void sum_parts(const ConvSum& args) {
    using C = compute_of<T>;
    __shared__ C of_thread[256];
    wait_for_dependencies(args);
    launch_dependents();
    uint32 index = blockIdx.x * blockDim.x + threadIdx.x;
    Items<C, 1> sum = {};
    if (index < args.n) {
        const C* in = global<C>(args.input) + index;
#pragma unroll 8
        for (uint32 part = threadIdx.y; part < args.count; part += blockDim.y) {
            sum.item[0] += in[int64(part) * args.n];
        }
    }
    if (blockDim.y > 1) {
        of_thread[threadIdx.y * blockDim.x + threadIdx.x] = sum.item[0];
        __syncthreads();
        for (uint32 y = 1; y < blockDim.y; ++y) {
            sum.item[0] += of_thread[y * blockDim.x + threadIdx.x];
        }
    }
    if (threadIdx.y > 0 || index >= args.n) return;
    uint32 rest = divide(index, args.columns), column = index - rest * args.columns.size;
    uint32 group = divide(rest, args.rows), row = rest - group * args.rows.size;
    T* to = global<T>(args.out) + group * args.group_step + row * args.row_step;
    to[column * args.column_step] =
        finish<T>(args, group * args.columns.size + column, 1, sum).item[0];
}

}  // namespace cyrt
