// The gradients of the normalisation of many rows of up to 4 bytes an element: persistent blocks.
//
// The rows that follow arrive in shared memory while a block works on one, so loads are under way all
// the time. A row has one barrier: each warp finds the moments of its own elements about its own mean,
// and all combine those of all warps, as Chan, Golub and LeVeque do. The moments of successive rows
// are at different addresses, by turns. Sums of 16-bit elements need no pivot: float has room for them.
// In float32, a warp's mean is found from distances to the row's first element, which is loaded a row
// ahead, and what rounding has left of the mean is the sum of the distances from it.
#pragma once

#include "dependency.cuh"
#include "norm_math.cuh"
#include "row_stream.cuh"

namespace cyrt {

// What a warp knows of its elements of x: the sum of the squared distances from their mean; the sum of
// products of the slopes, which are the gradient times the weight, with the distances; the sum of the
// slopes; and the mean. Without centering there are the first two.
struct alignas(16) WarpSlopes {
    float squares, products, slopes, mean;
};
// The sums that are added over warps. Their shuffles are under way together.
struct SlopeSums {
    float squares, products, slopes;

    __device__ static SlopeSums add(const SlopeSums& a, const SlopeSums& b) {
        return {a.squares + b.squares, a.products + b.products, a.slopes + b.slopes};
    }
};
// The sums over a whole row, of distances from its mean; the mean, and that of the warp less it.
struct RowSlopes {
    SlopeSums sums;
    float mean, shift;
};

// Adds the warps' sums; each warp has subtracted `mean`, whose distances have the sum `rest`. With a
// PIVOT that is not left out.
template <bool CENTERED, bool PIVOT>
__device__ inline RowSlopes combine_warps(const Norm& args, const WarpShare* shares,
                                          WarpSlopes (&found)[WARP], float (&rests)[WARP],
                                          float mean, float squares, float products, float slopes,
                                          float rest) {
    const uint32 lane = threadIdx.x % WARP, warps = blockDim.x / WARP, all = 0xffffffffu;
    const float of = PIVOT      ? warp_sums(squares, products, slopes, rest)
                     : CENTERED ? warp_sums(squares, products, slopes)
                                : warp_sums(squares, products);
    const float n = int(args.n), share = number<float>(args.share);
    RowSlopes row = {};
    if (warps == 1) {
        row.sums = {__shfl_sync(all, of, 0), __shfl_sync(all, of, 16),
                    CENTERED ? __shfl_sync(all, of, 8) : 0.0f};
        row.mean = mean;
        if constexpr (PIVOT) {
            rest = __shfl_sync(all, of, 24);
            row.shift = mean_of(rest, n, share);
            row.sums.squares -= row.shift * rest;
            row.sums.products -= row.shift * row.sums.slopes;
            row.shift = -row.shift;
        }
    } else {
        const uint32 first = threadIdx.y * warps, other = first + (lane & (warps - 1));
        WarpSlopes& own = found[first + threadIdx.x / WARP];
        if (lane == 0) own.squares = of;
        if (lane == 16) own.products = of;
        if (CENTERED && lane == 8) own.slopes = of;
        if (CENTERED && lane == 0) own.mean = mean;
        if (PIVOT && lane == 24) rests[first + threadIdx.x / WARP] = of;
        synchronize_row<true>();
        row.sums = {found[other].squares, found[other].products, 0};
        if constexpr (CENTERED) {
            const WarpShare theirs = shares[lane & (warps - 1)];
            const float base = found[first].mean;
            rest = PIVOT ? rests[other] : 0.0f;
            float distance = found[other].mean - base;
            const float level =
                mean_of(sum_lanes(fma(theirs.count, distance, rest), warps), n, share);
            distance -= level;
            row.mean = base + level;
            row.shift = (mean - base) - level;
            row.sums.squares += distance * fma(theirs.count, distance, 2 * rest);
            row.sums.slopes = found[other].slopes;
            row.sums.products += row.sums.slopes * distance;
        }
        row.sums = reduce_lanes(row.sums, warps, SlopeSums::add);
    }
    if (PIVOT) row.sums.squares = maximum(row.sums.squares, 0.0f);
    return row;
}

// Adds up the sums of the block's rows of threads, and writes them to a row of partials. `shared` has
// room for a row of sums for each row of threads.
template <class ThreadElements, int CHUNKS, int N>
__device__ inline void write_sums(const ThreadElements& elements, int64 n, float* shared,
                                  const float (&sums)[CHUNKS][N], float* partials) {
    float* own = blockDim.y == 1 ? partials : shared + threadIdx.y * ThreadElements::capacity();
    __syncthreads();
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        if (!elements.has(chunk, 0)) continue;
#pragma unroll
        for (int k = 0; k < N; k += 4) {
            Items<float, 4> items = {sums[chunk][k], sums[chunk][k + 1], sums[chunk][k + 2],
                                     sums[chunk][k + 3]};
            store_vector<4>(own + elements.index(chunk, k), items);
        }
    }
    if (blockDim.y == 1) return;
    __syncthreads();
    uint32 thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (uint32 column = thread; column < n; column += blockDim.x * blockDim.y) {
        float sum = 0;
#pragma unroll 4
        for (uint32 y = 0; y < blockDim.y; ++y) {
            sum += shared[y * ThreadElements::capacity() + column];
        }
        partials[column] = sum;
    }
}

// The sums for the gradients of weight and bias stay in registers. With few CHUNKS, x, the slopes and
// the weight of 16 bits do, too; otherwise they are read from shared memory as often as they are
// needed, where the weight comes first. A thread has room for the vectors of x and the gradient in
// each stage.
template <class T, bool CENTERED, bool WEIGHT, bool BIAS, int CHUNKS>
__device__ __forceinline__ void norm_vjp_stream(const Norm& args) {
    constexpr int N = items_of<T>, STAGES = NORM_STAGES(sizeof(T));
    constexpr bool HELD = CHUNKS * N <= VJP_HELD, WIDE = sizeof(T) > 2;
    constexpr bool WEIGHT_HELD = HELD && !WIDE, PIVOT = CENTERED && WIDE;
    static_assert(HELD || !WIDE, "distances from a pivot are in registers");
    using Elements = ThreadElements<T, CHUNKS, true>;
    using Stream = RowStream<T, CHUNKS, STAGES>;
    extern __shared__ uint4 vectors[];
    __shared__ WarpSlopes found[2][WARP];
    __shared__ float rests[2][WARP];
    const Elements elements(args.n);
    const RowTurns turns(args.rows);
    const uint32 row_vectors = blockDim.x * CHUNKS, stage_vectors = 2 * row_vectors;
    Packed<T>* const shared = reinterpret_cast<Packed<T>*>(vectors);
    Packed<T>* const held_weights = shared + threadIdx.x;
    Packed<T>* const staged = shared + (WEIGHT && !WEIGHT_HELD ? row_vectors : 0) +
                              threadIdx.y * STAGES * stage_vectors + threadIdx.x;
    Stream rows(staged, args.x, args.x_step, turns);
    Stream gradients(staged + row_vectors, args.gradient, args.gradient_step, turns);
    auto fetch = [&](uint32 stage, bool any) {
        rows.fetch(rows.at(stage, stage_vectors), elements, any);
        gradients.fetch(gradients.at(stage, stage_vectors), elements, any);
        end_group();
    };
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) fetch(stage, stage < turns.count);
    Packed<T> weights[CHUNKS];
    if (WEIGHT && WEIGHT_HELD) elements.load(global<T>(args.weight), weights);
    if (WEIGHT && !WEIGHT_HELD) {
#pragma unroll 1
        for (int chunk = threadIdx.y; chunk < CHUNKS; chunk += blockDim.y) {
            held_weights[chunk * blockDim.x] = elements.load(global<T>(args.weight), chunk);
        }
    }
    const WarpShare* shares = share_row<T, CHUNKS>(args.n);
    __syncthreads();
    float of_weight[CHUNKS][N] = {}, of_bias[CHUNKS][N] = {};
    T* out = global<T>(args.out) + turns.first * args.out_step;
    const T* firsts = global<T>(args.x) + turns.first * args.x_step;
    float first = PIVOT && turns.count > 0 ? widen(firsts[0]) : 0.0f;
    uint32 stage = 0;
#pragma unroll 1
    for (int left = turns.count; left > 0; --left) {
        await_groups<STAGES - 1>();
        const Packed<T>* now_x = rows.at(stage, stage_vectors).first;
        const Packed<T>* now_g = gradients.at(stage, stage_vectors).first;
        Packed<T> packed[CHUNKS], g[CHUNKS];
        if constexpr (HELD) {
            rows.at(stage, stage_vectors).take(packed);
            gradients.at(stage, stage_vectors).take(g);
            keep_packed(g);
            if (WEIGHT && WEIGHT_HELD) keep_packed(weights);
        }
        float x[CHUNKS][N], slopes[CHUNKS][N], sum = 0, mean = 0, rest = 0;
        if constexpr (CENTERED) {
#pragma unroll
            for (int chunk = 0; chunk < CHUNKS; ++chunk) {
                widen(HELD ? packed[chunk] : now_x[chunk * blockDim.x], x[chunk]);
                if (PIVOT && !elements.has(chunk, 0)) continue;
#pragma unroll
                for (int k = 0; k < N; ++k) sum += PIVOT ? x[chunk][k] - first : x[chunk][k];
            }
            const WarpShare own = shares[threadIdx.x / WARP];
            sum = warp_sum(sum);
            mean = first + mean_of(sum, own.count, own.part);
        }
        if (PIVOT) {
            firsts += rows.hop;
            first = left > 1 ? widen(firsts[0]) : 0.0f;
        }
        if (!HELD) asm volatile("" ::: "memory");  // read x anew: it has no registers
        float squares = 0, products = 0, total = 0;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            if (!elements.has(chunk, 0)) continue;
            float weight[N];
            if (!HELD || !CENTERED) {
                widen(HELD ? packed[chunk] : now_x[chunk * blockDim.x], x[chunk]);
            }
            widen(HELD ? g[chunk] : now_g[chunk * blockDim.x], slopes[chunk]);
            if (WEIGHT)
                widen(WEIGHT_HELD ? weights[chunk] : held_weights[chunk * blockDim.x], weight);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                x[chunk][k] -= mean;
                if (WEIGHT) slopes[chunk][k] *= weight[k];
                squares += x[chunk][k] * x[chunk][k];
                if (PIVOT) rest += x[chunk][k];
                products += slopes[chunk][k] * x[chunk][k];
                if (CENTERED) total += slopes[chunk][k];
            }
        }
        if (HELD) fetch(stage, left > STAGES);
        const RowSlopes all = combine_warps<CENTERED, PIVOT>(
            args, shares, found[left & 1], rests[left & 1], mean, squares, products, total, rest);
        const float share = number<float>(args.share);
        const float scale = rsqrt(all.sums.squares * share + number<float>(args.eps));
        // The gradient of x is scale * (slope - mean_slope) + tilt * distance from the mean. The
        // difference comes first: of equal slopes nothing is left, however the scale is rounded.
        const float tilt = -all.sums.products * share * scale * scale * scale;
        const float mean_slope =
            CENTERED ? mean_of(all.sums.slopes, float(int(args.n)), share) : 0.0f;
        const float shift = all.shift;  // from the warp's distances to the row's
        if (!HELD) asm volatile("" ::: "memory");
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            if (!elements.has(chunk, 0)) continue;
            Items<T, N> results;
            float gradient[N], weight[N];
            if (!HELD) widen(now_x[chunk * blockDim.x], x[chunk]);
            widen(HELD ? g[chunk] : now_g[chunk * blockDim.x], gradient);
            if (WEIGHT && !HELD) widen(held_weights[chunk * blockDim.x], weight);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                float slope = HELD     ? slopes[chunk][k]
                              : WEIGHT ? gradient[k] * weight[k]
                                       : gradient[k];
                float distance = HELD ? x[chunk][k] : x[chunk][k] - all.mean;
                bool shifts = CENTERED && HELD;
                float normalized = shifts ? fma(distance, scale, shift * scale) : distance * scale;
                float rest = shifts ? fma(distance, tilt, shift * tilt) : distance * tilt;
                if (CENTERED) slope -= mean_slope;
                results.item[k] = cast<T>(fma(slope, scale, rest));
                if (WEIGHT) of_weight[chunk][k] += gradient[k] * normalized;
                if (BIAS) of_bias[chunk][k] += gradient[k];
            }
            elements.store(out, chunk, results);
        }
        if (!HELD) fetch(stage, left > STAGES);
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        out += turns.step * args.out_step;
    }
    launch_dependents<ANY_GRID>();
    float* sums = reinterpret_cast<float*>(vectors);
    float* partials = global<float>(args.partials) + blockIdx.x * args.n;
    if (WEIGHT) write_sums(elements, args.n, sums, of_weight, partials);
    if (WEIGHT) partials += args.groups * args.n;
    if (BIAS) write_sums(elements, args.n, sums, of_bias, partials);
}

}  // namespace cyrt
