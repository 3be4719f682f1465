// Convolutions of one channel a group whose windows move by one place: a thread computes
// neighbouring outputs, which share most of what they read.
#pragma once

#include "conv_epilogue.cuh"
#include "window.cuh"

namespace cyrt {

// K by K taps of two dimensions. A thread takes a vector of neighbouring channels (V elements of 16
// bytes together) of CONV_STRIP outputs in each of CONV_LINES lines. A weight's taps are dense, so
// that those of its channels are whole vectors. Where windows run backwards, so do the taps. Of
// activations there is only ReLU: the others' code, as often as there are outputs, is slower to fetch
// than the kernel takes.
template <class T, int V, int K, bool BACKWARDS>
__device__ inline void depthwise_strip(const Conv& args) {
    using C = compute_of<T>;
    constexpr int STRIP = CONV_STRIP, LINES = CONV_LINES, TAPS = K * K,
                  TURN = BACKWARDS ? K - 1 : 0;
    const Axis &down = args.windows.axis[0], &along = args.windows.axis[1];
    uint32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint32 rest = divide(thread, args.tiles_n), channel = (thread - rest * args.tiles_n.size) * V;
    uint32 lines = divide(rest, args.tiles_m), first = (rest - lines * args.tiles_m.size) * STRIP;
    uint32 image = divide(lines, args.groups), line = (lines - image * args.groups.size) * LINES;
    if (image >= args.depth) return;
    const T* source = global<T>(args.source) + image * args.windows.batch_step + channel;
    const T* weight = global<T>(args.other) + channel * TAPS;
    Items<T, V> taps[TAPS];  // those of a channel, then those of the next one
#pragma unroll
    for (int i = 0; i < TAPS; ++i) taps[i] = load_vector<V>(weight + i * V);
    int top = int(line) + down.origin - TURN, left = int(first) + along.origin - TURN;
    int step = int(along.source_step);
    const T* corner = source + top * down.source_step + left * along.source_step;
    C sums[LINES][STRIP][V] = {};
    if (args.bias) {
        const T* bias = global<T>(args.bias) + channel * args.bias_step;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            C b = widen(bias[v * args.bias_step]);
#pragma unroll
            for (int i = 0; i < LINES * STRIP; ++i) sums[i / STRIP][i % STRIP][v] = b;
        }
    }
#pragma unroll
    for (int r = 0; r < K + LINES - 1; ++r) {
        C items[STRIP + K - 1][V];
        bool inside = uint32(top + r) < down.limit;
        const T* from = corner + int64(r) * down.source_step;
#pragma unroll
        for (int i = 0; i < STRIP + K - 1; ++i) {
            Items<T, V> narrow = {};
            if (inside && uint32(left + i) < along.limit) narrow = load_vector<V>(from + i * step);
            widen(narrow, items[i]);
        }
#pragma unroll
        for (int q = 0; q < LINES; ++q) {
            if (r < q || r - q >= K) continue;
#pragma unroll
            for (int k = 0; k < K; ++k) {
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    int tap = (r - q) * K + k, at = v * TAPS + (BACKWARDS ? TAPS - 1 - tap : tap);
                    C w = widen(taps[at / V].item[at % V]);
#pragma unroll
                    for (int i = 0; i < STRIP; ++i) sums[q][i][v] += items[i + k][v] * w;
                }
            }
        }
    }
    bool positive = args.activation == ACTIVATION_RELU;
#pragma unroll
    for (int q = 0; q < LINES; ++q) {
        uint32 row = (image * down.outputs.size + line + q) * along.outputs.size + first;
        T* to = global<T>(args.out) + row * args.out_step + channel;
#pragma unroll
        for (int i = 0; i < STRIP; ++i) {
            if (line + q >= down.outputs.size || first + i >= along.outputs.size) continue;
            Items<T, V> items;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                items.item[v] = cast<T>(positive ? relu(sums[q][i][v]) : sums[q][i][v]);
            }
            store_vector<V>(to + i * args.out_step, items);
        }
    }
}

template <class T> __device__ inline void depthwise_strip(const Conv& args) {
    constexpr int V = items_of<T>, K = CONV_STRIP_TAPS;
    wait_for_dependencies(args);
    launch_dependents();
    if (args.windows.axis[1].step < 0) {
        depthwise_strip<T, V, K, true>(args);
    } else {
        depthwise_strip<T, V, K, false>(args);
    }
}

}  // namespace cyrt
