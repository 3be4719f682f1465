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

__device__ inline int64 offset_of(const AttentionStrides& step, uint32 batch, uint32 head,
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
        const int64 offset = (batch * args.positions_step) << wide;
        low = words[offset];
        high = words[offset + wide];
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
    uint32 part, tile, head, batch;  // the part, the tile, the head and the batch of keys

    __device__ Unit(const Attention& args) {
        uint32 rest = divide(blockIdx.x, args.parts);
        part = blockIdx.x - rest * args.parts.size;
        uint32 unit = divide(rest, args.tiles);
        tile = rest - unit * args.tiles.size;
        batch = divide(unit, args.heads);
        head = unit - batch * args.heads.size;
    }
};

// Where a row of a block comes from: of its queries, new keys and new values, in this order. NULL where
// there is none. `t` becomes its index among the rows of its head.
template <class T, int ROWS>
__device__ inline const T* source_of(const Attention& args, const Unit& unit, uint32 row,
                                     uint32& t) {
    if (row < ROWS) {
        const uint32 in_group = unit.tile * ROWS + row, head = divide(in_group, args.rows);
        t = in_group - head * args.rows.size;
        if (in_group >= args.group_rows.size) return nullptr;
        return global<T>(args.q) +
               offset_of(args.q_step, unit.batch, unit.head * args.group + head, t);
    }
    const bool is_key = row < ROWS + args.fresh;
    t = row - ROWS - (is_key ? 0 : args.fresh);
    if (t >= args.fresh) return nullptr;
    return is_key ? global<T>(args.k) + offset_of(args.k_step, unit.batch, unit.head, t)
                  : global<T>(args.v) + offset_of(args.v_step, unit.batch, unit.head, t);
}

// How many keys a row of a block's queries sees.
template <int ROWS>
__device__ inline uint32 limit_of(const Attention& args, const Unit& unit, uint32 row,
                                  uint32 position) {
    const uint32 in_group = unit.tile * ROWS + row;
    const uint32 t = in_group - divide(in_group, args.rows) * args.rows.size;
    return position + min(t + 1, args.fresh);
}

// The indices of the two features of a row that are turned together, or are no pair.
__device__ inline void find_pair(const Attention& args, uint32 pair, uint32& low, uint32& high) {
    const bool neighbours = args.flags & ATTENTION_TRADITIONAL || pair >= args.pairs;
    low = neighbours ? 2 * pair : pair;
    high = neighbours ? 2 * pair + 1 : pair + args.pairs;
}

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
        const int64 offset =
            (int64(unit.batch) * args.heads.size + unit.head) * args.group_rows.size + row;
        float* own =
            global<float>(args.states) + (offset * args.parts.size + unit.part) * (features + 2);
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
                global<T>(args.out)[offset * features + d] = cast<T>(value * factor);
            } else {
                own[2 + d] = value;
            }
        }
    }
}

// A block combines the parts of a row of queries, for as many features as a warp has lanes. Its warps
// share the parts; the first ones are on their way while the weights are made.
template <class T> __device__ inline void combine_attention(const Attention& args) {
    constexpr uint32 WARPS = ATTENTION_PARTS / WARP, EACH = 8;  // parts that a warp takes at once
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
    const auto load = [&](float (&values)[EACH], uint32 begin) {
#pragma unroll
        for (uint32 i = 0; i < EACH; ++i) {
            const uint32 part = begin + i * WARPS;
            values[i] = part < parts && feature < features
                            ? states[part * (features + 2) + 2 + feature]
                            : 0;
        }
    };
    float values[EACH];
    load(values, warp);
    Share all;
    all.most = block_reduce(
        share.most, [](float a, float b) { return ::fmaxf(a, b); }, -infinity<float>());
    weights[thread] = weight(share.most, all.most);  // read behind the barriers of the next line
    all.sum =
        block_reduce(share.sum * weights[thread], [](float a, float b) { return a + b; }, 0.f);
    float value = 0;
#pragma unroll 1
    for (uint32 begin = warp;;) {
#pragma unroll
        for (uint32 i = 0; i < EACH; ++i) {
            const uint32 part = begin + i * WARPS;
            if (part < parts) value += values[i] * weights[part];
        }
        begin += EACH * WARPS;
        if (begin >= parts) break;
        load(values, begin);
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
