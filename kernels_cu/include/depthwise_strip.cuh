// Convolutions of one channel a group whose windows move by one element: a thread computes
// neighbouring outputs, which share most of what they read.
#pragma once

#include "conv_epilogue.cuh"
#include "window.cuh"

namespace cyrt {

// Neighbouring elements, as they are in memory. Those of 16 bits are widened out of their word, by an
// instruction each, which the compiler does not find in elements.
template <class T, int N> struct ChannelWords {
    uint32 word[N * sizeof(T) / 4];

    __device__ void load(const T* from) {
        using Vector = typename Word<N * sizeof(T)>::type;
        Vector vector = *reinterpret_cast<const Vector*>(from);
        memcpy(word, &vector, sizeof(word));
    }
    __device__ compute_of<T> wide(int i) const {
        T item;
        if (sizeof(T) > 2) {
            memcpy(&item, word + i * sizeof(T) / 4, sizeof(T));
            return widen(item);
        }
        uint16 half = uint16(i % 2 ? word[i / 2] >> 16 : word[i / 2]);
        memcpy(&item, &half, sizeof(T));
        return widen(item);
    }
};
template <> __device__ inline float ChannelWords<bfloat16, CONV_STRIP_ITEMS>::wide(int i) const {
    return __uint_as_float(i % 2 ? word[i / 2] & 0xffff0000 : word[i / 2] << 16);
}

// K by K taps of two dimensions. A thread takes V neighbouring channels of STRIP outputs in each of
// LINES lines, from the first line to the last one: it holds the sums of K lines, and HELD lines of
// what it reads, so that all but one are loaded before they are needed. A weight's taps are dense, so
// that those of a thread's channels are whole vectors. Where windows run backwards, so do the taps. Of
// activations there is only ReLU: the others' code, as often as there are outputs, is slower to fetch
// than the kernel takes. DEPENDENTS: the most blocks of a grid that lets the next kernel start early.
template <class T, int V, int STRIP, int LINES, int K, int HELD, unsigned DEPENDENTS>
__device__ inline void depthwise_strip(const Conv& args) {
    using C = compute_of<T>;
    constexpr int TAPS = K * K, WIDTH = STRIP + K - 1, HEIGHT = LINES + K - 1;
    const Axis &down = args.windows.axis[0], &along = args.windows.axis[1];
    uint32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint32 rest = divide(thread, args.tiles_n), channel = (thread - rest * args.tiles_n.size) * V;
    uint32 lines = divide(rest, args.tiles_m), first = (rest - lines * args.tiles_m.size) * STRIP;
    uint32 image = divide(lines, args.groups), line = (lines - image * args.groups.size) * LINES;
    bool backwards = along.step < 0;
    int turn = backwards ? K - 1 : 0;
    int top = int(line) + down.origin - turn, left = int(first) + along.origin - turn;
    int step = int(along.source_step);
    const T* corner = global<T>(args.source) + image * args.windows.batch_step + channel +
                      top * down.source_step + left * along.source_step;
    const T* weight = global<T>(args.other) + channel * TAPS;
    uint32 row = (image * down.outputs.size + line) * along.outputs.size + first;
    T* out = global<T>(args.out) + row * args.out_step + channel;
    compute_now(corner, weight, out);
    wait_for_dependencies(args);
    launch_dependents<DEPENDENTS>();
    if (image >= args.depth) return;
    ChannelWords<T, V> items[HELD][WIDTH];
    auto fetch = [&](int r) {
        bool inside = uint32(top + r) < down.limit;
        const T* from = corner + r * down.source_step;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            items[r % HELD][i] = ChannelWords<T, V>{};
            if (inside && uint32(left + i) < along.limit) items[r % HELD][i].load(from + i * step);
        }
    };
    ChannelWords<T, V> taps[TAPS];  // those of a channel, then those of the next one
#pragma unroll
    for (int i = 0; i < TAPS; ++i) taps[i].load(weight + i * V);
#pragma unroll
    for (int r = 0; r < HELD - 1; ++r) fetch(r);
    C sums[K][STRIP][V], w[V][TAPS], bias[V] = {};
    if (args.bias) {
        const T* from = global<T>(args.bias) + channel * args.bias_step;
#pragma unroll
        for (int v = 0; v < V; ++v) bias[v] = widen(from[v * args.bias_step]);
    }
#pragma unroll
    for (int i = 0; i < V * TAPS; ++i) {
        int other = i / TAPS * TAPS + TAPS - 1 - i % TAPS;
        C ahead = taps[i / V].wide(i % V), behind = taps[other / V].wide(other % V);
        w[i / TAPS][i % TAPS] = backwards ? behind : ahead;
    }
#pragma unroll
    for (int r = 0; r < HEIGHT; ++r) {
        if (r + HELD - 1 < HEIGHT) fetch(r + HELD - 1);
        if (r < LINES) {
#pragma unroll
            for (int i = 0; i < STRIP * V; ++i) sums[r % K][i / V][i % V] = bias[i % V];
        }
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                C item = items[r % HELD][i].wide(v);
#pragma unroll
                for (int q = 0; q < LINES; ++q) {
                    if (r < q || r - q >= K) continue;
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        if (i < k || i - k >= STRIP) continue;
                        sums[q % K][i - k][v] += item * w[v][(r - q) * K + k];
                    }
                }
            }
        }
        if (r < K - 1) continue;
        int q = r - K + 1;  // the line that is complete
        T* to = out + q * along.outputs.size * args.out_step;
        if (args.activation == ACTIVATION_RELU) {
#pragma unroll
            for (int i = 0; i < STRIP * V; ++i) {
                C& sum = sums[q % K][i / V][i % V];
                sum = relu(sum);
            }
        }
#pragma unroll
        for (int i = 0; i < STRIP; ++i) {
            if (line + q >= down.outputs.size || first + i >= along.outputs.size) continue;
            Items<T, V> narrow;
#pragma unroll
            for (int v = 0; v < V; ++v) narrow.item[v] = cast<T>(sums[q % K][i][v]);
            store_vector<V>(to + i * args.out_step, narrow);
        }
    }
}

}  // namespace cyrt
