// Convolutions of one channel a group whose windows move by one place: a thread computes
// neighbouring outputs, which share most of what they read.
#pragma once

#include "conv_epilogue.cuh"
#include "window.cuh"

namespace cyrt {

// Neighbouring elements, as they are in memory. Those of 16 bits are widened out of their word, by an
// instruction each, which the compiler does not find in elements.
template <class T, int N> struct Words {
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
template <> __device__ inline float Words<bfloat16, CONV_STRIP_ITEMS>::wide(int i) const {
    return __uint_as_float(i % 2 ? word[i / 2] & 0xffff0000 : word[i / 2] << 16);
}

// K by K taps of two dimensions. A thread takes V neighbouring channels of STRIP outputs in each of
// LINES lines, from the first line to the last one: it holds the sums of K lines, and what it reads
// of AHEAD lines before it needs them. Where windows run backwards, so do the taps. Of activations
// there is only ReLU: the others' code, as often as there are outputs, is slower to fetch than the
// kernel takes.
//
// A weight's taps are dense, so that those of a thread's channels are whole vectors. The threads of a
// warp load them side by side and exchange them through shared memory: by threads 36 elements apart,
// these loads would take as long as those of the image.
template <class T, int V, int STRIP, int LINES, int K, int AHEAD, int THREADS>
__device__ inline void depthwise_strip(const Conv& args) {
    using C = compute_of<T>;
    using Vector = typename Word<V * sizeof(T)>::type;
    constexpr int TAPS = K * K, WIDTH = STRIP + K - 1, HEIGHT = LINES + K - 1, HELD = AHEAD + 1;
    constexpr uint32 WARP = 32, BEHIND = 1 << 28;
    __shared__ Vector of_warps[THREADS * TAPS];
    const Axis &down = args.windows.axis[0], &along = args.windows.axis[1];
    wait_for_dependencies(args);
    // The next kernel's blocks wait for room, and ask for nothing meanwhile, whatever the grid.
    launch_dependents<~0u>();
    uint32 thread = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % WARP;
    uint32 rest = divide(thread, args.tiles_n), channel = (thread - rest * args.tiles_n.size) * V;
    uint32 lines = divide(rest, args.tiles_m), first = (rest - lines * args.tiles_m.size) * STRIP;
    uint32 image = divide(lines, args.groups), line = (lines - image * args.groups.size) * LINES;
    if (image >= args.depth) line = BEHIND;  // no such image: a line behind the last one
    const T* weight = global<T>(args.other);
    Words<T, V> taps[TAPS];
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        uint32 place = i * WARP + lane, of = thread - lane + place / TAPS;
        uint32 vector = of - divide(of, args.tiles_n) * args.tiles_n.size;
        taps[i].load(weight + (vector * TAPS + place % TAPS) * V);
    }
    bool backwards = along.step < 0;
    int turn = backwards ? K - 1 : 0;
    int top = int(line) + down.origin - turn, left = int(first) + along.origin - turn;
    int step = int(along.source_step);
    const T* corner = global<T>(args.source) + image * args.windows.batch_step + channel +
                      top * down.source_step + left * along.source_step;
    Words<T, V> items[HELD][WIDTH];
    auto fetch = [&](int r) {
        bool inside = uint32(top + r) < down.limit;
        const T* from = corner + r * down.source_step;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            items[r % HELD][i] = Words<T, V>{};
            if (inside && uint32(left + i) < along.limit) items[r % HELD][i].load(from + i * step);
        }
    };
#pragma unroll
    for (int r = 0; r < AHEAD; ++r) fetch(r);
    Vector* of_warp = of_warps + (threadIdx.x - lane) * TAPS;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) memcpy(of_warp + i * WARP + lane, &taps[i], sizeof(Vector));
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TAPS; ++i) memcpy(&taps[i], of_warp + lane * TAPS + i, sizeof(Vector));
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
    uint32 row = (image * down.outputs.size + line) * along.outputs.size + first;
    T* out = global<T>(args.out) + row * args.out_step + channel;
#pragma unroll
    for (int r = 0; r < HEIGHT; ++r) {
        if (r + AHEAD < HEIGHT) fetch(r + AHEAD);
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
        int q = r - K + 1;  // the line that is complete
        if (q < 0 || line + q >= down.outputs.size) continue;
        T* to = out + q * along.outputs.size * args.out_step;
#pragma unroll
        for (int i = 0; i < STRIP; ++i) {
            if (first + i >= along.outputs.size) continue;
            Items<T, V> narrow;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                C sum = sums[q % K][i][v];
                narrow.item[v] = cast<T>(args.activation == ACTIVATION_RELU ? relu(sum) : sum);
            }
            store_vector<V>(to + i * args.out_step, narrow);
        }
    }
}

}  // namespace cyrt
