// What a warp multiplies of a skinny product: parts of the matrix, in two layouts, and of the few
// rows. 16-bit floats go to the tensor cores; float32 is multiplied in float32.
#pragma once

#include "async_copy.cuh"
#include "memory.cuh"
#include "mma.cuh"
#include "reduce.cuh"
#include "params/matmul.h"

namespace cyrt {

// K elements as they lie in memory. What is held over a branch is this: elements of 16 bits would
// take a register each.
template <class T, int K> struct Fragment {
    static constexpr int WORDS = K * sizeof(T) / sizeof(uint32);
    uint32 word[WORDS];

    // Zeros if they are not there.
    __device__ static Fragment load(const T* from, bool there) {
        using Vector = typename Word<K * sizeof(T)>::type;
        Vector vector = there ? *reinterpret_cast<const Vector*>(global<T>(from)) : Vector{};
        Fragment fragment;
        memcpy(&fragment, &vector, sizeof(vector));
        return fragment;
    }
    __device__ static Fragment take(const void* shared) {
        using Vector = typename Word<K * sizeof(T)>::type;
        Vector vector = *static_cast<const Vector*>(shared);
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

// Lanes are 8 groups of 4. As in the result of mma.m16n8k16 (PTX ISA), a lane ends with the sums of
// the matrix's rows `group` and group + 8 of a tile, and of both the few rows 2 * member and the
// next one.
struct Lane {
    uint32 group = threadIdx.x / 4, member = threadIdx.x % 4;
};

// A lane's place among the vectors of a warp, in shared memory.
template <int BYTES> __device__ inline const void* vector_at(const char* first, int i, uint32 lane) {
    return first + (32 * i + lane) * BYTES;
}
template <int BYTES> __device__ inline void* vector_at(char* first, int i, uint32 lane) {
    return first + (32 * i + lane) * BYTES;
}

// Eight of the few rows, at K indices of the summed dimension a lane. Tensor cores take elements of
// it in any order if both factors come in the same one, and each lane those of one row.
template <class T> struct Eight {
    static constexpr int K = VECTOR_BYTES / sizeof(T);
    static constexpr bool SHARED = false;  // a lane reads what it has copied itself
    using Sums = float[4];
    Fragment<T, K> row;

    __device__ void take(const char* vectors, const Lane&) {
        row = Fragment<T, K>::take(vector_at<VECTOR_BYTES>(vectors, 0, threadIdx.x));
    }
    // Multiplies by the weight and the factors of a normalisation.
    __device__ void scale(const float (&weights)[K], const float* factors, const Lane& lane) {
        scale_row(row, weights, factors[lane.group]);
    }
    __device__ static void scale_row(Fragment<T, K>& row, const float (&weights)[K], float factor) {
        float wide[K];
        row.widen_to(wide);
#pragma unroll
        for (int i = 0; i < K; ++i) wide[i] = wide[i] * factor * weights[i];
        row = Fragment<T, K>::narrow(wide);
    }
    __device__ static void finish(const Sums& sums, const Lane&, float (&whole)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) whole[i] = sums[i];
    }
};

// A lane multiplies all eight of float32, and the members of a group share out the summed dimension.
template <> struct Eight<float32> {
    static constexpr int K = VECTOR_BYTES / sizeof(float32);
    static constexpr bool SHARED = true;
    using Sums = float[2][8];
    Fragment<float32, K> row[8];

    __device__ void take(const char* vectors, const Lane& lane) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            row[i] = Fragment<float32, K>::take(
                vector_at<VECTOR_BYTES>(vectors, 0, 4 * i + lane.member));
        }
    }
    __device__ void scale(const float (&weights)[K], const float* factors, const Lane&) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int k = 0; k < K; ++k) {
                row[i].word[k] = __float_as_uint(__uint_as_float(row[i].word[k]) * factors[i] *
                                                 weights[k]);
            }
        }
    }
    // Adds the products of two rows of the matrix at one index.
    __device__ void multiply(Sums& sums, int index, uint32 low, uint32 high) const {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            sums[0][i] += __uint_as_float(low) * __uint_as_float(row[i].word[index]);
            sums[1][i] += __uint_as_float(high) * __uint_as_float(row[i].word[index]);
        }
    }
    // Adds the sums of a group's lanes: half of them change hands, then half of those.
    __device__ static void finish(const Sums& sums, const Lane& lane, float (&whole)[4]) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float four[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                four[i] = add_across(sums[half][i], sums[half][i + 4], lane.member & 2, 2);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                whole[2 * half + i] = add_across(four[i], four[i + 2], lane.member & 1, 1);
            }
        }
    }
};

// TILES times 16 rows of the matrix, which lie along the summed dimension. A lane takes 16 bytes of
// the rows `group` and group + 8 of each; those of gates take a gate and the row that it gates.
template <class T, int TILES_> struct AlongSum {
    static constexpr int TILES = TILES_, K = VECTOR_BYTES / sizeof(T);
    static constexpr bool SHARED = false;
    using Few = Eight<T>;
    Fragment<T, K> half[TILES][2];

    struct Rows {
        const T* first[TILES][2];
        bool there[TILES][2];

        __device__ void locate(const T* matrix, const Skinny& args, uint32 row, bool gated) {
            Lane lane;
            uint32 between = gated ? args.wide : 8, kept = gated ? 8 : 16;
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    uint32 upper = row + tile * kept + lane.group, at = upper + i * between;
                    first[tile][i] = matrix + at * args.wide_step;
                    there[tile][i] = (gated ? upper : at) < args.wide;
                }
            }
        }
        // Copies a step, from k on; what lies beyond the end is zeros.
        __device__ void copy(char* to, uint32 k, uint32 end) const {
            uint32 at = k + K * Lane().member;
#pragma unroll
            for (int i = 0; i < 2 * TILES; ++i) {
                copy_async<VECTOR_BYTES>(vector_at<VECTOR_BYTES>(to, i, threadIdx.x),
                                         first[i / 2][i % 2] + at,
                                         at < end && there[i / 2][i % 2]);
            }
        }
    };
    __device__ void take(const char* vectors) {
#pragma unroll
        for (int i = 0; i < 2 * TILES; ++i) {
            half[i / 2][i % 2] =
                Fragment<T, K>::take(vector_at<VECTOR_BYTES>(vectors, i, threadIdx.x));
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

// TILES times 16 rows of the matrix, neighbours in memory at each index of the summed dimension. The
// 32 indices of a step lie in shared memory in the order in which tensor cores take them, if a lane
// has 8 neighbouring ones of the few rows: place P, of bits 43210, has index 21430. Pieces of 8 rows
// change their places, so that those of 8 indices lie in all banks.
template <class T, int TILES_> struct AcrossSum {
    static constexpr int TILES = TILES_, K = VECTOR_BYTES / sizeof(T), PIECES = 2 * TILES;
    static constexpr bool SHARED = true;
    using Few = Eight<T>;
    uint32 part[2][TILES][4];

    __device__ static uint32 address(uint32 place, uint32 piece) {
        uint32 turn = TILES == 1 ? place / 4 % 2 : place / 2 % 4;
        return (place * PIECES + (piece ^ turn)) * VECTOR_BYTES;
    }

    struct Rows {
        const T* first;
        int64 step;
        bool there;

        __device__ void locate(const T* matrix, const Skinny& args, uint32 row, bool) {
            row += threadIdx.x % PIECES * 8;
            first = matrix + row;
            step = args.wide_step;
            there = row < args.wide;
        }
        __device__ void copy(char* to, uint32 k, uint32 end) const {
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
                uint32 place = (32 * i + threadIdx.x) / PIECES;
                uint32 at = k + place % 2 + place / 2 % 4 * 8 + place / 8 * 2;
                copy_async<VECTOR_BYTES>(to + address(place, threadIdx.x % PIECES),
                                         first + at * step, at < end && there);
            }
        }
    };
    __device__ void take(const char* vectors) {
        uint32 half = threadIdx.x / 8 % 2, later = threadIdx.x / 16;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                uint32 place = 16 * i + 8 * later + threadIdx.x % 8;
                load_matrices<true>(part[i][tile], vectors + address(place, 2 * tile + half));
            }
        }
    }
    __device__ void multiply(typename Few::Sums (&sums)[TILES], const Few& few) const {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                const auto& a = part[i][tile];
                multiply_tiles<T>(sums[tile], a[0], a[1], a[2], a[3], few.row.word[2 * i],
                                  few.row.word[2 * i + 1]);
            }
        }
    }
    __device__ static uint32 row_of(uint32 tile, uint32 group, uint32 half) {
        return 16 * tile + 8 * half + group;
    }
};

// Of float32, a lane takes 2 * TILES neighbours at each of its own K indices.
template <int TILES_> struct AcrossSum<float32, TILES_> {
    static constexpr int TILES = TILES_, K = VECTOR_BYTES / sizeof(float32), OWN = 2 * TILES;
    static constexpr int BYTES = OWN * sizeof(float32);
    static constexpr bool SHARED = false;
    using Few = Eight<float32>;
    Fragment<float32, OWN> at_index[K];

    struct Rows {
        const float32* first;
        int64 step;
        bool there;

        __device__ void locate(const float32* matrix, const Skinny& args, uint32 row, bool) {
            row += OWN * Lane().group;
            first = matrix + row;
            step = args.wide_step;
            there = row < args.wide;
        }
        __device__ void copy(char* to, uint32 k, uint32 end) const {
            uint32 at = k + K * Lane().member;
#pragma unroll
            for (int i = 0; i < K; ++i) {
                copy_async<BYTES>(vector_at<BYTES>(to, i, threadIdx.x), first + (at + i) * step,
                                  at < end && there);
            }
        }
    };
    __device__ void take(const char* vectors) {
#pragma unroll
        for (int i = 0; i < K; ++i) {
            at_index[i] = Fragment<float32, OWN>::take(vector_at<BYTES>(vectors, i, threadIdx.x));
        }
    }
    __device__ void multiply(Few::Sums (&sums)[TILES], const Few& few) const {
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
        return OWN * group + 2 * tile + half;
    }
};

}  // namespace cyrt
