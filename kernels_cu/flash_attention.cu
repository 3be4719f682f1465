// Attention of many rows of queries, of 16-bit floats, by tensor cores.
//
// All kernels have parameters FlashAttention.
// CYRT_FLASH_ATTENTION(name, type) makes
//   name, name_wide                  heads of up to 64, up to 128 features
//   name_masked, name_wide_masked    with a mask that is an array
//
// A block takes the rows of queries of one head, and goes through its keys and values in tiles. They
// are in shared memory; the keys of the next tile are on their way while the values of this one are
// multiplied, and these while its keys are. A warp keeps its rows in registers: the queries, and
// their sums of values, scaled by the largest of the logits so far (online softmax). Weights never
// leave the registers: a result of the tensor core lies in them as a factor does. They are rounded to
// the values' type for the product with these; their own sum is that of the float32 numbers.
//
// In mma.m16n8k16 (PTX ISA) a row of queries is a row, a key and a feature of the values a column.
#pragma once

#include "dependency.cuh"
#include "flash_tiles.cuh"
#include "mma.cuh"
#include "strided.cuh"
#include "params/flash_attention.h"

namespace cyrt {

constexpr int KEYS = FLASH_KEYS;

// What a warp works on: `TILES` times 16 rows of queries. Lanes are 8 groups of 4: of a result of the
// tensor core, a lane has rows `group` and group + 8, and the columns 2 * member and the next one.
template <class T, int WIDTH, int TILES> struct Rows {
    const FlashAttention& args;
    const uint32 lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
    const int first;  // row of the warp
    uint32 queries[TILES][WIDTH / 16][4];
    float most[TILES][2], sum[TILES][2];  // a row's; the sum is that of the lane's own columns
    float values[TILES][WIDTH / 8][4] = {};
    float logits[TILES][KEYS / 8][4];  // later the weights

    __device__ Rows(const FlashAttention& args, int first) : args(args), first(first) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            most[t][0] = most[t][1] = -infinity<float>();
            sum[t][0] = sum[t][1] = 0;
        }
    }

    __device__ int row_of(int t, int half) const { return first + 16 * t + 8 * half + group; }

    // How many of the keys a row sees; none if not above 0.
    __device__ int seen_by(int row) const {
        if (!(args.flags & ATTENTION_CAUSAL)) return args.keys;
        return min(row + 1 - args.rows, 0) + args.keys;
    }
    // How many the warp sees.
    __device__ int seen() const {
        return first < args.rows ? seen_by(min(first + 16 * TILES, args.rows) - 1) : 0;
    }

    __device__ void take_queries(const T* q) {
        const uint32 sign = args.flags & ATTENTION_NEGATE ? 0x80008000 : 0;
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = row_of(t, i % 2);
                const T* from = q + row * args.q_step.row;
#pragma unroll
                for (int k = 0; k < WIDTH / 16; ++k) {
                    queries[t][k][i] = load_pair(from, 16 * k + i / 2 * 8 + 2 * member,
                                                 row < args.rows ? args.features : 0) ^
                                       sign;
                }
            }
        }
    }

    __device__ void multiply_keys(const Tile<T, KEYS, WIDTH>& keys) {
        memset(logits, 0, sizeof(logits));
        const uint32 key = lane / 16 * 8 + lane % 8, feature = lane / 8 % 2 * 8;
#pragma unroll
        for (int k = 0; k < WIDTH / 16; ++k) {
#pragma unroll
            for (int j = 0; j < KEYS / 16; ++j) {
                uint32 matrix[4];
                load_matrices<false>(matrix, &keys.item[16 * j + key][16 * k + feature]);
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
                    const uint32(&q)[4] = queries[t][k];
                    multiply_tiles<T>(logits[t][2 * j], q[0], q[1], q[2], q[3], matrix[0],
                                      matrix[1]);
                    multiply_tiles<T>(logits[t][2 * j + 1], q[0], q[1], q[2], q[3], matrix[2],
                                      matrix[3]);
                }
            }
        }
    }

    // Calls function(logit, row, key) for every logit of the tile that begins at a key.
    template <class Function> __device__ void for_logits(int key, Function function) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n) {
                    function(logits[t][n][i], row_of(t, i / 2),
                             key + 8 * n + 2 * int(member) + i % 2);
                }
            }
        }
    }

    // Some rows do not see some keys of the tile that begins at a key.
    __device__ void hide_keys(int key) {
        for_logits(key, [&](float& logit, int row, int column) {
            if (column >= seen_by(row)) logit = -infinity<float>();
        });
    }

    // Logits, scaled, by a mask of elements M.
    template <class M, class Function>
    __device__ void apply_mask(const M* mask, int key, Function function) {
        for_logits(key, [&](float& logit, int row, int column) {
            const bool known = row < args.rows && column < args.keys;
            const M* at = mask + row * args.mask_step.row + column * args.mask_key_step;
            logit = known ? function(logit * args.scale, widen(*at)) : -infinity<float>();
        });
    }
    __device__ void apply_mask(uint32 batch, uint32 head, int key) {
        const int64 offset = batch * args.mask_step.batch + head * args.mask_step.head;
        const auto add = [](float logit, float bias) {
            // The lowest number of a type is no infinity: of a row of them all keys count.
            const float scaled = bias * float(LOG2_E);
            return logit + (isinf(scaled) ? bias : scaled);
        };
        if (args.mask_type == FLASH_MASK_BOOL) {
            apply_mask(global<boolean>(args.mask) + offset, key, [](float logit, bool counts) {
                return counts ? logit : -infinity<float>();
            });
        } else if (args.mask_type == FLASH_MASK_OWN) {
            apply_mask(global<T>(args.mask) + offset, key, add);
        } else {
            apply_mask(global<float>(args.mask) + offset, key, add);
        }
    }

    // Makes weights of the logits, which are those of powers of 2 when multiplied with the scale.
    __device__ void weigh(float scale) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float before = most[t][half];
                float joint = before;
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n) {
                    joint =
                        ::fmaxf(joint, ::fmaxf(logits[t][n][2 * half], logits[t][n][2 * half + 1]));
                }
                joint = ::fmaxf(joint, __shfl_xor_sync(0xffffffffu, joint, 1));
                joint = ::fmaxf(joint, __shfl_xor_sync(0xffffffffu, joint, 2));
                most[t][half] = joint;
                const float base = joint == -infinity<float>() ? 0 : joint * scale;
                const float factor = power_of_two(::fmaf(before, scale, -base));
                sum[t][half] *= factor;
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
                    for (int i = 2 * half; i < 2 * half + 2; ++i) {
                        const float weight = power_of_two(::fmaf(logits[t][n][i], scale, -base));
                        logits[t][n][i] = weight;
                        sum[t][half] += weight;
                    }
                }
#pragma unroll
                for (int n = 0; n < WIDTH / 8; ++n) {
                    values[t][n][2 * half] *= factor;
                    values[t][n][2 * half + 1] *= factor;
                }
            }
        }
    }

    __device__ void multiply_values(const Tile<T, KEYS, WIDTH>& tile) {
#pragma unroll
        for (int k = 0; k < KEYS / 16; ++k) {
            uint32 weights[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float* two = &logits[t][2 * k + i / 2][i % 2 * 2];
                    weights[t][i] = pack<T>(two[0], two[1]);
                }
            }
#pragma unroll
            for (int n = 0; n < WIDTH / 16; ++n) {
                uint32 matrix[4];
                load_matrices<true>(matrix, &tile.item[16 * k + lane % 16][16 * n + lane / 16 * 8]);
#pragma unroll
                for (int t = 0; t < TILES; ++t) {
                    const uint32(&w)[4] = weights[t];
                    multiply_tiles<T>(values[t][2 * n], w[0], w[1], w[2], w[3], matrix[0],
                                      matrix[1]);
                    multiply_tiles<T>(values[t][2 * n + 1], w[0], w[1], w[2], w[3], matrix[2],
                                      matrix[3]);
                }
            }
        }
    }

    __device__ void put(T* out, uint32 head, float scale) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float all = sum[t][half];
                all += __shfl_xor_sync(0xffffffffu, all, 1);
                all += __shfl_xor_sync(0xffffffffu, all, 2);
                const int row = row_of(t, half);
                if (row >= args.rows) continue;
                const float factor = factor_of<T>(args, head, {most[t][half] * scale, all});
                T* to = out + int64(row) * args.features;
#pragma unroll
                for (int n = 0; n < WIDTH / 8; ++n) {
                    const uint32 feature = 8 * n + 2 * member;
                    store_pair(to, feature, args.features, values[t][n][2 * half] * factor,
                               values[t][n][2 * half + 1] * factor);
                }
            }
        }
    }
};

template <class T, int WIDTH, int TILES, bool MASKED>
__device__ inline void flash_attention(const FlashAttention& args) {
    constexpr int THREADS = FLASH_ROWS / (16 * TILES) * 32;
    __shared__ Tile<T, KEYS, WIDTH> keys, values;
    wait_for_dependencies(args);
    launch_dependents();
    // The last rows of a head come first: of a causal mask, they take the longest.
    const uint32 unit = divide(blockIdx.x, args.tiles);
    const uint32 tile = (unit + 1) * args.tiles.size - 1 - blockIdx.x;
    const uint32 batch = divide(unit, args.heads), head = unit - batch * args.heads.size;
    const uint32 shared_head = divide(head, args.group);
    const T* q = global<T>(args.q) + batch * args.q_step.batch + head * args.q_step.head;
    const T* k = global<T>(args.k) + batch * args.k_step.batch + shared_head * args.k_step.head;
    const T* v = global<T>(args.v) + batch * args.v_step.batch + shared_head * args.v_step.head;

    const int first = tile * FLASH_ROWS;
    Rows<T, WIDTH, TILES> rows(args, first + threadIdx.x / 32 * (16 * TILES));
    const int seen = rows.seen(), end = rows.seen_by(min(first + FLASH_ROWS, args.rows) - 1);
    const float scale = MASKED ? 1 : args.scale;  // a mask is applied to scaled logits
    const auto fetch_keys = [&](int key) {
        if (key < end) {
            fetch_tile<THREADS>(keys, k, args.k_step.row, key, args.keys, args.features);
        }
    };
    fetch_keys(0);
    rows.take_queries(q);
#pragma unroll 1
    for (int key = 0; key < end; key += KEYS) {
        await_tile();
        fetch_tile<THREADS>(values, v, args.v_step.row, key, args.keys, args.features);
        if (key < seen) rows.multiply_keys(keys);
        await_tile();
        fetch_keys(key + KEYS);
        if (key < seen) {
            if (MASKED) {
                rows.apply_mask(batch, head, key);
            } else if (key + KEYS > rows.seen_by(rows.first)) {
                rows.hide_keys(key);
            }
            rows.weigh(scale);
            rows.multiply_values(values);
        }
    }
    rows.put(global<T>(args.out) + int64(unit) * args.rows * args.features, head, scale);
}

}  // namespace cyrt

#define CYRT_FLASH_ATTENTION_KERNEL(NAME, TYPE, WIDTH, TILES, MASKED)            \
    extern "C" __global__ void __launch_bounds__(cyrt::FLASH_ROWS / (TILES) * 2) \
        NAME(const __grid_constant__ cyrt::FlashAttention args) {                \
        cyrt::flash_attention<TYPE, WIDTH, TILES, MASKED>(args);                 \
    }
#define CYRT_FLASH_ATTENTION(NAME, TYPE)                                          \
    CYRT_FLASH_ATTENTION_KERNEL(NAME, TYPE, cyrt::FLASH_NARROW, 2, false)         \
    CYRT_FLASH_ATTENTION_KERNEL(NAME##_wide, TYPE, cyrt::FLASH_WIDE, 1, false)    \
    CYRT_FLASH_ATTENTION_KERNEL(NAME##_masked, TYPE, cyrt::FLASH_NARROW, 2, true) \
    CYRT_FLASH_ATTENTION_KERNEL(NAME##_wide_masked, TYPE, cyrt::FLASH_WIDE, 1, true)
