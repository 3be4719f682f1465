// Convolutions of arrays whose channels are last, and their gradients, as products of matrices.
//
// The source is unfolded into windows while it is copied to tiles in shared memory: no memory holds
// the unfolded matrix. The gradient of the input is the convolution of the result's gradient whose
// windows run backwards, with the weight's channels exchanged; that of the weight is the product of
// the unfolded input and the result's gradient. Padding, and positions between dilated elements, are
// zeros that are multiplied. Sums may be divided into parts, which `sum_parts` adds.
#pragma once

#include "conv_phases.cuh"
#include "conv_tile.cuh"
#include "depthwise.cuh"
#include "depthwise_strip.cuh"
#include "window.cuh"

namespace cyrt {

// What a thread copies of a factor's tiles: vectors `slow`, slow + STEP, ..., which begin at element
// `fast` of what vectors run along. Where elements are not in whole, aligned vectors a thread copies
// every LANES-th element of as many.
template <class T, class Shape, int SIZE, bool ACROSS> struct ConvShare {
    static constexpr int VECTOR = Shape::VECTOR;
    static constexpr int LANES = ACROSS ? SIZE / VECTOR : Shape::LANES;
    static constexpr int STEP = Shape::THREADS / LANES;
    static constexpr int PASSES = SIZE * Shape::LANES / Shape::THREADS;
    uint32 slow = threadIdx.x / LANES, lane = threadIdx.x % LANES, fast = lane * VECTOR;
    uint4 word[PASSES];

    __device__ static uint4 load(const T* from) { return *reinterpret_cast<const uint4*>(from); }

    // The second half of a copy of vectors; of elements the first half is all.
    template <class Tile> __device__ void store(Tile& tile) const {
#pragma unroll
        for (int j = 0; j < PASSES; ++j) {
            uint32 other = slow + j * STEP;
            tile.put_vector(ACROSS ? fast : other, ACROSS ? other : fast, word[j]);
        }
    }
};

// The unfolded source, whose rows are outputs; k counts taps and channels.
template <class T, class Shape>
struct SourceByOutput : ConvShare<T, Shape, Shape::M, false> {
    using Base = ConvShare<T, Shape, Shape::M, false>;
    const T* source;
    Origin origin[Base::PASSES];

    __device__ SourceByOutput(const Conv& args, uint32 group, uint32 first)
        : source(global<T>(args.source) + group * args.channels.size) {
#pragma unroll
        for (int j = 0; j < Base::PASSES; ++j) {
            uint32 row = first + this->slow + j * Base::STEP;
            origin[j] = row < args.rows ? origin_of(args.windows, row) : nowhere();
        }
    }
    template <class Tile>
    __device__ void fetch(const Conv& args, uint32 begin, uint32 end, Tile& tile) {
        int64 offset;
        if (args.flags & CONV_VECTOR_SOURCE) {
            uint32 k = begin + this->fast, tap = divide(k, args.channels);
            Tap at = tap_of(args.windows, tap);
            const T* from = source + (k - tap * args.channels.size);
#pragma unroll
            for (int j = 0; j < Base::PASSES; ++j) {
                bool found = find(args.windows, origin[j], at, offset) && k < end;
                this->word[j] = found ? this->load(from + offset) : uint4{};
            }
            return;
        }
#pragma unroll 1
        for (uint32 i = this->lane; i < Shape::DEPTH; i += Base::LANES) {
            uint32 k = begin + i, tap = divide(k, args.channels);
            Tap at = tap_of(args.windows, tap);
            const T* from = source + (k - tap * args.channels.size);
#pragma unroll
            for (int j = 0; j < Base::PASSES; ++j) {
                bool found = find(args.windows, origin[j], at, offset) && k < end;
                tile.put(this->slow + j * Base::STEP, i, found ? from[offset] : T{});
            }
        }
    }
};

// The unfolded source, whose rows are taps and channels; k counts outputs.
template <class T, class Shape>
struct SourceByTap : ConvShare<T, Shape, Shape::M, true> {
    using Base = ConvShare<T, Shape, Shape::M, true>;
    const T* source;
    uint32 first;

    __device__ SourceByTap(const Conv& args, uint32 group, uint32 first)
        : source(global<T>(args.source) + group * args.channels.size), first(first) {}
    template <class Tile>
    __device__ void fetch(const Conv& args, uint32 begin, uint32 end, Tile& tile) {
        bool vector = args.flags & CONV_VECTOR_SOURCE;
        int64 offset;
#pragma unroll 1
        for (uint32 i = vector ? this->fast : this->lane; i < Shape::M; i += Base::LANES) {
            uint32 row = first + i, tap = divide(row, args.channels);
            Tap at = tap_of(args.windows, tap);
            const T* from = source + (row - tap * args.channels.size);
#pragma unroll
            for (int j = 0; j < Base::PASSES; ++j) {
                uint32 k = begin + this->slow + j * Base::STEP;
                bool found = find(args.windows, origin_of(args.windows, k), at, offset) &&
                             row < args.rows && k < end;
                if (vector) {
                    this->word[j] = found ? this->load(from + offset) : uint4{};
                } else {
                    tile.put(i, this->slow + j * Base::STEP, found ? from[offset] : T{});
                }
            }
            if (vector) break;
        }
    }
};

// Where an element of the other factor lies, without its part along vectors.
struct WeightByResult {  // vectors run along k, taps and channels, in one row of the weight
    static constexpr bool ACROSS = false;
    __device__ static int64 offset(const Conv& args, uint32 column) {
        return column * args.other_step;
    }
};
struct WeightByChannel {  // k, tap, result: vectors run along channels
    static constexpr bool ACROSS = true;
    __device__ static int64 offset(const Conv& args, uint32 k) {
        uint32 tap = divide(k, args.channels);
        return (k - tap * args.channels.size) * args.other_step + int64(tap) * args.columns;
    }
};
struct Gradient {  // an output for each k: vectors run along channels
    static constexpr bool ACROSS = true;
    __device__ static int64 offset(const Conv& args, uint32 k) { return k * args.other_step; }
};

template <class T, class Shape, class Layout>
struct Other : ConvShare<T, Shape, Shape::N, Layout::ACROSS> {
    using Base = ConvShare<T, Shape, Shape::N, Layout::ACROSS>;
    const T* other;
    uint32 first;

    __device__ Other(const Conv& args, uint32 group, uint32 first)
        : other(global<T>(args.other) + group * args.other_group), first(first) {}
    template <class Tile>
    __device__ void fetch(const Conv& args, uint32 begin, uint32 end, Tile& tile) {
        constexpr bool ACROSS = Layout::ACROSS;
        uint32 fast_first = ACROSS ? first : begin, fast_limit = ACROSS ? args.columns : end;
        uint32 slow_first = ACROSS ? begin : first, slow_limit = ACROSS ? end : args.columns;
        bool vector = args.flags & CONV_VECTOR_OTHER;
#pragma unroll
        for (int j = 0; j < Base::PASSES; ++j) {
            uint32 slow = this->slow + j * Base::STEP, fast = fast_first + this->fast;
            bool inside = slow_first + slow < slow_limit;
            const T* from = other + (inside ? Layout::offset(args, slow_first + slow) : 0);
            if (vector) {
                this->word[j] = inside && fast < fast_limit ? this->load(from + fast) : uint4{};
            } else {
#pragma unroll 1
                for (uint32 i = this->lane; i < (ACROSS ? Shape::N : Shape::DEPTH);
                     i += Base::LANES) {
                    fast = fast_first + i;
                    tile.put(ACROSS ? i : slow, ACROSS ? slow : i,
                             inside && fast < fast_limit ? from[fast] : T{});
                }
            }
        }
    }
};

template <class T, class Shape, class A, class B, class Multiplier>
__device__ inline void multiply(const Conv& args) {
    using C = compute_of<T>;
    constexpr int N = Shape::N, ITEMS = items_of<T>;
    // The tiles' memory takes the sums in the end, so that vectors of results are stored.
    __shared__ union Shared {
        struct {
            typename Multiplier::TileA a[2];
            typename Multiplier::TileB b[2];
        } tile;
        C sums[Shape::M][N + VECTOR_BYTES / sizeof(C)];
    } shared;
    auto& tile_a = shared.tile.a;
    auto& tile_b = shared.tile.b;
    wait_for_dependencies(args);
    launch_dependents();
    uint32 rest = divide(blockIdx.x, args.tiles_n);
    uint32 first_n = (blockIdx.x - rest * args.tiles_n.size) * Shape::N;
    uint32 above = divide(rest, args.tiles_m);
    uint32 first_m = (rest - above * args.tiles_m.size) * Shape::M;
    uint32 part = divide(above, args.groups), group = above - part * args.groups.size;
    uint32 begin = part * args.depth;
    uint32 end = args.length - begin < args.depth ? args.length : begin + args.depth;
    bool vector_a = args.flags & CONV_VECTOR_SOURCE, vector_b = args.flags & CONV_VECTOR_OTHER;
    A a(args, group, first_m);
    B b(args, group, first_n);
    Multiplier sums;

    a.fetch(args, begin, end, tile_a[0]);
    b.fetch(args, begin, end, tile_b[0]);
    if (vector_a) a.store(tile_a[0]);
    if (vector_b) b.store(tile_b[0]);
    __syncthreads();
#pragma unroll 1
    for (uint32 now = 0;; now ^= 1) {
        begin += Shape::DEPTH;
        bool more = begin < end;
        if (more) {
            a.fetch(args, begin, end, tile_a[now ^ 1]);
            b.fetch(args, begin, end, tile_b[now ^ 1]);
        }
        sums.add(tile_a[now], tile_b[now]);
        if (!more) break;
        if (vector_a) a.store(tile_a[now ^ 1]);
        if (vector_b) b.store(tile_b[now ^ 1]);
        __syncthreads();
    }
    __syncthreads();
    sums.put(shared.sums);
    __syncthreads();
#pragma unroll 1
    for (uint32 i = threadIdx.x; i < Shape::M * N / ITEMS; i += Shape::THREADS) {
        uint32 row = i / (N / ITEMS), column = i % (N / ITEMS) * ITEMS;
        Items<C, ITEMS> items;
#pragma unroll
        for (int v = 0; v < ITEMS; ++v) items.item[v] = shared.sums[row][column + v];
        store_sums<T>(args, part, group, first_m + row, first_n + column, items);
    }
}

template <class T, class Shape> __device__ inline void conv(const Conv& args) {
    using Sums = typename Multiplier<T, Shape, false, false>::type;
    multiply<T, Shape, SourceByOutput<T, Shape>, Other<T, Shape, WeightByResult>, Sums>(args);
}
template <class T, class Shape> __device__ inline void conv_input_vjp(const Conv& args) {
    using Sums = typename Multiplier<T, Shape, false, true>::type;
    multiply<T, Shape, SourceByOutput<T, Shape>, Other<T, Shape, WeightByChannel>, Sums>(args);
}
template <class T, class Shape> __device__ inline void conv_weight_vjp(const Conv& args) {
    using Sums = typename Multiplier<T, Shape, true, true>::type;
    multiply<T, Shape, SourceByTap<T, Shape>, Other<T, Shape, Gradient>, Sums>(args);
}

template <class T> using Large = Shape<T, sizeof(T) <= 4 ? 128 : 64, 64, sizeof(T) <= 4 ? 128 : 64>;
template <class T> using Small = Shape<T, 32, 32, 64>;

}  // namespace cyrt

#define CYRT_CONV(NAME, TYPE, KERNEL)                            \
    extern "C" __global__ void __launch_bounds__(128, 3)         \
        NAME(const __grid_constant__ cyrt::Conv args) {          \
        cyrt::KERNEL<TYPE, cyrt::Large<TYPE>>(args);             \
    }                                                            \
    extern "C" __global__ void __launch_bounds__(64)             \
        NAME##_small(const __grid_constant__ cyrt::Conv args) {  \
        cyrt::KERNEL<TYPE, cyrt::Small<TYPE>>(args);             \
    }                                                            \
    extern "C" __global__ void __launch_bounds__(256)            \
        NAME##_sum(const __grid_constant__ cyrt::ConvSum args) { \
        cyrt::sum_parts<TYPE>(args);                             \
    }

#define CYRT_DEPTHWISE(NAME, TYPE, KERNEL)                                   \
    extern "C" __global__ void __launch_bounds__(256)                        \
        NAME##_depthwise(const __grid_constant__ cyrt::Conv args) {          \
        cyrt::KERNEL<TYPE, cyrt::items_of<TYPE>>(args);                      \
    }                                                                        \
    extern "C" __global__ void __launch_bounds__(256)                        \
        NAME##_depthwise_elements(const __grid_constant__ cyrt::Conv args) { \
        cyrt::KERNEL<TYPE, 1>(args);                                         \
    }

// Few enough registers for three blocks on a multiprocessor, or two whose threads take more lines.
#define CYRT_DEPTHWISE_STRIP(NAME, TYPE)                                                           \
    extern "C" __global__ void __launch_bounds__(cyrt::CONV_STRIP_BLOCK, sizeof(TYPE) > 2 ? 2 : 3) \
        NAME##_depthwise_strip(const __grid_constant__ cyrt::Conv args) {                          \
        constexpr bool WIDE = sizeof(TYPE) > 2;                                                    \
        constexpr int MOST = cyrt::CONV_STRIP_ITEMS, ITEMS = cyrt::items_of<TYPE>;                 \
        cyrt::depthwise_strip<TYPE, (ITEMS < MOST ? ITEMS : MOST), cyrt::CONV_STRIP,               \
                              (WIDE ? cyrt::CONV_WIDE_LINES : cyrt::CONV_LINES),                   \
                              cyrt::CONV_STRIP_TAPS, 3, (WIDE ? 128 : ~0u)>(args);                 \
    }
