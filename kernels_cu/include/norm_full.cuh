// Normalisation of many rows of 16-bit elements that fill their threads: each holds as many vectors.
//
// So no thread asks which elements there are, and warps have equally many. A block has two rows: a thread
// has the same columns of both, whose weight and bias it loads and widens once, and early. It has one
// barrier: each warp finds the moments of its own elements about its own mean, and all combine those of
// all warps. Sums need no pivot, as in norm_stream.cuh.
#pragma once

#include "norm_math.cuh"
#include "row_stream.cuh"

namespace cyrt {

// What the lanes of a row have, half of a warp, for all.
__device__ inline float of_row(float found, int row) {
    return __shfl_sync(0xffffffffu, found, row * (WARP / 2));
}

// A row has blockDim.x times FULL_CHUNKS vectors, and at most half as many warps as a warp has lanes.
// If there is no second row, the first one is computed twice.
template <class T, bool CENTERED, bool WEIGHT, bool BIAS>
__device__ inline void normalize_full_rows(const Norm& args) {
    constexpr int ROWS = 2, CHUNKS = FULL_CHUNKS, N = items_of<T>, LANES = WARP / ROWS;
    constexpr float COUNT = WARP * CHUNKS * N;  // elements of a row that a warp has
    __shared__ float2 found[ROWS][LANES];       // the mean of each warp, and the squares about it
    const uint32 warps = blockDim.x / WARP;
    const uint32 own = threadIdx.x * N, hop = blockDim.x * N;  // its first element, and to the next
    const int64 first = int64(blockIdx.x) * ROWS;
    const T* const in = global<T>(args.x) + own;
    T* const out = global<T>(args.out) + own;
    auto row = [&](int r) { return min(first + r, args.rows - 1); };
    auto load = [&](const T* from, int chunk) {
        return Packed<T>::of(load_vector<N>(from + chunk * hop));
    };
    Packed<T> packed[ROWS][CHUNKS], weights[CHUNKS], biases[CHUNKS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            packed[r][chunk] = load(in + row(r) * args.x_step, chunk);
        }
    }
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        if (WEIGHT) weights[chunk] = load(global<T>(args.weight) + own, chunk);
        if (BIAS) biases[chunk] = load(global<T>(args.bias) + own, chunk);
    }
    float x[ROWS][CHUNKS][N], sums[ROWS] = {}, squares[ROWS] = {}, warp_mean = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        widen(packed[r], x[r]);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
#pragma unroll
            for (int k = 0; k < N; ++k) sums[r] += x[r][chunk][k];
        }
    }
    if (CENTERED) warp_mean = warp_sums(sums[0], sums[1]) * (1 / COUNT);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float mean = CENTERED ? of_row(warp_mean, r) : 0.0f;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                x[r][chunk][k] -= mean;
                squares[r] += x[r][chunk][k] * x[r][chunk][k];
            }
        }
    }
    const float warp_squares = warp_sums(squares[0], squares[1]);
    const uint32 thread = thread_of_row(), lane = thread % WARP;  // or registers would not suffice
    float2* const of = found[lane / LANES];
    if (lane % LANES == 0) of[thread / WARP] = make_float2(warp_mean, warp_squares);
    __syncthreads();
    const bool any = lane % LANES < warps;
    const float2 other = any ? of[lane % LANES] : make_float2(0, 0);
    const float share = number<float>(args.share);
    float mean = 0, distance = 0;
    if constexpr (CENTERED) {
        mean = mean_of(sum_lanes(other.x, LANES), float(int(warps)), share * COUNT);
        distance = any ? other.x - mean : 0.0f;
    }
    const float all = sum_lanes(fma(COUNT * distance, distance, other.y), LANES);
    const float scale = rsqrt(all * share + number<float>(args.eps));
    const float shift = (warp_mean - mean) * scale;  // from the warp's distances to the row's
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        float weight[N], bias[N];
        if (WEIGHT) widen(weights[chunk], weight);
        if (BIAS) widen(biases[chunk], bias);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float row_scale = of_row(scale, r), row_shift = of_row(shift, r);
            Items<T, N> results;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                float y = x[r][chunk][k] * row_scale;
                if (CENTERED) y += row_shift;
                if (WEIGHT) y *= weight[k];
                if (BIAS) y += bias[k];
                results.item[k] = cast<T>(y);
            }
            store_vector<N>(out + row(r) * args.out_step + chunk * hop, results);
        }
    }
}

}  // namespace cyrt
