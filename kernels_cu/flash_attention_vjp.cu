// Gradients of attention of many rows of queries, of 16-bit floats, by tensor cores.
//
// All kernels have parameters FlashAttentionVjp.
// CYRT_FLASH_ATTENTION_VJP(name, type) makes
//   name, name_wide             gradients of queries, of heads of up to 64, up to 128 features
//   name_keys, name_wide_keys   gradients of keys and values, from what the first kernel leaves
//
// With weights w = softmax(scale * q @ k.mT) and slopes s = g @ v.mT, which are the weights'
// gradients, those of the products q @ k.mT are scale * w * (s - m), where m is a row's sum of
// w * s. Neither weights nor slopes are ever in memory: they are computed from tiles again.
//
// The first kernel's block takes rows of queries of one head, and goes through the keys twice: for the
// logarithm of each row's sum of powers and for m, which it stores; then for the gradients of the
// queries. The second kernel's block takes keys of one head of keys, and goes through the rows of
// queries that see them, of all heads that share the keys. So every result has one block, which adds
// in one order. Tiles are in shared memory, two at a time: one is on its way while the other is
// multiplied. Weights and gradients of products never leave the registers: a result of the tensor core
// lies in them as a factor does. They are rounded to the operands' type for the products with these.
#pragma once

#include "dependency.cuh"
#include "flash_tiles.cuh"
#include "mma.cuh"
#include "strided.cuh"
#include "params/flash_attention_vjp.h"

namespace cyrt {

// The logarithm, to base 2, of a row's sum of powers, and its weighted mean of slopes. Of a row that
// sees no key, or is beyond the last one, the logarithm is infinity: all its weights are 0.
struct alignas(8) QuerySums {
    float logarithm, mean;
};

template <int WIDTH> constexpr int TILE_ROWS = WIDTH <= FLASH_VJP_NARROW ? 64 : 32;
template <int TILES> constexpr int THREADS_OF = FLASH_VJP_ROWS / (16 * TILES) * 32;

// How many keys a row of queries sees; none if not above 0.
__device__ inline int seen_by(const FlashAttentionVjp& args, int row) {
    if (!(args.flags & ATTENTION_CAUSAL)) return args.keys;
    return min(row + 1 - args.rows, 0) + args.keys;
}

// A warp's rows are `TILES` times 16. Lanes are 8 groups of 4: of a result of the tensor core, a lane has
// the rows `group` and group + 8, and the columns 2 * member and the next one.
template <int TILES> struct WarpRows {
    const uint32 lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int first;  // row of the warp

    __device__ WarpRows(int block) : first(block + threadIdx.x / 32 * (16 * TILES)) {}

    __device__ int row_of(int t, int half) const { return first + 16 * t + 8 * half + group; }
};

// The warp's rows as factors.
template <class T, int TILES, int WIDTH>
__device__ inline void load_rows(uint32 (&rows)[TILES][WIDTH / 16][4], const WarpRows<TILES>& lane,
                                 const T* from, int64 step, int count, uint32 features,
                                 uint32 sign = 0) {
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = lane.row_of(t, i % 2);
#pragma unroll
            for (int k = 0; k < WIDTH / 16; ++k) {
                rows[t][k][i] = load_pair(from + row * step, 16 * k + i / 2 * 8 + 2 * lane.member,
                                          row < count ? features : 0) ^
                                sign;
            }
        }
    }
}

// Multiplies the warp's rows by those of a tile from `first` on, over the features.
template <class T, int TILES, int COLUMNS, int ROWS, int WIDTH>
__device__ inline void multiply_rows(float (&sums)[TILES][COLUMNS / 8][4],
                                     const uint32 (&rows)[TILES][WIDTH / 16][4],
                                     const Tile<T, ROWS, WIDTH>& tile, int first) {
    memset(sums, 0, sizeof(sums));
    const uint32 lane = threadIdx.x % 32;
    const uint32 row = lane / 16 * 8 + lane % 8, feature = lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < WIDTH / 16; ++k) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 16; ++j) {
            uint32 matrix[4];
            load_matrices<false>(matrix, &tile.item[first + 16 * j + row][16 * k + feature]);
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const uint32(&a)[4] = rows[t][k];
                multiply_tiles<T>(sums[t][2 * j], a[0], a[1], a[2], a[3], matrix[0], matrix[1]);
                multiply_tiles<T>(sums[t][2 * j + 1], a[0], a[1], a[2], a[3], matrix[2], matrix[3]);
            }
        }
    }
}

// Adds the products of factors, which are rounded, with the rows of a tile from `first` on.
template <class T, int TILES, int COLUMNS, int ROWS, int WIDTH>
__device__ inline void add_products(float (&sums)[TILES][WIDTH / 8][4],
                                    const float (&factors)[TILES][COLUMNS / 8][4],
                                    const Tile<T, ROWS, WIDTH>& tile, int first) {
    const uint32 lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < COLUMNS / 16; ++k) {
        uint32 rounded[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* two = &factors[t][2 * k + i / 2][i % 2 * 2];
                rounded[t][i] = pack<T>(two[0], two[1]);
            }
        }
#pragma unroll
        for (int n = 0; n < WIDTH / 16; ++n) {
            uint32 matrix[4];
            load_matrices<true>(matrix,
                                &tile.item[first + 16 * k + lane % 16][16 * n + lane / 16 * 8]);
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const uint32(&a)[4] = rounded[t];
                multiply_tiles<T>(sums[t][2 * n], a[0], a[1], a[2], a[3], matrix[0], matrix[1]);
                multiply_tiles<T>(sums[t][2 * n + 1], a[0], a[1], a[2], a[3], matrix[2], matrix[3]);
            }
        }
    }
}

// Stores the warp's rows to an array of contiguous rows.
template <class T, int TILES, int COUNT>
__device__ inline void store_rows(T* to, const WarpRows<TILES>& lane, int count, uint32 features,
                                  const float (&sums)[TILES][COUNT][4], float factor) {
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = lane.row_of(t, half);
            if (row >= count) continue;
#pragma unroll
            for (int n = 0; n < COUNT; ++n) {
                store_pair(to + int64(row) * features, 8 * n + 2 * lane.member, features,
                           sums[t][n][2 * half] * factor, sums[t][n][2 * half + 1] * factor);
            }
        }
    }
}

// -- gradients of queries -------------------------------------------------------------------------

// The sums of a row over the keys that a lane has met, which are its own columns.
struct LaneSums {
    float most = -infinity<float>(), sum = 0, slopes = 0;

    __device__ float base_of(float most, float scale) const {
        return most == -infinity<float>() ? 0 : most * scale;
    }
    // Has the powers count from a number that is not below the largest product.
    __device__ void count_from(float joint, float scale) {
        const float factor = power_of_two(::fmaf(most, scale, -base_of(joint, scale)));
        sum *= factor;
        slopes *= factor;
        most = joint;
    }
    // Combines the sums of the four lanes of a row.
    __device__ QuerySums combined(float scale) {
        float joint = ::fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        joint = ::fmaxf(joint, __shfl_xor_sync(0xffffffffu, joint, 2));
        count_from(joint, scale);
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        slopes += __shfl_xor_sync(0xffffffffu, slopes, 1);
        slopes += __shfl_xor_sync(0xffffffffu, slopes, 2);
        if (sum == 0) return {infinity<float>(), 0};
        return {base_of(joint, scale) + ::log2f(sum), slopes / sum};
    }
};

// The work of a block: rows of queries of one head.
template <class T, int WIDTH, int TILES> struct QueryRows {
    static constexpr int THREADS = THREADS_OF<TILES>, KEYS = TILE_ROWS<WIDTH>, COLUMNS = 32;
    using KeyTile = Tile<T, KEYS, WIDTH>;
    const FlashAttentionVjp& args;
    KeyTile (&keys)[2], (&values)[2];  // tiles in shared memory
    const T *k, *v;
    const WarpRows<TILES> lane;
    int buffer = 0, end, seen, seen_by_first;  // keys that the block sees, the warp, its first row
    uint32 queries[TILES][WIDTH / 16][4], gradients[TILES][WIDTH / 16][4];
    float logits[TILES][COLUMNS / 8][4], slopes[TILES][COLUMNS / 8][4];

    __device__ QueryRows(const FlashAttentionVjp& args, KeyTile (&keys)[2], KeyTile (&values)[2],
                         int block, uint32 batch, uint32 head)
        : args(args), keys(keys), values(values), lane(block) {
        const uint32 shared_head = divide(head, args.group);
        const T* q = global<T>(args.q) + batch * args.q_step.batch + head * args.q_step.head;
        const T* g = global<T>(args.g) + batch * args.g_step.batch + head * args.g_step.head;
        k = global<T>(args.k) + batch * args.k_step.batch + shared_head * args.k_step.head;
        v = global<T>(args.v) + batch * args.v_step.batch + shared_head * args.v_step.head;
        const int last = min(lane.first + 16 * TILES, args.rows) - 1;
        end = seen_by(args, min(block + FLASH_VJP_ROWS, args.rows) - 1);
        seen = lane.first < args.rows ? seen_by(args, last) : 0;
        seen_by_first = seen_by(args, lane.first);
        if (end > 0) fetch(0, 0);
        load_rows<T, TILES, WIDTH>(queries, lane, q, args.q_step.row, args.rows, args.features,
                                   args.flags & ATTENTION_NEGATE ? 0x80008000 : 0);
        load_rows<T, TILES, WIDTH>(gradients, lane, g, args.g_step.row, args.rows, args.features);
    }

    __device__ void fetch(int key, int to) {
        fetch_tile<THREADS>(keys[to], k, args.k_step.row, key, args.keys, args.features);
        fetch_tile<THREADS>(values[to], v, args.v_step.row, key, args.keys, args.features);
    }

    // Some rows do not see some keys from `first` on.
    __device__ void hide_keys(int first) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int most = seen_by(args, lane.row_of(t, i / 2));
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; ++n) {
                    if (first + 8 * n + 2 * int(lane.member) + i % 2 < most) continue;
                    logits[t][n][i] = -infinity<float>();
                    slopes[t][n][i] = 0;
                }
            }
        }
    }

    // Computes logits and slopes of some keys after the others, and calls function(tile of keys, its
    // first row) for each. The first tile is on its way, and again behind the last one if the keys
    // are gone through AGAIN.
    template <bool AGAIN, class Function> __device__ void go_through_keys(Function function) {
#pragma unroll 1
        for (int key = 0; key < end; key += KEYS, buffer ^= 1) {
            await_tile();
            if (key + KEYS < end) {
                fetch(key + KEYS, buffer ^ 1);
            } else if (AGAIN) {
                fetch(0, buffer ^ 1);
            }
#pragma unroll 1
            for (int i = 0; i < KEYS && key + i < seen; i += COLUMNS) {
                multiply_rows<T, TILES, COLUMNS>(logits, queries, keys[buffer], i);
                multiply_rows<T, TILES, COLUMNS>(slopes, gradients, values[buffer], i);
                if (key + i + COLUMNS > seen_by_first) hide_keys(key + i);
                function(keys[buffer], i);
            }
        }
    }

    __device__ void add_to(LaneSums& sums, int t, int half) const {
        float joint = sums.most;
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            joint = ::fmaxf(joint, ::fmaxf(logits[t][n][2 * half], logits[t][n][2 * half + 1]));
        }
        sums.count_from(joint, args.scale);
        const float base = sums.base_of(joint, args.scale);
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                const float weight = power_of_two(::fmaf(logits[t][n][i], args.scale, -base));
                sums.sum += weight;
                sums.slopes = ::fmaf(weight, slopes[t][n][i], sums.slopes);
            }
        }
    }

    __device__ void find_sums(QuerySums (&sums)[TILES][2], QuerySums* to) {
        LaneSums own[TILES][2];
        go_through_keys<true>([&](const KeyTile&, int) {
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                add_to(own[t][0], t, 0);
                add_to(own[t][1], t, 1);
            }
        });
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = lane.row_of(t, half);
                sums[t][half] = own[t][half].combined(args.scale);
                if (row >= args.rows) sums[t][half] = {infinity<float>(), 0};
                if (lane.member == 0) to[row] = sums[t][half];
            }
        }
    }

    __device__ void find_gradients(T* to, const QuerySums (&sums)[TILES][2]) {
        float results[TILES][WIDTH / 8][4] = {};
        go_through_keys<false>([&](const KeyTile& tile, int first) {
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; ++n) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const QuerySums& row = sums[t][i / 2];
                        const float weight =
                            power_of_two(::fmaf(logits[t][n][i], args.scale, -row.logarithm));
                        slopes[t][n][i] = weight * (slopes[t][n][i] - row.mean);
                    }
                }
            }
            add_products<T, TILES, COLUMNS>(results, slopes, tile, first);
        });
        store_rows(to, lane, args.rows, args.features, results, args.factor);
    }
};

template <class T, int WIDTH, int TILES>
__device__ inline void query_gradients(const FlashAttentionVjp& args) {
    using Rows = QueryRows<T, WIDTH, TILES>;
    __shared__ typename Rows::KeyTile keys[2], values[2];
    wait_for_dependencies(args);
    launch_dependents();
    // The last rows of all heads come first: of a causal mask, they take the longest.
    const uint32 block_number = divide(blockIdx.x, args.units);
    const uint32 unit = blockIdx.x - block_number * args.units.size;
    const int block = args.all_rows - FLASH_VJP_ROWS - int(block_number) * FLASH_VJP_ROWS;
    const uint32 batch = divide(unit, args.heads), head = unit - batch * args.heads.size;
    Rows rows(args, keys, values, block, batch, head);
    QuerySums sums[TILES][2];
    rows.find_sums(sums, global<QuerySums>(args.sums) + int64(unit) * args.all_rows);
    rows.find_gradients(global<T>(args.gq) + int64(unit) * args.rows * args.features, sums);
}

// -- gradients of keys and values -----------------------------------------------------------------

template <class T, int WIDTH, int TILES>
__device__ inline void key_gradients(const FlashAttentionVjp& args) {
    constexpr int THREADS = THREADS_OF<TILES>, ROWS = TILE_ROWS<WIDTH>, COLUMNS = 16;
    using RowTile = Tile<T, ROWS, WIDTH>;
    __shared__ RowTile queries[2], gradients[2];
    __shared__ alignas(VECTOR_BYTES) QuerySums sums[2][ROWS];
    wait_for_dependencies(args);
    launch_dependents();
    // The first keys of all heads come first: of a causal mask, most rows see them.
    const uint32 block_number = divide(blockIdx.x, args.units);
    const uint32 unit = blockIdx.x - block_number * args.units.size;
    const int block = block_number * FLASH_VJP_ROWS;
    const uint32 batch = divide(unit, args.heads), head = unit - batch * args.heads.size;
    const T* k = global<T>(args.k) + batch * args.k_step.batch + head * args.k_step.head;
    const T* v = global<T>(args.v) + batch * args.v_step.batch + head * args.v_step.head;
    // Tiles are those of one head of queries after the other, each from the first row that sees a key.
    const bool causal = args.flags & ATTENTION_CAUSAL;
    const int begin = causal ? max(block + args.rows - args.keys, 0) / ROWS * ROWS : 0;
    const int tiles = max(args.rows - begin + ROWS - 1, 0) / ROWS;  // tiles of a head

    const WarpRows<TILES> lane(block);
    uint32 of_queries = head * args.group.size;  // the head of the next tile
    int next = begin;
    const auto fetch = [&](int buffer) {
        const T* q = global<T>(args.q) + batch * args.q_step.batch + of_queries * args.q_step.head;
        const T* g = global<T>(args.g) + batch * args.g_step.batch + of_queries * args.g_step.head;
        fetch_tile<THREADS>(queries[buffer], q, args.q_step.row, next, args.rows, args.features);
        fetch_tile<THREADS>(gradients[buffer], g, args.g_step.row, next, args.rows, args.features);
        constexpr int EACH = VECTOR_BYTES / sizeof(QuerySums);
        if (threadIdx.x < ROWS / EACH) {
            const int first = next + EACH * threadIdx.x;
            const uint32 of_all = batch * args.heads.size * args.group.size + of_queries;
            fetch_vector(&sums[buffer][EACH * threadIdx.x],
                         global<QuerySums>(args.sums) + int64(of_all) * args.all_rows + first,
                         VECTOR_BYTES);
        }
        next += ROWS;
        if (next >= args.rows) next = begin, ++of_queries;
    };
    uint32 left = tiles * args.group.size;
    int row = begin;
    if (left > 0) fetch(0);
    uint32 keys[TILES][WIDTH / 16][4], values[TILES][WIDTH / 16][4];
    load_rows<T, TILES, WIDTH>(keys, lane, k, args.k_step.row, args.keys, args.features,
                               args.flags & ATTENTION_NEGATE ? 0x80008000 : 0);
    load_rows<T, TILES, WIDTH>(values, lane, v, args.v_step.row, args.keys, args.features);
    float of_keys[TILES][WIDTH / 8][4] = {}, of_values[TILES][WIDTH / 8][4] = {};
#pragma unroll 1
    for (int buffer = 0; left > 0; --left, buffer ^= 1) {
        await_tile();
        if (left > 1) fetch(buffer ^ 1);
#pragma unroll 1
        for (int i = 0; i < ROWS; i += COLUMNS) {
            if (seen_by(args, row + i + COLUMNS - 1) <= lane.first) continue;
            float weights[TILES][COLUMNS / 8][4], slopes[TILES][COLUMNS / 8][4];
            multiply_rows<T, TILES, COLUMNS>(weights, keys, queries[buffer], i);
            multiply_rows<T, TILES, COLUMNS>(slopes, values, gradients[buffer], i);
            const bool hides = causal && seen_by(args, row + i) < lane.first + 16 * TILES;
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; ++n) {
                const int column = i + 8 * n + 2 * lane.member;
                const float4 two = *reinterpret_cast<const float4*>(&sums[buffer][column]);
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const float logarithm = j % 2 ? two.z : two.x, mean = j % 2 ? two.w : two.y;
                        const float weight =
                            power_of_two(::fmaf(weights[t][n][j], args.scale, -logarithm));
                        weights[t][n][j] = weight;
                        slopes[t][n][j] = weight * (slopes[t][n][j] - mean);
                    }
                }
                if (!hides) continue;
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        if (lane.row_of(t, j / 2) < seen_by(args, row + column + j % 2)) continue;
                        weights[t][n][j] = slopes[t][n][j] = 0;
                    }
                }
            }
            add_products<T, TILES, COLUMNS>(of_values, weights, gradients[buffer], i);
            add_products<T, TILES, COLUMNS>(of_keys, slopes, queries[buffer], i);
        }
        row += ROWS;
        if (row >= args.rows) row = begin;
    }
    const int64 offset = int64(unit) * args.keys * args.features;
    store_rows(global<T>(args.gk) + offset, lane, args.keys, args.features, of_keys, args.factor);
    store_rows(global<T>(args.gv) + offset, lane, args.keys, args.features, of_values, 1);
}

}  // namespace cyrt

#define CYRT_FLASH_ATTENTION_VJP_KERNEL(NAME, TYPE, WIDTH, TILES, WAVES, OF)     \
    extern "C" __global__ void __launch_bounds__(cyrt::THREADS_OF<TILES>, WAVES) \
        NAME(const __grid_constant__ cyrt::FlashAttentionVjp args) {             \
        cyrt::OF##_gradients<TYPE, WIDTH, TILES>(args);                          \
    }
#define CYRT_FLASH_ATTENTION_VJP(NAME, TYPE)                                              \
    CYRT_FLASH_ATTENTION_VJP_KERNEL(NAME, TYPE, cyrt::FLASH_VJP_NARROW, 2, 2, query)      \
    CYRT_FLASH_ATTENTION_VJP_KERNEL(NAME##_keys, TYPE, cyrt::FLASH_VJP_NARROW, 2, 2, key) \
    CYRT_FLASH_ATTENTION_VJP_KERNEL(NAME##_wide, TYPE, cyrt::FLASH_VJP_WIDE, 1, 1, query) \
    CYRT_FLASH_ATTENTION_VJP_KERNEL(NAME##_wide_keys, TYPE, cyrt::FLASH_VJP_WIDE, 1, 1, key)
