// What a warp multiplies of a skinny product: parts of the matrix, in two layouts, and of the few
// rows. 16-bit floats go to the tensor cores; float32 is multiplied in float32.
#pragma once

#include "memory.cuh"
#include "mma.cuh"
#include "product.cuh"
#include "reduce.cuh"
#include "params/matmul.h"

namespace cyrt {

// K elements in their type in memory. They cross branches in this form, because elements of 16 bits
// would take a register each.
template <class T, int K> struct Fragment {
    static constexpr int WORDS = K * sizeof(T) / sizeof(uint32);
    uint32 word[WORDS];

    __device__ static Fragment take(const void* shared) {
        using Vector = typename Word<K * sizeof(T)>::type;
        Vector vector = *static_cast<const Vector*>(shared);
        Fragment fragment;
        memcpy(&fragment, &vector, sizeof(vector));
        return fragment;
    }
    // Returns zeros if `there` is false.
    __device__ static Fragment load(const T* from, bool there) {
        using Vector = typename Word<K * sizeof(T)>::type;
        Vector vector = there ? *reinterpret_cast<const Vector*>(global<T>(from)) : Vector{};
        Fragment fragment;
        memcpy(&fragment, &vector, sizeof(vector));
        return fragment;
    }
    __device__ void widen_to(float (&wide)[K]) const {
        Items<T, K> items;
        memcpy(&items, word, sizeof(word));
#pragma unroll
        for (int i = 0; i < K; ++i) wide[i] = widen(items.item[i]);
    }
    __device__ static Fragment narrow(const float (&wide)[K]) {
        Items<T, K> items;
        Fragment fragment;
#pragma unroll
        for (int i = 0; i < K; ++i) items.item[i] = cast<T>(wide[i]);
        memcpy(fragment.word, &items, sizeof(fragment.word));
        return fragment;
    }
};

// The sum over a block's warps, each of which has `spacing` of them.
__device__ inline float sum_warps(const float* sums, uint32 spacing) {
    float sum = sums[0];
#pragma unroll 4
    for (uint32 warp = 1; warp < blockDim.y; ++warp) sum += sums[warp * spacing];
    return sum;
}

// Lanes are groups of MEMBERS, which share out the summed dimension. A group has two rows of a tile of
// the matrix, and with eight of the few rows 16 sums, of which each member ends with VALUES. Those of
// 4 members are as in the result of mma.m16n8k16 (PTX ISA): first of both the few rows 2 * member and
// the next one the sums of the matrix's first row, then those of its second one.
template <int MEMBERS_> struct Lanes {
    static constexpr int MEMBERS = MEMBERS_, VALUES = 16 / MEMBERS;
    uint32 group = threadIdx.x / MEMBERS, member = threadIdx.x % MEMBERS;

    // The few row, of eight, and the matrix's row, of two, whose sum is value i.
    __device__ uint32 column_of(uint32 i) const {
        uint32 at = VALUES * member + i;
        return at / 4 * 2 + at % 2;
    }
    __device__ uint32 half_of(uint32 i) const { return (VALUES * member + i) / 2 % 2; }
};
using Lane = Lanes<4>;

// The few rows. NORMED: they are multiplied by a weight, and by the factors of their normalisation.
template <class T, bool NORMED> struct FewRows {
    const T* first;
    int64 step;
    uint32 count;
    const T* weight;
    const float* factors;

    // A row's elements from `at` on. Of rows that there are not, those of the first one: their sums
    // are not used, and no lane takes a way of its own.
    template <int K> __device__ Fragment<T, K> load(uint32 row, uint32 at, bool there) const {
        if (row >= count) row = 0;
        auto elements = Fragment<T, K>::load(first + row * step + at, there);
        if (NORMED) {
            float wide[K], weights[K], factor = factors[row];
            elements.widen_to(wide);
            Fragment<T, K>::load(weight + at, there).widen_to(weights);
#pragma unroll
            for (int i = 0; i < K; ++i) wide[i] = wide[i] * factor * weights[i];
            elements = Fragment<T, K>::narrow(wide);
        }
        return elements;
    }
};

// Eight of the few rows, at K indices of the summed dimension a lane. Tensor cores take elements of
// it in any order if both factors come in the same one, and each lane those of one row.
template <class T, int K, class Lane = Lane> struct Eight {
    using Sums = float[4];
    Fragment<T, K> row;

    template <class Few>
    __device__ void load(const Few& few, const Lane& lane, uint32 eight, uint32 at, bool there) {
        row = few.template load<K>(8 * eight + lane.group, at, there);
    }
    __device__ static void finish(const Sums& sums, const Lane&, float (&whole)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) whole[i] = sums[i];
    }
};

// A lane multiplies all eight of float32.
template <int K, class Lane> struct Eight<float32, K, Lane> {
    using Sums = float[2][8];
    Fragment<float32, K> row[8];

    template <class Few>
    __device__ void load(const Few& few, const Lane&, uint32 eight, uint32 at, bool there) {
#pragma unroll
        for (int i = 0; i < 8; ++i) row[i] = few.template load<K>(8 * eight + i, at, there);
    }
    // Adds the products of two rows of the matrix at one index.
    __device__ void multiply(Sums& sums, int index, uint32 low, uint32 high) const {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float x = __uint_as_float(row[i].word[index]);
            multiply_add(sums[0][i], __uint_as_float(low), x);
            multiply_add(sums[1][i], __uint_as_float(high), x);
        }
    }
    // Adds the sums of a group's lanes: half of them change hands, then half of those, and so on.
    __device__ static void finish(const Sums& sums, const Lane& lane,
                                  float (&whole)[Lane::VALUES]) {
        float value[16];
#pragma unroll
        for (int at = 0; at < 16; ++at) value[at] = sums[at / 2 % 2][at / 4 * 2 + at % 2];
#pragma unroll
        for (int count = 8, lanes = Lane::MEMBERS / 2; lanes; count /= 2, lanes /= 2) {
#pragma unroll
            for (int i = 0; i < count; ++i) {
                value[i] = add_across(value[i], value[i + count], lane.member & lanes, lanes);
            }
        }
#pragma unroll
        for (int i = 0; i < Lane::VALUES; ++i) whole[i] = value[i];
    }
};

// TILES times 16 rows of the matrix, which are along the summed dimension. A lane takes 16 bytes of
// the rows `group` and group + 8 of each; those of gates take a gate and the row that it gates.
template <class T, int TILES_> struct AlongSum {
    static constexpr int TILES = TILES_, ROWS = ALONG_ROWS * TILES, STEP = ALONG_STEP / sizeof(T);
    static constexpr int K = VECTOR_BYTES / sizeof(T);
    using Lane = cyrt::Lane;
    using Few = Eight<T, K>;
    Fragment<T, K> half[TILES][2];

    struct Rows {
        const T* first[TILES][2];
        bool there[TILES][2];
        Lane lane;

        __device__ Rows() {}
        __device__ Rows(const T* matrix, const Skinny& args, uint32 row, bool gated) {
            uint32 between = gated ? args.wide : 8, kept = gated ? 8 : 16;
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    uint32 upper = row + tile * kept + lane.group, at = upper + i * between;
                    first[tile][i] = matrix + at * args.wide_step + K * lane.member;
                    there[tile][i] = (gated ? upper : at) < args.wide;
                }
            }
        }
    };
    __device__ void load(const Rows& rows, uint32 k, uint32 end) {
        bool inside = k + K * rows.lane.member < end;
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                half[tile][i] =
                    Fragment<T, K>::load(rows.first[tile][i] + k, inside && rows.there[tile][i]);
            }
        }
    }
    __device__ void multiply(typename Few::Sums (&sums)[TILES], const Few& few) const {
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            const auto &low = half[tile][0].word, &high = half[tile][1].word;
            if constexpr (sizeof(T) == 4) {
#pragma unroll
                for (int i = 0; i < K; ++i) few.multiply(sums[tile], i, low[i], high[i]);
            } else {
#pragma unroll
                for (int i = 0; i < K / 2; i += 2) {
                    multiply_tiles<T>(sums[tile], low[i], high[i], low[i + 1], high[i + 1],
                                      few.row.word[i], few.row.word[i + 1]);
                }
            }
        }
    }
    // The matrix's row of a tile's row, within the block's.
    __device__ static uint32 row_of(uint32 tile, uint32 group, uint32 half) {
        return 16 * tile + 8 * half + group;
    }
};

// ROWS rows of a matrix of float32, neighbours in memory at each index of the summed dimension. A lane
// takes 4 rows at 4 indices.
template <int ROWS_> struct AcrossSum {
    static constexpr int TILES = 2, ROWS = ROWS_, K = 4, STEP = ACROSS_STEP(ROWS);
    using Lane = Lanes<128 / ROWS>;
    using Few = Eight<float32, K, Lane>;
    Fragment<float32, 4> at_index[K];

    struct Rows {
        const float32* first;
        int64 step;
        bool there;
        Lane lane;

        __device__ Rows(const float32* matrix, const Skinny& args, uint32 row, bool)
            : step(args.wide_step) {
            row += 4 * lane.group;
            first = matrix + row + K * lane.member * step;
            there = row < args.wide;
        }
    };
    __device__ void load(const Rows& rows, uint32 k, uint32 end) {
        bool inside = rows.there && k + K * rows.lane.member < end;
#pragma unroll
        for (int i = 0; i < K; ++i) {
            at_index[i] = Fragment<float32, 4>::load(rows.first + (k + i) * rows.step, inside);
        }
    }
    __device__ void multiply(typename Few::Sums (&sums)[TILES], const Few& few) const {
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
            for (int i = 0; i < K; ++i) {
                few.multiply(sums[tile], i, at_index[i].word[2 * tile],
                             at_index[i].word[2 * tile + 1]);
            }
        }
    }
    __device__ static uint32 row_of(uint32 tile, uint32 group, uint32 half) {
        return 4 * group + 2 * tile + half;
    }
};

}  // namespace cyrt
