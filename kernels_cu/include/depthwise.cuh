// Convolutions of one channel a group: each input is read once, which takes longer than to compute.
//
// A thread takes a vector of neighbouring channels (V elements of 16 bytes together), or one channel
// where they are not aligned or a channel has several results. blockDim.x threads have neighbouring
// channels, blockDim.y have other outputs.
#pragma once

#include "conv_epilogue.cuh"
#include "window.cuh"

namespace cyrt {

// The weights are in shared memory, as many taps at a time as fit.
template <class T, int V> __device__ inline void depthwise(const Conv& args) {
    using C = compute_of<T>;
    constexpr int OUTPUTS = 4, WEIGHTS = (16 << 10) / sizeof(C);
    __shared__ alignas(16) C weight[WEIGHTS];
    wait_for_dependencies(args);
    launch_dependents();
    uint32 block = divide(blockIdx.x, args.tiles_n);
    uint32 width = blockDim.x * V, first = (blockIdx.x - block * args.tiles_n.size) * width;
    uint32 channel = first + threadIdx.x * V;
    uint32 output = block * blockDim.y * OUTPUTS + threadIdx.y;
    uint32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    uint32 threads = blockDim.x * blockDim.y;
    const T* source = global<T>(args.source) + (V > 1 ? channel : divide(channel, args.channels));
    Origin origin[OUTPUTS];
#pragma unroll
    for (int i = 0; i < OUTPUTS; ++i) {
        uint32 at = output + i * blockDim.y;
        origin[i] =
            at < args.rows && channel < args.columns ? origin_of(args.windows, at) : nowhere();
    }
    C sums[OUTPUTS][V] = {};
    uint32 fitting = WEIGHTS / width;
#pragma unroll 1
    for (uint32 begin = 0; begin < args.length; begin += fitting) {
        uint32 count = args.length - begin < fitting ? args.length - begin : fitting;
        __syncthreads();
#pragma unroll 1
        for (uint32 i = thread; i < width * count; i += threads) {
            uint32 c = i / count, tap = i - c * count;
            const T* from = global<T>(args.other) + (first + c) * args.other_step + begin;
            weight[tap * width + c] = first + c < args.columns ? widen(from[tap]) : C();
        }
        __syncthreads();
#pragma unroll 1
        for (uint32 t = 0; t < count; ++t) {
            Tap tap = tap_of(args.windows, begin + t);
            Items<T, V> items[OUTPUTS];
#pragma unroll
            for (int i = 0; i < OUTPUTS; ++i) {
                int64 offset;
                items[i] = Items<T, V>{};
                if (find(args.windows, origin[i], tap, offset)) {
                    items[i] = load_vector<V>(source + offset);
                }
            }
#pragma unroll
            for (int v = 0; v < V; ++v) {
                C w = weight[t * width + threadIdx.x * V + v];
#pragma unroll
                for (int i = 0; i < OUTPUTS; ++i) sums[i][v] += widen(items[i].item[v]) * w;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < OUTPUTS; ++i) {
        Items<C, V> whole;
#pragma unroll
        for (int v = 0; v < V; ++v) whole.item[v] = sums[i][v];
        store_sums<T, V>(args, 0, 0, output + i * blockDim.y, channel, whole);
    }
}

// The weight's gradient: a block takes some channels, TAPS taps and a part of the outputs.
template <class T, int V> __device__ inline void depthwise_weight(const Conv& args) {
    using C = compute_of<T>;
    constexpr int TAPS = 4, THREADS = 256;
    __shared__ alignas(16) C of_thread[THREADS * V];
    wait_for_dependencies(args);
    launch_dependents();
    uint32 rest = divide(blockIdx.x, args.tiles_n);
    uint32 width = blockDim.x * V, first = (blockIdx.x - rest * args.tiles_n.size) * width;
    uint32 part = divide(rest, args.tiles_m), row = (rest - part * args.tiles_m.size) * TAPS;
    uint32 begin = part * args.depth;
    uint32 end = args.length - begin < args.depth ? args.length : begin + args.depth;
    uint32 channel = first + threadIdx.x * V;
    uint32 thread = threadIdx.y * blockDim.x + threadIdx.x;
    if (channel >= args.columns) end = 0;
    const T* source = global<T>(args.source) + (V > 1 ? channel : divide(channel, args.channels));
    const T* gradient = global<T>(args.other) + channel;
    Tap tap[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
        tap[t] = tap_of(args.windows, row + t < args.rows ? row + t : 0);
    }
    C sums[TAPS][V] = {};
#pragma unroll 1
    for (uint32 output = begin + threadIdx.y; output < end; output += blockDim.y) {
        Origin origin = origin_of(args.windows, output);
        Items<T, V> of_output = load_vector<V>(gradient + output * args.other_step);
        Items<T, V> items[TAPS];
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            int64 offset;
            items[t] = Items<T, V>{};
            if (find(args.windows, origin, tap[t], offset)) {
                items[t] = load_vector<V>(source + offset);
            }
        }
#pragma unroll
        for (int v = 0; v < V; ++v) {
            C g = widen(of_output.item[v]);
#pragma unroll
            for (int t = 0; t < TAPS; ++t) sums[t][v] += g * widen(items[t].item[v]);
        }
    }
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < V; ++v) of_thread[thread * V + v] = sums[t][v];
        __syncthreads();
        if (thread < width) {
            Items<C, 1> sum = {};
#pragma unroll 1
            for (uint32 y = 0; y < blockDim.y; ++y) sum.item[0] += of_thread[y * width + thread];
            store_sums<T, 1>(args, part, 0, row + t, first + thread, sum);
        }
    }
}

}  // namespace cyrt
