// What the kernels of attention of a few rows share: what a block works on, its rows of queries and
// new rows on their way to shared memory, and its results.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "online_softmax.cuh"
#include "reduce.cuh"
#include "rotation.cuh"
#include "strided.cuh"
#include "params/attention.h"

namespace cyrt {

__device__ inline int64 place_of(const AttentionStrides& step, uint32 batch, uint32 head,
                                 uint32 row) {
    return batch * step.batch + head * step.head + row * step.row;
}

// The position of a batch's first new row: the number of keys of the cache that come before. It is
// used some time after it is loaded, as words, of which there are one or two.
class Position {
    uint32 low = 0, high = 0;

  public:
    __device__ void load(const Attention& args, uint32 batch) {
        if (args.positions == nullptr) return;
        const bool wide = args.flags & ATTENTION_WIDE_POSITIONS;
        const uint32* words = global<uint32>(args.positions);
        const int64 place = (batch * args.positions_step) << wide;
        low = words[place];
        high = words[place + wide];
    }
    __device__ uint32 value(const Attention& args) const {
        const bool wide = args.flags & ATTENTION_WIDE_POSITIONS;
        int64 position = wide ? int64(uint64(high) << 32 | low) : int64(int32(low));
        position += args.first;
        return position < 0 ? 0 : position > args.most ? args.most : position;
    }
};

// How many chunks some keys are.
__device__ inline uint32 chunks_of(const Attention& args, uint32 keys) {
    return divide(keys + args.chunk.size - 1, args.chunk);
}

// -- rows of queries and new rows -----------------------------------------------------------------

// What a block works on: a part of the cache, and a tile of the rows of a group of heads.
struct Unit {
    uint32 part, tile, head, batch;  // of keys

    __device__ Unit(const Attention& args) {
        uint32 rest = divide(blockIdx.x, args.parts);
        part = blockIdx.x - rest * args.parts.size;
        uint32 unit = divide(rest, args.tiles);
        tile = rest - unit * args.tiles.size;
        batch = divide(unit, args.heads);
        head = unit - batch * args.heads.size;
    }
};

// Two features of a row: of a block's queries, new keys and new values, in this order. The first ones
// of a query or a key are turned together.
template <class T, int ROWS> class Pair {
    uint32 row, pair, t, low, high;
    bool is_turned;
    const T* from;  // NULL where there is no row
    float divisor;  // of the radians
    double turns;   // of a position
    T x, y;

  public:
    // Computes what does not depend on memory.
    __device__ void find(const Attention& args, const Unit& unit, uint32 index) {
        row = divide(index, args.row_pairs);
        pair = index - row * args.row_pairs.size;
        const bool neighbours = args.flags & ATTENTION_TRADITIONAL || pair >= args.pairs;
        low = neighbours ? 2 * pair : pair;
        high = neighbours ? 2 * pair + 1 : pair + args.pairs;
        is_turned = pair < args.pairs && row < ROWS + args.fresh;
        from = nullptr;
        if (row < ROWS) {
            const uint32 in_group = unit.tile * ROWS + row, head = divide(in_group, args.rows);
            t = in_group - head * args.rows.size;
            if (in_group < args.group_rows.size) {
                from = global<T>(args.q) +
                       place_of(args.q_step, unit.batch, unit.head * args.group + head, t);
            }
        } else {
            const bool is_key = row < ROWS + args.fresh;
            t = row - ROWS - (is_key ? 0 : args.fresh);
            if (t < args.fresh) {
                from = is_key ? global<T>(args.k) + place_of(args.k_step, unit.batch, unit.head, t)
                              : global<T>(args.v) + place_of(args.v_step, unit.batch, unit.head, t);
            }
        }
        if (is_turned && args.freqs == nullptr) turns = turns_of(args, pair);
    }

    __device__ void load(const Attention& args) {
        x = y = T();
        if (from == nullptr) return;
        x = from[low];
        if (high < args.features) y = from[high];
        if (is_turned && args.freqs != nullptr) divisor = args.freqs[pair * args.freqs_step];
    }

    // Puts them into shared memory: queries turned and multiplied with a scale, in rows `stride`
    // apart, and new rows as the cache gets them.
    template <class Query>
    __device__ void put(const Attention& args, uint32 position, Query* queries, uint32 stride,
                        float scale, T* fresh) const {
        if (row >= ROWS + 2 * args.fresh) return;
        float a = widen(x), b = widen(y);
        if (is_turned) {
            const double each = args.freqs == nullptr ? turns : args.turns / divisor;
            const auto rotation = rotation_of(each * double(position + t));
            const float first = a * rotation.cosine[0] - b * rotation.sine[0];
            b = a * rotation.sine[0] + b * rotation.cosine[0];
            a = first;
        }
        if (row < ROWS) {
            Query* to = queries + row * stride;
            to[low] = cast<Query>(a * scale);
            if (high < args.features) to[high] = cast<Query>(b * scale);
        } else {
            T* to = fresh + (row - ROWS) * args.features;
            to[low] = is_turned ? cast<T>(a) : x;
            if (high < args.features) to[high] = is_turned ? cast<T>(b) : y;
        }
    }
};

// A block's queries and new rows on their way to shared memory, PAIRS of features a thread at once.
template <class T, int ROWS, int PAIRS> class Staging {
    Pair<T, ROWS> pairs[PAIRS];

  public:
    // Computes what does not depend on memory of the pairs from `begin` on.
    __device__ void find(const Attention& args, const Unit& unit, uint32 begin) {
        const uint32 thread = threadIdx.y * WARP + threadIdx.x, threads = blockDim.y * WARP;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) pairs[i].find(args, unit, begin + thread + i * threads);
    }
    __device__ void load(const Attention& args) {
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) pairs[i].load(args);
    }
    // Puts what is loaded, loads and puts the rest, and sets the number of keys that each row sees.
    template <class Query>
    __device__ void put(const Attention& args, const Unit& unit, uint32 position, Query* queries,
                        uint32 stride, float scale, T* fresh, uint32* limits) {
        const uint32 thread = threadIdx.y * WARP + threadIdx.x, threads = blockDim.y * WARP;
        const uint32 all_pairs = (ROWS + 2 * args.fresh) * args.row_pairs.size;
#pragma unroll 1
        for (uint32 begin = 0;;) {
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                pairs[i].put(args, position, queries, stride, scale, fresh);
            }
            begin += PAIRS * threads;
            if (begin >= all_pairs) break;
            find(args, unit, begin);
            load(args);
        }
        if (thread < ROWS) {
            const uint32 row = unit.tile * ROWS + thread,
                         t = row - divide(row, args.rows) * args.rows.size;
            limits[thread] = position + min(t + 1, args.fresh);
        }
        __syncthreads();
    }
};

// Combines the states of a block's warps: of each warp and row, the sums of values and the share of
// the weights, in shared memory. Puts the results, or the state of the block's part of the cache.
template <class T, int ROWS>
__device__ inline void put_results(const Attention& args, const Unit& unit, const float* sums,
                                   const Share* shares) {
    const uint32 lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
    const uint32 thread = warp * WARP + lane, threads = warps * WARP;
    const uint32 features = args.features;
    __syncthreads();
#pragma unroll 1
    for (uint32 r = warp % ROWS; r < ROWS; r += warps) {
        const uint32 row = unit.tile * ROWS + r;
        if (row >= args.group_rows.size) break;
        Share all = {-infinity<float>(), 0};
        float weights[ATTENTION_WARPS];
#pragma unroll
        for (int w = 0; w < ATTENTION_WARPS; ++w) {
            weights[w] = w < warps ? shares[w * ROWS + r].most : -infinity<float>();
            all.most = ::fmaxf(all.most, weights[w]);
        }
#pragma unroll
        for (int w = 0; w < ATTENTION_WARPS; ++w) {
            weights[w] = weight(weights[w], all.most);
            if (w < warps) all.sum += shares[w * ROWS + r].sum * weights[w];
        }
        const int64 place =
            (int64(unit.batch) * args.heads.size + unit.head) * args.group_rows.size + row;
        float* own =
            global<float>(args.states) + (place * args.parts.size + unit.part) * (features + 2);
        float factor = 1;
        if (args.states == nullptr) {
            factor = factor_of<T>(args, unit.head * args.group + divide(row, args.rows), all);
        } else if (lane == 0 && warp < ROWS) {
            own[0] = all.most;
            own[1] = all.sum;
        }
        // Warps that are more than the rows share them.
#pragma unroll 1
        for (uint32 d = thread / (WARP * ROWS) * WARP + lane; d < features;
             d += max(threads / ROWS, uint32(WARP))) {
            float value = 0;
#pragma unroll
            for (int w = 0; w < ATTENTION_WARPS; ++w) {
                if (w < warps) value += sums[(w * ROWS + r) * features + d] * weights[w];
            }
            if (args.states == nullptr) {
                global<T>(args.out)[place * features + d] = cast<T>(value * factor);
            } else {
                own[2 + d] = value;
            }
        }
    }
}

// A block combines the parts of a row of queries, for as many features as a warp has lanes. Its warps
// share the parts, and load what they need of them at once.
template <class T> __device__ inline void combine_attention(const Attention& args) {
    constexpr uint32 WARPS = ATTENTION_PARTS / WARP, EACH = ATTENTION_PARTS / WARPS;
    __shared__ float weights[ATTENTION_PARTS], sums[WARPS][WARP];
    const uint32 thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const uint32 features = args.features, slices = (features + WARP - 1) / WARP;
    const uint32 row = blockIdx.x / slices, feature = (blockIdx.x - row * slices) * WARP + lane;
    const uint32 unit = divide(row, args.group_rows), batch = divide(unit, args.heads);
    const uint32 in_group = row - unit * args.group_rows.size, head = divide(in_group, args.rows);
    wait_for_dependencies(args);
    launch_dependents();
    Position position;
    position.load(args, batch);
    const uint32 chunks = chunks_of(args, position.value(args) + args.fresh);
    const uint32 parts = min(chunks, args.parts.size);
    const float* states =
        global<float>(args.states) + int64(row) * args.parts.size * (features + 2);
    Share share = {-infinity<float>(), 0};
    if (thread < parts) {
        const float* own = states + thread * (features + 2);
        share = {own[0], own[1]};
    }
    float values[EACH];
#pragma unroll
    for (uint32 i = 0; i < EACH; ++i) {
        const uint32 part = warp + i * WARPS;
        values[i] =
            part < parts && feature < features ? states[part * (features + 2) + 2 + feature] : 0;
    }
    Share all;
    all.most = block_reduce(
        share.most, [](float a, float b) { return ::fmaxf(a, b); }, -infinity<float>());
    weights[thread] = weight(share.most, all.most);  // read behind the barriers of the next line
    all.sum =
        block_reduce(share.sum * weights[thread], [](float a, float b) { return a + b; }, 0.f);
    float value = 0;
#pragma unroll
    for (uint32 i = 0; i < EACH; ++i) {
        const uint32 part = warp + i * WARPS;
        if (part < parts) value += values[i] * weights[part];
    }
    sums[warp][lane] = value;
    __syncthreads();
    if (warp > 0 || feature >= features) return;
    const float factor =
        factor_of<T>(args, (unit - batch * args.heads.size) * args.group + head, all);
#pragma unroll
    for (uint32 i = 1; i < WARPS; ++i) value += sums[i][lane];
    global<T>(args.out)[int64(row) * features + feature] = cast<T>(value * factor);
}

}  // namespace cyrt
