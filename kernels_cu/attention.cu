// Attention of a few rows of queries to the keys and values of a cache.
//
// All kernels have parameters Attention.
// CYRT_ATTENTION(name, type) makes
//   name, name_4, name_8    one row of queries in a block, up to 4, up to 8
//   name_unaligned          up to 8, of keys and values that are not aligned to vectors
//   name_parts              the results, from the states of the cache's parts
//
// The time is that of reading the cache, so all heads that share a head of keys are in one block, and
// each key and value goes from global memory into the registers of the lanes that use it: `lanes` of a
// warp share a key, 8 features each, and keep sums of values of their own, scaled by the largest of the
// logits that they have met (online softmax). The states of lanes, warps and parts are combined in one
// order. Blocks take every parts-th chunk of the cache's keys, as far as these go: the grid depends on
// the cache's size alone.
//
// New keys and values are never read from the cache: every block that needs them takes them from where
// they come from, and one of them writes them to the cache.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "online_softmax.cuh"
#include "reduce.cuh"
#include "rotation.cuh"
#include "strided.cuh"
#include "params/attention.h"

namespace cyrt {

constexpr int ITEMS = ATTENTION_ITEMS;

template <class T> using Features = Items<T, ITEMS>;

__device__ inline int64 place_of(const AttentionStrides& step, uint32 batch, uint32 head,
                                 uint32 row) {
    return batch * step.batch + head * step.head + row * step.row;
}

// The position of a batch's first new row: the number of keys of the cache that come before.
__device__ inline uint32 position_of(const Attention& args, uint32 batch) {
    int64 position = args.first, place = batch * args.positions_step;
    if (args.positions != nullptr) {
        position += args.flags & ATTENTION_WIDE_POSITIONS ? global<int64>(args.positions)[place]
                                                          : global<int32>(args.positions)[place];
    }
    return position < 0 ? 0 : position > args.most ? args.most : position;
}

// How many chunks some keys are.
__device__ inline uint32 chunks_of(const Attention& args, uint32 keys) {
    return divide(keys + args.chunk.size - 1, args.chunk);
}

// -- keys and values ------------------------------------------------------------------------------

// The features of a row from `first` on that a lane holds; those that there are not are 0.
template <bool VECTORS, class T>
__device__ inline Features<T> load_features(const T* row, uint32 first, uint32 features) {
    Features<T> items = {};
    if constexpr (VECTORS) {
        constexpr int N = items_of<T>;
        if (first >= features) return items;
#pragma unroll
        for (int k = 0; k < ITEMS; k += N) {
            Items<T, N> vector = load_vector<N>(row + first + k);
            memcpy(items.item + k, &vector, sizeof(vector));
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < ITEMS && first + k < features; ++k) items.item[k] = row[first + k];
    }
    return items;
}

// The features of some keys and values that a lane holds.
template <class T, int KEYS> struct Batch {
    Features<T> keys[KEYS], values[KEYS];

    // Rows row, row + spacing, ... before `end`.
    template <bool VECTORS>
    __device__ void load(const T* k, int64 k_step, const T* v, int64 v_step, uint32 row,
                         uint32 spacing, uint32 end, uint32 first, uint32 features) {
#pragma unroll
        for (int i = 0; i < KEYS; ++i, row += spacing) {
            uint32 known = row < end ? features : 0;  // nothing is read of the other rows
            keys[i] = load_features<VECTORS>(k + row * k_step, first, known);
            values[i] = load_features<VECTORS>(v + row * v_step, first, known);
        }
    }
};

// What a lane knows of each row of queries: of the keys that it met, and of its features.
template <int ROWS> struct State {
    float most[ROWS], sum[ROWS], values[ROWS][ITEMS];

    __device__ State() {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            most[r] = -infinity<float>();
            sum[r] = 0;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) values[r][k] = 0;
        }
    }

    // Adds keys key, key + spacing, ..., of which row r sees those before limit(r). All lanes of the
    // warp take part.
    template <class T, int KEYS, class Limit>
    __device__ void add(const Batch<T, KEYS>& batch, const float (&q)[ROWS][ITEMS], uint32 key,
                        uint32 spacing, uint32 lanes, Limit limit) {
        float logits[ROWS][KEYS];
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) logits[r][i] = 0;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                float feature = widen(batch.keys[i].item[k]);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) logits[r][i] += q[r][k] * feature;
            }
        }
#pragma unroll 1
        for (uint32 distance = lanes / 2; distance; distance /= 2) {
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    logits[r][i] += __shfl_xor_sync(0xffffffffu, logits[r][i], distance);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float before = most[r];
            uint32 end = limit(r);
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                if (key + i * spacing >= end) logits[r][i] = -infinity<float>();
                most[r] = ::fmaxf(most[r], logits[r][i]);
            }
            float factor = weight(before, most[r]);
            sum[r] *= factor;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) values[r][k] *= factor;
#pragma unroll
            for (int i = 0; i < KEYS; ++i) {
                logits[r][i] = weight(logits[r][i], most[r]);
                sum[r] += logits[r][i];
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
                float feature = widen(batch.values[i].item[k]);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) values[r][k] += logits[r][i] * feature;
            }
        }
    }

    // Combine with the lanes that hold the same features of other keys; the first ones get it all.
    __device__ void combine_lanes(uint32 lanes) {
#pragma unroll 1
        for (uint32 distance = lanes; distance < WARP; distance *= 2) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                float other = shuffle_xor(most[r], distance);
                float joint = ::fmaxf(most[r], other);
                float own = weight(most[r], joint), theirs = weight(other, joint);
                sum[r] = sum[r] * own + shuffle_xor(sum[r], distance) * theirs;
#pragma unroll
                for (int k = 0; k < ITEMS; ++k) {
                    values[r][k] =
                        values[r][k] * own + shuffle_xor(values[r][k], distance) * theirs;
                }
                most[r] = joint;
            }
        }
    }
};

// -- rows of queries ------------------------------------------------------------------------------

// A feature of a row after its rotation, by the cosines and sines of the pairs' angles.
template <class T>
__device__ inline float turned(const Attention& args, const T* row, uint32 d, const float* angles) {
    float x = widen(row[d]);
    if (d >= 2 * args.pairs) return x;
    const bool traditional = args.flags & ATTENTION_TRADITIONAL;
    const bool low = traditional ? d % 2 == 0 : d < args.pairs;
    const uint32 distance = traditional ? 1 : args.pairs;
    const uint32 pair = traditional ? d / 2 : low ? d : d - args.pairs;
    float y = widen(row[low ? d + distance : d - distance]);
    float cosine = angles[2 * pair], sine = angles[2 * pair + 1];
    return low ? x * cosine - y * sine : y * sine + x * cosine;
}

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

// Computes the rotations of all new positions.
__device__ inline void find_angles(const Attention& args, uint32 position, float* angles) {
#pragma unroll 1
    for (uint32 t = threadIdx.y; t < args.rows.size; t += blockDim.y) {
        for (uint32 pair = threadIdx.x; pair < args.pairs; pair += WARP) {
            auto rotation = rotation_at<1>(args, pair, int64(position) + t);
            angles[2 * (t * args.pairs + pair)] = rotation.cosine[0];
            angles[2 * (t * args.pairs + pair) + 1] = rotation.sine[0];
        }
    }
}

// Takes a tile of the queries, turned and scaled.
template <class T, int ROWS>
__device__ inline void take_queries(const Attention& args, const Unit& unit, const float* angles,
                                    float* queries) {
#pragma unroll 1
    for (uint32 r = threadIdx.y; r < ROWS; r += blockDim.y) {
        const uint32 row = unit.tile * ROWS + r, head = divide(row, args.rows);
        const uint32 t = row - head * args.rows.size;
        const bool any = row < args.group_rows.size;
        const T* from =
            global<T>(args.q) + place_of(args.q_step, unit.batch, unit.head * args.group + head, t);
        for (uint32 d = threadIdx.x; d < args.features; d += WARP) {
            queries[r * args.features + d] =
                any ? turned(args, from, d, angles + 2 * t * args.pairs) * args.scale : 0;
        }
    }
}

// Takes all new keys, turned; and writes them and the new values to the cache, if there are pointers
// to their place in it.
template <class T>
__device__ inline void take_keys(const Attention& args, const Unit& unit, const float* angles,
                                 const T* values, T* keys, T* cached_keys, T* cached_values) {
    const T* from = global<T>(args.k) + place_of(args.k_step, unit.batch, unit.head, 0);
#pragma unroll 1
    for (uint32 t = threadIdx.y; t < args.fresh; t += blockDim.y) {
        for (uint32 d = threadIdx.x; d < args.features; d += WARP) {
            T x = cast<T>(turned(args, from + t * args.k_step.row, d, angles + 2 * t * args.pairs));
            keys[t * args.features + d] = x;
            if (cached_keys != nullptr) {
                cached_keys[t * args.keys_step.row + d] = x;
                cached_values[t * args.values_step.row + d] = values[t * args.v_step.row + d];
            }
        }
    }
}

// A block of 32 by y threads. Of shared memory it has first the new keys, the queries and the angles,
// then the states of its warps.
template <class T, int ROWS, int KEYS, bool VECTORS>
__device__ inline void attention(const Attention& args) {
    extern __shared__ uint4 shared[];
    launch_dependents();
    wait_for_dependencies(args);
    const Unit unit(args);
    const uint32 lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
    const uint32 features = args.features, first = (lane & (args.lanes - 1)) * ITEMS;
    const uint32 groups = WARP / args.lanes, group = (warp * WARP + lane) / args.lanes;
    const uint32 spacing = warps * groups, parts = args.parts.size;
    // Chunks of the cache, and after them those of the new rows.
    const uint32 position = position_of(args, unit.batch);
    const uint32 cached = chunks_of(args, position), chunks = cached + chunks_of(args, args.fresh);
    if (unit.part >= chunks && parts > 1) return;

    T* keys = global<T>(args.keys) + place_of(args.keys_step, unit.batch, unit.head, 0);
    T* values = global<T>(args.values) + place_of(args.values_step, unit.batch, unit.head, 0);
    const T* new_values = global<T>(args.v) + place_of(args.v_step, unit.batch, unit.head, 0);
    T* new_keys = reinterpret_cast<T*>(shared);
    float* queries =
        reinterpret_cast<float*>(shared + ATTENTION_KEY_VECTORS(args.fresh * features * sizeof(T)));
    float* angles = queries + ROWS * features;
    float q[ROWS][ITEMS] = {};
    State<ROWS> state;
#pragma unroll 1
    for (uint32 chunk = unit.part; chunk < chunks; chunk += parts) {
        const bool is_new = chunk >= cached;
        const uint32 key = (is_new ? chunk - cached : chunk) * args.chunk.size + group;
        Batch<T, KEYS> batch;
        batch.template load<VECTORS>(keys, args.keys_step.row, values, args.values_step.row, key,
                                     spacing, is_new ? 0 : position, first, features);
        if (chunk == unit.part) {  // while they come
            find_angles(args, position, angles);
            __syncthreads();
            take_queries<T, ROWS>(args, unit, angles, queries);
            // Whether a chunk of the new rows is this part's, and whether it is the first.
            uint32 from_cached =
                unit.part + (unit.part < cached % parts ? parts : 0) - cached % parts;
            if (from_cached < chunks - cached) {
                const bool append = args.flags & ATTENTION_APPEND && from_cached == 0 && !unit.tile;
                take_keys<T>(args, unit, angles, new_values, new_keys,
                             append ? keys + position * args.keys_step.row : nullptr,
                             append ? values + position * args.values_step.row : nullptr);
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int k = 0; k < ITEMS; ++k) {
                    if (first + k < features) q[r][k] = queries[r * features + first + k];
                }
            }
        }
        if (is_new) {
            batch.template load<VECTORS>(new_keys, features, new_values, args.v_step.row, key,
                                         spacing, args.fresh, first, features);
        }
        state.add(batch, q, key, spacing, args.lanes, [&](int r) {
            uint32 row = unit.tile * ROWS + r;
            uint32 seen = row - divide(row, args.rows) * args.rows.size + 1;
            return is_new ? min(seen, args.fresh) : position;
        });
    }
    state.combine_lanes(args.lanes);

    float* sums = reinterpret_cast<float*>(shared);  // of each warp and row
    Share* shares = reinterpret_cast<Share*>(sums + warps * ROWS * features);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (lane >= args.lanes) break;
        if (lane == 0) shares[warp * ROWS + r] = {state.most[r], state.sum[r]};
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            if (first + k < features) {
                sums[(warp * ROWS + r) * features + first + k] = state.values[r][k];
            }
        }
    }
    __syncthreads();
#pragma unroll 1
    for (uint32 r = warp; r < ROWS; r += warps) {
        const uint32 row = unit.tile * ROWS + r;
        if (row >= args.group_rows.size) break;
        Share all = {-infinity<float>(), 0};
        for (uint32 w = 0; w < warps; ++w) all.most = ::fmaxf(all.most, shares[w * ROWS + r].most);
        for (uint32 w = 0; w < warps; ++w) {
            Share share = shares[w * ROWS + r];
            all.sum += share.sum * weight(share.most, all.most);
        }
        const int64 place =
            (int64(unit.batch) * args.heads.size + unit.head) * args.group_rows.size + row;
        float* own =
            global<float>(args.states) + (place * args.parts.size + unit.part) * (features + 2);
        float factor = 1;
        if (args.states == nullptr) {
            factor = factor_of<T>(args, unit.head * args.group + divide(row, args.rows), all);
        } else if (lane == 0) {
            own[0] = all.most;
            own[1] = all.sum;
        }
        for (uint32 d = lane; d < features; d += WARP) {
            float value = 0;
            for (uint32 w = 0; w < warps; ++w) {
                value += sums[(w * ROWS + r) * features + d] *
                         weight(shares[w * ROWS + r].most, all.most);
            }
            if (args.states == nullptr) {
                global<T>(args.out)[place * features + d] = cast<T>(value * factor);
            } else {
                own[2 + d] = value;
            }
        }
    }
}

// A block combines the parts of a row of queries.
template <class T> __device__ inline void combine_attention(const Attention& args) {
    __shared__ float weights[ATTENTION_PARTS];
    wait_for_dependencies(args);
    launch_dependents();
    const uint32 row = blockIdx.x, thread = threadIdx.x, features = args.features;
    const uint32 unit = divide(row, args.group_rows), batch = divide(unit, args.heads);
    const uint32 chunks = chunks_of(args, position_of(args, batch)) + chunks_of(args, args.fresh);
    const uint32 parts = min(chunks, args.parts.size);
    const float* states =
        global<float>(args.states) + int64(row) * args.parts.size * (features + 2);
    Share share = {-infinity<float>(), 0};
    if (thread < parts) {
        const float* own = states + thread * (features + 2);
        share = {own[0], own[1]};
    }
    Share all;
    all.most = block_reduce(
        share.most, [](float a, float b) { return ::fmaxf(a, b); }, -infinity<float>());
    weights[thread] = weight(share.most, all.most);  // read behind the barriers of the next line
    all.sum =
        block_reduce(share.sum * weights[thread], [](float a, float b) { return a + b; }, 0.f);
    const uint32 in_group = row - unit * args.group_rows.size, head = divide(in_group, args.rows);
    const float factor =
        factor_of<T>(args, (unit - batch * args.heads.size) * args.group + head, all);
    for (uint32 d = thread; d < features; d += ATTENTION_PARTS) {
        float value = 0;
#pragma unroll 8
        for (uint32 part = 0; part < parts; ++part) {
            value += states[part * (features + 2) + 2 + d] * weights[part];
        }
        global<T>(args.out)[int64(row) * features + d] = cast<T>(value * factor);
    }
}

}  // namespace cyrt

#define CYRT_ATTENTION_KERNEL(NAME, THREADS, ...)            \
    extern "C" __global__ void __launch_bounds__(THREADS)    \
        NAME(const __grid_constant__ cyrt::Attention args) { \
        __VA_ARGS__(args);                                   \
    }
#define CYRT_ATTENTION_ROWS(NAME, TYPE, ROWS, KEYS, VECTORS) \
    CYRT_ATTENTION_KERNEL(NAME, 32 * cyrt::ATTENTION_WARPS,  \
                          cyrt::attention<TYPE, ROWS, KEYS, VECTORS>)
#define CYRT_ATTENTION(NAME, TYPE)                                             \
    CYRT_ATTENTION_ROWS(NAME, TYPE, 1, ATTENTION_KEYS(sizeof(TYPE)), true)     \
    CYRT_ATTENTION_ROWS(NAME##_4, TYPE, 4, ATTENTION_KEYS(sizeof(TYPE)), true) \
    CYRT_ATTENTION_ROWS(NAME##_8, TYPE, 8, ATTENTION_KEYS(sizeof(TYPE)), true) \
    CYRT_ATTENTION_ROWS(NAME##_unaligned, TYPE, 8, 1, false)                   \
    CYRT_ATTENTION_KERNEL(NAME##_parts, cyrt::ATTENTION_PARTS, cyrt::combine_attention<TYPE>)
