// Random numbers: each is a function of the key and its own index.
//
// A distribution is a struct made of the parameters, with `item`, the type in memory, and
// `draw(bits, key, first, out)`: `values` numbers of one Philox block, of which the first has the
// index `first`. CYRT_RANDOM(name, distribution) makes its kernel.
#pragma once

#include "box_muller.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "philox.cuh"
#include "prefix.cuh"
#include "params/random.h"

namespace cyrt {

__device__ inline double real_word(const Random& args, int i) {
    return __longlong_as_double(args.word[i]);
}

// The random bits of a value in the compute type: 32 for float, 64 for double.
template <class T> struct BitsOf;
template <> struct BitsOf<float> {
    static constexpr int values = 4;
    __device__ static uint32 get(const Bits& bits, int i) { return bits.word[i]; }
};
template <> struct BitsOf<double> {
    static constexpr int values = 2;
    __device__ static uint64 get(const Bits& bits, int i) { return bits.pair(i); }
};

// low + u * span, at most `limit`, the largest number of the type below the upper bound.
template <class T, class Wide> struct Uniform {
    using item = T;
    static constexpr int values = BitsOf<Wide>::values;
    Wide low, step, limit;

    __device__ Uniform(const Random& args)
        : low(real_word(args, 0)), step(Wide(real_word(args, 1)) * UNIT<Wide>),
          limit(real_word(args, 2)) {}
    __device__ void draw(const Bits& bits, uint64, uint64, T* out) const {
#pragma unroll
        for (int i = 0; i < values; ++i) {
            Wide x = ::fma(units(BitsOf<Wide>::get(bits, i)), step, low);
            out[i] = cast<T>(::fmin(x, limit));
        }
    }
};

template <class T, class Wide> struct Normal {
    using item = T;
    static constexpr int values = BitsOf<Wide>::values;
    Wide loc, scale;

    __device__ Normal(const Random& args) : loc(real_word(args, 0)), scale(real_word(args, 1)) {}
    __device__ void draw(const Bits& bits, uint64, uint64, T* out) const {
#pragma unroll
        for (int i = 0; i < values; i += 2) {
            Wide normal[2];
            box_muller(BitsOf<Wide>::get(bits, i), BitsOf<Wide>::get(bits, i + 1), normal);
            out[i] = cast<T>(::fma(normal[0], scale, loc));
            out[i + 1] = cast<T>(::fma(normal[1], scale, loc));
        }
    }
};

// The inverse of the distribution function over the part of it between the bounds, taken from the
// side where it is small and so precise: `sign` is -1 where that is the upper one.
template <class T> struct TruncatedNormal {
    using item = T;
    static constexpr int values = 2;
    double below, between, sign, lower, upper;

    __device__ TruncatedNormal(const Random& args)
        : below(real_word(args, 0)), between(real_word(args, 1)), sign(real_word(args, 2)),
          lower(real_word(args, 3)), upper(real_word(args, 4)) {}
    __device__ void draw(const Bits& bits, uint64, uint64, T* out) const {
#pragma unroll 1
        for (int i = 0; i < values; ++i) {
            double p = ::fma(positive_fraction(bits.pair(i)), between, below);
            double x = sign * ::normcdfinv(p);
            x = x < lower ? lower : x > upper ? upper : x;
            out[i] = cast<T>(x);
        }
    }
};

// The largest of many exponential waits, standardised: its differences choose a category.
template <class T, class Wide> struct Gumbel {
    using item = T;
    static constexpr int values = BitsOf<Wide>::values;

    __device__ Gumbel(const Random&) {}
    __device__ void draw(const Bits& bits, uint64, uint64, T* out) const {
        constexpr Wide most = 1 - Limits<Wide>::epsilon / 2;
#pragma unroll
        for (int i = 0; i < values; ++i) {
            Wide u = positive_fraction(BitsOf<Wide>::get(bits, i));
            out[i] = cast<T>(-::log(-::log1p(-(u < most ? u : most))));
        }
    }
};

// loc plus or minus an exponentially distributed number: the highest bit is the sign.
template <class T, class Wide> struct Laplace {
    using item = T;
    static constexpr int values = BitsOf<Wide>::values;
    Wide loc, scale;

    __device__ Laplace(const Random& args) : loc(real_word(args, 0)), scale(real_word(args, 1)) {}
    __device__ void draw(const Bits& bits, uint64, uint64, T* out) const {
#pragma unroll
        for (int i = 0; i < values; ++i) {
            auto word = BitsOf<Wide>::get(bits, i);
            Wide size = -::log(positive_fraction(decltype(word)(word << 1)));
            out[i] = cast<T>(::fma(word >> (8 * sizeof(word) - 1) ? -size : size, scale, loc));
        }
    }
};

// True where 32 bits are below the threshold, of at most 2^32.
struct Bernoulli {
    using item = boolean;
    static constexpr int values = 4;
    uint64 threshold;

    __device__ Bernoulli(const Random& args) : threshold(args.word[0]) {}
    __device__ void draw(const Bits& bits, uint64, uint64, boolean* out) const {
#pragma unroll
        for (int i = 0; i < values; ++i) out[i] = {uint8(bits.word[i] < threshold)};
    }
};

// Seldom called.
__device__ __noinline__ Bits redraw(uint64 index, uint32 attempt, uint64 key) {
    return philox(index, attempt, REDRAW, key);
}

// low + an integer below `range`, all equally likely (Lemire, "Fast random integer generation in an
// interval", 2019): the upper half of bits * range, drawn again where the lower half is below
// 2^32 mod range.
template <class T> struct Integers {
    using item = T;
    static constexpr int values = 4;
    uint64 low, range;
    uint32 reject;

    __device__ Integers(const Random& args)
        : low(args.word[0]), range(args.word[1]), reject(uint32(args.word[2])) {}
    __device__ void draw(const Bits& bits, uint64 key, uint64 first, T* out) const {
#pragma unroll
        for (int i = 0; i < values; ++i) {
            uint64 product = bits.word[i] * range;
            for (uint32 attempt = 0; uint32(product) < reject; ++attempt) {
                product = redraw(first + i, attempt, key).word[0] * range;
            }
            out[i] = T(low + (product >> 32));
        }
    }
};

// As above with 64 bits, for ranges above 2^32; 0 stands for 2^64.
template <class T> struct WideIntegers {
    using item = T;
    static constexpr int values = 2;
    uint64 low, range, reject;

    __device__ WideIntegers(const Random& args)
        : low(args.word[0]), range(args.word[1]), reject(args.word[2]) {}
    __device__ void draw(const Bits& bits, uint64 key, uint64 first, T* out) const {
#pragma unroll
        for (int i = 0; i < values; ++i) {
            uint64 word = bits.pair(i);
            for (uint32 attempt = 0; word * range < reject; ++attempt) {
                word = redraw(first + i, attempt, key).pair(0);
            }
            out[i] = T(low + (range ? __umul64hi(word, range) : word));
        }
    }
};

// A thread takes as many items as fill a vector, at least 4, and that `steps` times. Where those are
// two vectors, lanes side by side exchange one: a warp then stores vectors side by side. The output
// is aligned to vectors, a block is of whole warps.
template <class Distribution> __device__ inline void random(const Random& args) {
    using T = typename Distribution::item;
    constexpr int V = VECTOR_BYTES / sizeof(T), W = Distribution::values, N = larger(V, 4);
    static_assert(N <= 2 * V, "two vectors at most");
    wait_for_dependencies(args);
    launch_dependents();
    Distribution distribution(args);
    int lane = threadIdx.x % 32;
    bool odd = lane % 2;
    int64 step = int64(blockDim.x) * N;
    int64 first = int64(blockIdx.x) * args.steps * step + threadIdx.x * N;
    T* out = static_cast<T*>(args.out);
    __builtin_assume(__isGlobal(out));
#pragma unroll 1
    for (uint32 left = args.steps; left && first - lane * N < args.n; --left, first += step) {
        Items<T, V> items[N / V];
        T item[N];
#pragma unroll
        for (int i = 0; i < N; i += W) {
            Bits bits = philox(uint64(first + i) / W, 0, DRAW, args.key);
            distribution.draw(bits, args.key, first + i, item + i);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) items[i / V].item[i % V] = item[i];
        int64 from = first, apart = V;
        if (N > V) {
            Items<T, V> other = shuffle_from(odd ? items[0] : items[N / V - 1], lane ^ 1);
            if (odd)
                items[0] = other;
            else
                items[N / V - 1] = other;
            from = odd ? first - N + V : first;
            apart = N;
        }
#pragma unroll
        for (int v = 0; v < N / V; ++v, from += apart) {
            if (from + V <= args.n) {
                store_vector<V>(out + from, items[v]);
            } else {
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    if (from + i < args.n) out[from + i] = items[v].item[i];
                }
            }
        }
    }
}

}  // namespace cyrt

#define CYRT_RANDOM(NAME, ...)                                                   \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Random args) { \
        cyrt::random<__VA_ARGS__>(args);                                         \
    }
