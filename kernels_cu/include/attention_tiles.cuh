// Attention of a few rows of queries of 16-bit floats by tensor cores.
//
// A warp takes 16 or 32 keys at once, and has 8 rows of queries: a row of the tensor core's first factor, whose
// other 8 rows are 0. Keys and values go from global memory into the registers that are the second
// factor. A lane loads whole vectors of their rows, 8 features: so the order in which features, or
// keys, are summed differs from that of the memory, in both factors alike; and the columns of the
// result, the features of the values, are dealt out to the lanes in that order. Lanes are 8 groups of
// 4, as in mma.cuh: a group has a row of queries.
#pragma once

#include "attention_rows.cuh"
#include "mma.cuh"

namespace cyrt {

// Queries in shared memory. The vectors that lanes load at once are in different banks.
template <class T, int WIDTH> struct QueryTile {
    T item[ATTENTION_TILE_ROWS][WIDTH + ATTENTION_TILE_PADDING];
};

// The keys and values that a warp holds, and what it knows of its rows of queries.
template <class T, int WIDTH> class TileState {
    static constexpr int ROWS = ATTENTION_TILE_ROWS, KEYS = ATTENTION_TILE_KEYS(WIDTH);
    const uint32 group = threadIdx.x / 4, member = threadIdx.x % 4;
    const uint32 features;
    uint4 keys[KEYS / 8][WIDTH / 32], values[KEYS / 4][WIDTH / 64];
    float most = -infinity<float>(), sum = 0;  // the sum is that of the lane's own keys
    float out[WIDTH / 8][2] = {};

    __device__ uint32 key_of(int i) const { return 8 * i + group; }
    __device__ uint32 value_of(int i) const { return i / 2 * 8 + 2 * member + i % 2; }
    __device__ uint32 key_feature(int block) const { return 32 * block + 8 * member; }
    __device__ uint32 value_feature(int block) const { return 64 * block + 8 * group; }

    static __device__ uint4 load(const T* from, bool known) {
        return known ? *reinterpret_cast<const uint4*>(from) : uint4{};
    }

  public:
    // A lane's logits, and then weights: of its group's row, and keys 8 * i + 2 * member and the next.
    using Logits = float[KEYS / 8][4];

    __device__ explicit TileState(uint32 features) : features(features) {}

    // Loads the keys before `end`, from `key` on, of rows `step` apart.
    __device__ void load_keys(const T* rows, int64 step, uint32 key, uint32 end) {
#pragma unroll
        for (int i = 0; i < KEYS / 8; ++i) {
            const uint32 at = key + key_of(i);
#pragma unroll
            for (int c = 0; c < WIDTH / 32; ++c) {
                const uint32 feature = key_feature(c);
                keys[i][c] = load(rows + at * step + feature, at < end && feature < features);
            }
        }
    }
    __device__ void load_values(const T* rows, int64 step, uint32 key, uint32 end) {
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i) {
            const uint32 at = key + value_of(i);
#pragma unroll
            for (int c = 0; c < WIDTH / 64; ++c) {
                const uint32 feature = value_feature(c);
                values[i][c] = load(rows + at * step + feature, at < end && feature < features);
            }
        }
    }

    // Takes the keys and values from `position` on from the new ones, and 0 behind them: memory may
    // hold anything there. Writes them to the cache if there is one.
    __device__ void take_new(const Attention& args, uint32 key, uint32 position, const T* new_keys,
                             const T* new_values, T* cached_keys, T* cached_values) {
#pragma unroll
        for (int i = 0; i < KEYS / 8; ++i) {
            const uint32 at = key + key_of(i), t = at - position;
            if (at < position) continue;
#pragma unroll
            for (int c = 0; c < WIDTH / 32; ++c) {
                const uint32 feature = key_feature(c);
                const bool known = t < args.fresh && feature < features;
                keys[i][c] = load(new_keys + t * features + feature, known);
                if (cached_keys == nullptr || !known) continue;
                *reinterpret_cast<uint4*>(cached_keys + at * args.keys_step.row + feature) =
                    keys[i][c];
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i) {
            const uint32 at = key + value_of(i), t = at - position;
            if (at < position) continue;
#pragma unroll
            for (int c = 0; c < WIDTH / 64; ++c) {
                const uint32 feature = value_feature(c);
                const bool known = t < args.fresh && feature < features;
                values[i][c] = load(new_values + t * features + feature, known);
                if (cached_values == nullptr || !known) continue;
                *reinterpret_cast<uint4*>(cached_values + at * args.values_step.row + feature) =
                    values[i][c];
            }
        }
    }

    __device__ void multiply_keys(Logits& logits, const QueryTile<T, WIDTH>& queries) const {
        memset(logits, 0, sizeof(logits));
#pragma unroll
        for (int c = 0; c < WIDTH / 32; ++c) {
            const uint32 feature = key_feature(c);
            const uint4 q = load(&queries.item[group][feature], feature < features);
#pragma unroll
            for (int i = 0; i < KEYS / 8; ++i) {
                const uint4 k = keys[i][c];
                multiply_tiles<T>(logits[i], q.x, 0, q.y, 0, k.x, k.y);
                multiply_tiles<T>(logits[i], q.z, 0, q.w, 0, k.z, k.w);
            }
        }
    }

    // Makes weights of the logits of the keys from `key` on, of which the row sees those before
    // `limit`.
    __device__ void weigh(Logits& logits, float scale, uint32 key, uint32 limit) {
        float joint = most;
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i) {
            float& logit = logits[i / 2][i % 2];
            logit = key + value_of(i) < limit ? logit * scale : -infinity<float>();
            joint = ::fmaxf(joint, logit);
        }
        joint = ::fmaxf(joint, __shfl_xor_sync(0xffffffffu, joint, 1));
        joint = ::fmaxf(joint, __shfl_xor_sync(0xffffffffu, joint, 2));
        const float factor = weight(most, joint);
        most = joint;
        sum *= factor;
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i) {
            float& logit = logits[i / 2][i % 2];
            logit = weight(logit, joint);
            sum += logit;
        }
#pragma unroll
        for (int n = 0; n < WIDTH / 8; ++n) {
            out[n][0] *= factor;
            out[n][1] *= factor;
        }
    }

    __device__ void multiply_values(const Logits& weights) {
#pragma unroll
        for (int s = 0; s < KEYS / 16; ++s) {
            const uint32 low = pack<T>(weights[2 * s][0], weights[2 * s][1]);
            const uint32 high = pack<T>(weights[2 * s + 1][0], weights[2 * s + 1][1]);
#pragma unroll
            for (int c = 0; c < WIDTH / 64; ++c) {
                uint32 word[4][4];
#pragma unroll
                for (int i = 0; i < 4; ++i) memcpy(word[i], &values[4 * s + i][c], 16);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    // The same feature of two keys.
                    const uint32 halves = j % 2 ? 0x7632 : 0x5410;
                    const uint32 first = __byte_perm(word[0][j / 2], word[1][j / 2], halves);
                    const uint32 second = __byte_perm(word[2][j / 2], word[3][j / 2], halves);
                    float (&own)[2] = out[8 * c + j];
                    float sums[4] = {own[0], own[1], 0, 0};
                    multiply_tiles<T>(sums, low, 0, high, 0, first, second);
                    own[0] = sums[0];
                    own[1] = sums[1];
                }
            }
        }
    }

    // Puts the state of the group's row into shared memory.
    __device__ void put(float* sums, Share* shares) {
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const uint32 row = threadIdx.y * ROWS + group;
        if (member == 0) shares[row] = {most, sum};
#pragma unroll
        for (int n = 0; n < WIDTH / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32 feature = n / 8 * 64 + (2 * member + i) * 8 + n % 8;
                if (feature < features) sums[row * features + feature] = out[n][i];
            }
        }
    }
};

// A block's queries and new rows on their way to shared memory. A thread has the same two features of
// every n-th row: a row is no longer than the block.
template <class T, int WIDTH> class Staging {
    static constexpr int ROWS = ATTENTION_TILE_ROWS;
    // Rows that a thread takes at once: all of them, with one new row in a block that is full.
    static constexpr int EACH = (ROWS + 2) * (WIDTH / 2) / (WARP * ATTENTION_TILE_WARPS(WIDTH)) + 1;
    const Attention& args;
    const Unit& unit;
    T* const queries;
    T* const fresh;
    uint32 first, apart, pair, low, high;
    double turns = 0;  // the turns of a position
    T x[EACH], y[EACH];

    __device__ T* address_of(uint32 row) const {
        return row < ROWS ? queries + row * (WIDTH + ATTENTION_TILE_PADDING)
                          : fresh + (row - ROWS) * args.features;
    }

  public:
    __device__ Staging(const Attention& args, const Unit& unit, T* queries, T* fresh)
        : args(args), unit(unit), queries(queries), fresh(fresh) {
        const uint32 thread = threadIdx.y * WARP + threadIdx.x, threads = blockDim.y * WARP;
        first = divide(thread, args.row_pairs);
        pair = thread - first * args.row_pairs.size;
        apart = divide(threads, args.row_pairs);
        if (first >= apart) first = ROWS + 2 * args.fresh;  // the rest of the block
        find_pair(args, pair, low, high);
        if (pair < args.pairs && args.freqs == nullptr) turns = turns_of(args, pair);
    }

    // Loads rows from the begin-th of the block on.
    __device__ void load(uint32 begin) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            uint32 t;
            const T* from = source_of<T, ROWS>(args, unit, begin + first + i * apart, t);
            x[i] = y[i] = T();
            if (from == nullptr) continue;
            x[i] = from[low];
            if (high < args.features) y[i] = from[high];
        }
    }

    // Puts what is loaded, loads and puts the rest, and turns queries and keys.
    __device__ void put(uint32 position) {
        const uint32 rows = ROWS + 2 * args.fresh;
#pragma unroll 1
        for (uint32 begin = 0;;) {
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const uint32 row = begin + first + i * apart;
                if (row >= rows) break;
                T* to = address_of(row);
                to[low] = x[i];
                if (high < args.features) to[high] = y[i];
            }
            begin += EACH * apart;
            if (begin >= rows) break;
            load(begin);
        }
        if (pair >= args.pairs) return;
        if (args.freqs != nullptr) {
            turns = args.turns / divisor_of(args, pair, args.flags & ATTENTION_WIDE_FREQS);
        }
        uint32 before = ~0u;
        decltype(rotation_of(turns)) rotation;
#pragma unroll 1
        for (uint32 row = first; row < ROWS + args.fresh; row += apart) {
            uint32 t;
            source_of<T, ROWS>(args, unit, row, t);
            if (t != before) rotation = rotation_of(turns * double(position + t));
            before = t;
            T* to = address_of(row);
            const float a = widen(to[low]), b = widen(to[high]);
            to[low] = cast<T>(a * rotation.cosine[0] - b * rotation.sine[0]);
            to[high] = cast<T>(a * rotation.sine[0] + b * rotation.cosine[0]);
        }
    }
};

// A block of 32 by y threads. Of shared memory it has first the new keys and values and the queries,
// then the states of its warps.
template <class T, int WIDTH> __device__ inline void attention_by_tiles(const Attention& args) {
    extern __shared__ uint4 shared[];
    constexpr int ROWS = ATTENTION_TILE_ROWS, KEYS = ATTENTION_TILE_KEYS(WIDTH);
    const Unit unit(args);
    const uint32 warps = blockDim.y, features = args.features, parts = args.parts.size;
    const uint32 spacing_of_chunks = parts * args.chunk.size;
    uint32 chunk = unit.part * args.chunk.size;  // its first key
    uint32 key = chunk + threadIdx.y * KEYS;
    T* keys = global<T>(args.keys) + offset_of(args.keys_step, unit.batch, unit.head, 0);
    T* values = global<T>(args.values) + offset_of(args.values_step, unit.batch, unit.head, 0);
    T* new_keys = reinterpret_cast<T*>(shared);
    const T* new_values = new_keys + args.fresh * features;
    auto& queries = *reinterpret_cast<QueryTile<T, WIDTH>*>(
        shared + ATTENTION_NEW_VECTORS(2 * args.fresh * features * sizeof(T)));
    Staging<T, WIDTH> staging(args, unit, queries.item[0], new_keys);
    launch_dependents();  // the next kernel loads its weights meanwhile
    wait_for_dependencies(args);

    Position loaded;
    TileState<T, WIDTH> state(features);
    const auto load_chunk = [&](uint32 end) {
        state.load_keys(keys, args.keys_step.row, key, end);
        state.load_values(values, args.values_step.row, key, end);
    };
    loaded.load(args, unit.batch);
    staging.load(0);
    // As in `attention`: small caches are loaded before it is known how many keys they have.
    if (parts == 1) load_chunk(args.capacity);
    const uint32 position = loaded.value(args), end = position + args.fresh;
    if (parts > 1) {
        if (chunk >= end) return;
        load_chunk(position);
    }
    staging.put(position);
    __syncthreads();

    const uint32 limit = limit_of<ROWS>(args, unit, threadIdx.x / 4, position);
    const bool appends = args.flags & ATTENTION_APPEND && unit.tile == 0;
#pragma unroll 1
    for (; chunk < end; chunk += spacing_of_chunks) {
        if (key + KEYS > position) {
            state.take_new(args, key, position, new_keys, new_values, appends ? keys : nullptr,
                           appends ? values : nullptr);
        }
        typename TileState<T, WIDTH>::Logits logits;
        state.multiply_keys(logits, queries);
        const uint32 next = key + spacing_of_chunks;
        state.load_keys(keys, args.keys_step.row, next, position);
        state.weigh(logits, args.scale, key, limit);
        state.multiply_values(logits);
        state.load_values(values, args.values_step.row, next, position);
        key = next;
    }

    float* sums = reinterpret_cast<float*>(shared);  // a sum for each warp and row
    Share* shares = reinterpret_cast<Share*>(sums + warps * ROWS * features);
    __syncthreads();
    state.put(sums, shares);
    put_results<T, ROWS>(args, unit, sums, shares);
}

}  // namespace cyrt
