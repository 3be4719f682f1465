// Attention of a few rows of queries to the keys and values of a cache.
//
// All kernels have parameters Attention.
// CYRT_ATTENTION(name, type) makes
//   name                    one row of queries in a block
//   name_unaligned          up to 8, of keys and values that are not aligned to vectors
//   name_parts              the results, from the states of the cache's parts
// and CYRT_ATTENTION_OF_ROWS(name, type), which does not use tensor cores,
//   name_4, name_8          up to 4 rows of queries in a block, up to 8
// or CYRT_ATTENTION_BY_TILES(name, type), which does, for types of 16 bits,
//   name_64, name_128, name_256    up to 8, of up to so many features
//
// The keys are one sequence: those of the cache before the position, and the new ones. All rows of
// queries of a tile are in one block, and each key and value goes from global memory into the registers
// of the lanes that use it: `lanes` of a warp share a key, 8 features each, and keep sums of values of
// their own, scaled by the largest of the logits that they have met (online softmax). The states of
// lanes, warps and parts are combined in one order. Blocks take every parts-th chunk of the keys, as far
// as these go: the grid depends on the cache's size alone.
//
// For few keys the time is that of loads one behind the other. So all loads of a block go out at once:
// the position, the queries and new rows, and the first chunk of the cache; the next chunk does while a
// chunk is used. New keys and values are never read from the cache: every block takes them from where
// they come from, and the one that has their chunk and the first tile writes them to the cache.
#pragma once

#include "attention_rows.cuh"
#include "attention_tiles.cuh"

namespace cyrt {

constexpr int ITEMS = ATTENTION_ITEMS;

// The features of a row that a lane holds, as words: halves would be taken apart where they are
// loaded, which waits for them.
template <class T> struct Features {
    uint32 word[ITEMS * sizeof(T) / 4];
};

// -- keys and values ------------------------------------------------------------------------------

// `count` features from an address on, of which at most ITEMS are loaded; the others are 0. Of
// vectors all are there, or none.
template <bool VECTORS, class T>
__device__ inline Features<T> load_features(const T* from, uint32 count) {
    Features<T> features = {};
    if constexpr (VECTORS) {
        if (count == 0) return features;
#pragma unroll
        for (int k = 0; k < int(sizeof(features)) / VECTOR_BYTES; ++k) {
            uint4 vector = reinterpret_cast<const uint4*>(from)[k];
            memcpy(features.word + 4 * k, &vector, sizeof(vector));
        }
    } else {
        Items<T, ITEMS> items = {};
#pragma unroll 1
        for (int k = 0; k < ITEMS && k < count; ++k) items.item[k] = from[k];
        memcpy(&features, &items, sizeof(features));
    }
    return features;
}

template <bool VECTORS, class T>
__device__ inline void store_features(T* to, uint32 count, const Features<T>& features) {
    if constexpr (VECTORS) {
        if (count == 0) return;
#pragma unroll
        for (int k = 0; k < int(sizeof(features)) / VECTOR_BYTES; ++k) {
            uint4 vector;
            memcpy(&vector, features.word + 4 * k, sizeof(vector));
            reinterpret_cast<uint4*>(to)[k] = vector;
        }
    } else {
        Items<T, ITEMS> items;
        memcpy(&items, &features, sizeof(features));
#pragma unroll 1
        for (int k = 0; k < ITEMS && k < count; ++k) to[k] = items.item[k];
    }
}

template <class T>
__device__ inline void widen(const Features<T>& features, float (&values)[ITEMS]) {
    Items<T, ITEMS> items;
    memcpy(&items, &features, sizeof(items));
    widen(items, values);
}

// The features of some keys and values that a lane holds.
template <class T, int KEYS> struct KeyBatch {
    Features<T> keys[KEYS], values[KEYS];
};

// What a lane knows of each row of queries: of the keys that it met, and of its features.
template <int ROWS> struct AttentionState {
    float most[ROWS], sum[ROWS], values[ROWS][ITEMS];

    __device__ AttentionState() {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            most[r] = -infinity<float>();
            sum[r] = 0;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) values[r][k] = 0;
        }
    }

    // Adds keys key, key + spacing, ..., of which row r sees those before limits[r]. All lanes of the
    // warp take part.
    template <class T, int KEYS>
    __device__ void add(const KeyBatch<T, KEYS>& batch, const float (&q)[ROWS][ITEMS], uint32 key,
                        uint32 spacing, uint32 lanes, const uint32* limits) {
        float logits[ROWS][KEYS];
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) logits[r][i] = 0;
            float features[ITEMS];
            widen(batch.keys[i], features);
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r) logits[r][i] += q[r][k] * features[k];
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
            const uint32 end = limits[r];
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
            float features[ITEMS];
            widen(batch.values[i], features);
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r) values[r][k] += logits[r][i] * features[k];
            }
        }
    }

    // Combines with the lanes that hold the same features of other keys: they agree on the largest
    // logits, and half of the sums change hands each time. A lane gets the sums of the features from
    // the one that is returned on, ITEMS * lanes / WARP of them, at least one.
    __device__ uint32 combine_lanes(uint32 lanes) {
        float own[ROWS];
        memcpy(own, most, sizeof(own));
#pragma unroll 1
        for (uint32 distance = lanes; distance < WARP; distance *= 2) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                most[r] = ::fmaxf(most[r], shuffle_xor(most[r], distance));
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float factor = weight(own[r], most[r]);
            sum[r] *= factor;
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) values[r][k] *= factor;
        }
        uint32 first = 0, distance = WARP / 2;
#pragma unroll
        for (int half = ITEMS / 2; half; half /= 2, distance /= 2) {
            if (distance < lanes) break;
            const bool upper = threadIdx.x & distance;
            first += upper ? half : 0;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] += shuffle_xor(sum[r], distance);
#pragma unroll
                for (int k = 0; k < half; ++k) {
                    values[r][k] = add_across(values[r][k], values[r][k + half], upper, distance);
                }
            }
        }
#pragma unroll 1
        for (; distance >= lanes && distance; distance /= 2) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sum[r] += shuffle_xor(sum[r], distance);
                values[r][0] += shuffle_xor(values[r][0], distance);
            }
        }
        return first;
    }
};

// -- rows of queries and new rows -----------------------------------------------------------------

// Two features of a row: of a block's queries, new keys and new values, in this order. The first ones
// of a query or a key are turned together.
template <class T, int ROWS> class Pair {
    uint32 row, pair, t, low, high;
    bool is_turned;
    const T* from;   // NULL where there is no row
    double divisor;  // the divisor of the radians
    double turns;    // the turns of a position
    T x, y;

  public:
    // Computes what does not depend on memory.
    __device__ void find(const Attention& args, const Unit& unit, uint32 index) {
        row = divide(index, args.row_pairs);
        pair = index - row * args.row_pairs.size;
        find_pair(args, pair, low, high);
        is_turned = pair < args.pairs && row < ROWS + args.fresh;
        from = source_of<T, ROWS>(args, unit, row, t);
        if (is_turned && args.freqs == nullptr) turns = turns_of(args, pair);
    }

    __device__ void load(const Attention& args) {
        x = y = T();
        if (from == nullptr) return;
        x = from[low];
        if (high < args.features) y = from[high];
        if (is_turned && args.freqs != nullptr) {
            divisor = divisor_of(args, pair, args.flags & ATTENTION_WIDE_FREQS);
        }
    }

    // Puts them into shared memory: queries turned and scaled, and new rows as the cache gets them.
    __device__ void put(const Attention& args, uint32 position, float* queries, T* fresh) const {
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
            float* to = queries + row * args.features;
            to[low] = a * args.scale;
            if (high < args.features) to[high] = b * args.scale;
        } else {
            T* to = fresh + (row - ROWS) * args.features;
            to[low] = is_turned ? cast<T>(a) : x;
            if (high < args.features) to[high] = is_turned ? cast<T>(b) : y;
        }
    }
};

// A block of 32 by y threads. Of shared memory it has first the new keys and values and the queries,
// then the states of its warps.
template <class T, int ROWS, int KEYS, bool VECTORS>
__device__ inline void attention(const Attention& args) {
    extern __shared__ uint4 shared[];
    constexpr int PAIRS = ROWS == 1 ? 1 : 2;  // pairs that a thread takes at once
    constexpr bool AHEAD = ROWS < 8;          // there are registers for the next chunk
    const Unit unit(args);
    const uint32 lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
    const uint32 thread = warp * WARP + lane, threads = warps * WARP;
    const uint32 features = args.features, parts = args.parts.size;
    // Lanes that share a key, their features, and the keys between two of a lane.
    const uint32 lane_bits = __ffs(args.lanes) - 1, first = (lane & (args.lanes - 1)) * ITEMS;
    const uint32 count = first < features ? features - first : 0;
    const uint32 spacing = threads >> lane_bits;
    const uint32 spacing_of_chunks = parts * args.chunk.size;
    uint32 chunk = unit.part * args.chunk.size;  // its first key
    uint32 key = chunk + (thread >> lane_bits);
    T* keys = global<T>(args.keys) + offset_of(args.keys_step, unit.batch, unit.head, key) + first;
    T* values =
        global<T>(args.values) + offset_of(args.values_step, unit.batch, unit.head, key) + first;
    const int64 keys_step = spacing * args.keys_step.row;
    const int64 values_step = spacing * args.values_step.row;
    T* new_keys = reinterpret_cast<T*>(shared);
    T* new_values = new_keys + args.fresh * features;
    float* queries = reinterpret_cast<float*>(
        shared + ATTENTION_NEW_VECTORS(2 * args.fresh * features * sizeof(T)));
    uint32* limits = reinterpret_cast<uint32*>(queries + ROWS * features);
    // Loads the lane's keys before `end`, from `key` on.
    auto load_chunk = [&](KeyBatch<T, KEYS>& batch, uint32 end) {
        const T *k = keys, *v = values;
#pragma unroll
        for (int i = 0; i < KEYS; ++i, k += keys_step, v += values_step) {
            const uint32 known = key + i * spacing < end ? count : 0;
            batch.keys[i] = load_features<VECTORS>(k, known);
            batch.values[i] = load_features<VECTORS>(v, known);
        }
    };
    Pair<T, ROWS> pairs[PAIRS];
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) pairs[i].find(args, unit, thread + i * threads);
    launch_dependents();  // the next kernel loads its weights meanwhile
    wait_for_dependencies(args);

    Position loaded;
    KeyBatch<T, KEYS> batch;
    loaded.load(args, unit.batch);
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) pairs[i].load(args);
    // Small caches are loaded before it is known how many keys they have. What another tile's block
    // may be writing meanwhile is not used.
    if (parts == 1) load_chunk(batch, args.capacity);
    const uint32 position = loaded.value(args), end = position + args.fresh;
    if (parts > 1) {
        if (chunk >= end) return;
        load_chunk(batch, position);
    }
    const uint32 all_pairs = (ROWS + 2 * args.fresh) * args.row_pairs.size;
#pragma unroll 1
    for (uint32 begin = 0;;) {
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) pairs[i].put(args, position, queries, new_keys);
        begin += PAIRS * threads;
        if (begin >= all_pairs) break;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            pairs[i].find(args, unit, begin + i * threads + thread);
            pairs[i].load(args);
        }
    }
    if (thread < ROWS) limits[thread] = limit_of<ROWS>(args, unit, thread, position);
    __syncthreads();
    float q[ROWS][ITEMS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        widen(load_features<VECTORS>(queries + r * features + first, count), q[r]);
    }

    AttentionState<ROWS> state;
    const bool appends = args.flags & ATTENTION_APPEND && unit.tile == 0;
#pragma unroll 1
    for (; chunk < end; chunk += spacing_of_chunks) {
        if (!AHEAD && chunk >= spacing_of_chunks) load_chunk(batch, position);
#pragma unroll
        for (int i = 0; i < KEYS; ++i) {
            const uint32 row = key + i * spacing, t = row - position;
            if (row < position) continue;
            // A new row; or none, which is 0: memory may hold anything.
            const uint32 known = t < args.fresh ? count : 0;
            const uint32 offset = t * features + first;
            batch.keys[i] = load_features<VECTORS>(new_keys + offset, known);
            batch.values[i] = load_features<VECTORS>(new_values + offset, known);
            if (!appends) continue;
            store_features<VECTORS>(keys + i * keys_step, known, batch.keys[i]);
            store_features<VECTORS>(values + i * values_step, known, batch.values[i]);
        }
        const uint32 own = key;
        key += spacing_of_chunks;
        keys += parts * KEYS * keys_step;
        values += parts * KEYS * values_step;
        KeyBatch<T, KEYS> next;
        if (AHEAD) load_chunk(next, position);
        state.add(batch, q, own, spacing, args.lanes, limits);
        if (AHEAD) batch = next;
    }

    // The states of warps, and the rows' results.
    float* sums = reinterpret_cast<float*>(shared);  // a sum for each warp and row
    Share* shares = reinterpret_cast<Share*>(sums + warps * ROWS * features);
    const uint32 begin = first + state.combine_lanes(args.lanes);
    const uint32 kept = ITEMS * args.lanes / WARP;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (lane == 0) shares[warp * ROWS + r] = {state.most[r], state.sum[r]};
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            if ((k == 0 || k < kept) && begin + k < features) {
                sums[(warp * ROWS + r) * features + begin + k] = state.values[r][k];
            }
        }
    }
    put_results<T, ROWS>(args, unit, sums, shares);
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
#define CYRT_ATTENTION(NAME, TYPE)                                         \
    CYRT_ATTENTION_ROWS(NAME, TYPE, 1, ATTENTION_KEYS(sizeof(TYPE)), true) \
    CYRT_ATTENTION_ROWS(NAME##_unaligned, TYPE, 8, 1, false)               \
    CYRT_ATTENTION_KERNEL(NAME##_parts, cyrt::ATTENTION_PARTS, cyrt::combine_attention<TYPE>)
#define CYRT_ATTENTION_OF_ROWS(NAME, TYPE)                                     \
    CYRT_ATTENTION(NAME, TYPE)                                                 \
    CYRT_ATTENTION_ROWS(NAME##_4, TYPE, 4, ATTENTION_KEYS(sizeof(TYPE)), true) \
    CYRT_ATTENTION_ROWS(NAME##_8, TYPE, 8, ATTENTION_KEYS(sizeof(TYPE)), true)
#define CYRT_ATTENTION_TILES(NAME, TYPE, WIDTH)                                    \
    extern "C" __global__ void __launch_bounds__(32 * ATTENTION_TILE_WARPS(WIDTH), \
                                                 ATTENTION_TILE_WAVES(WIDTH))      \
        NAME(const __grid_constant__ cyrt::Attention args) {                       \
        cyrt::attention_by_tiles<TYPE, WIDTH>(args);                               \
    }
#define CYRT_ATTENTION_BY_TILES(NAME, TYPE)     \
    CYRT_ATTENTION(NAME, TYPE)                  \
    CYRT_ATTENTION_TILES(NAME##_64, TYPE, 64)   \
    CYRT_ATTENTION_TILES(NAME##_128, TYPE, 128) \
    CYRT_ATTENTION_TILES(NAME##_256, TYPE, 256)
