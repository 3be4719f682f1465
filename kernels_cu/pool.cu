// Pooling of arrays whose channels are last: the greatest element or the mean of windows, and the
// gradients.
//
// A thread takes a vector of neighbouring channels (V elements of 16 bytes together) of one output,
// or one channel where they are not aligned. blockDim.x threads have neighbouring channels,
// blockDim.y have other outputs. Gradients are gathered: an element of the input adds what the
// windows that it is in pass to it, in one order.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "real_math.cuh"
#include "window.cuh"
#include "params/pool.h"

namespace cyrt {

// A sum of any number of elements. After each chunk its part is added to the total, and what the
// rounding of that loses to the next part (Kahan, Further remarks on reducing truncation errors,
// 1965): so errors do not grow with the number of chunks.
template <class C> struct CarriedSum {
    C part = 0, total = 0, excess = 0;

    __device__ void add(C x) { part += x; }
    __device__ void end_chunk() {
        C addend = part - excess, next = total + addend, found = next - total - addend;
        excess = found == found ? found : C(0);  // NaN behind an infinite total
        total = next;
        part = 0;
    }
    __device__ C sum() const { return total + part; }
};

// The greatest element. NaN is greater than all; where there are no elements, minus infinity.
template <class C> struct Greatest {
    C found = -infinity<C>();

    __device__ void add(C x) { found = maximum(found, x); }
    __device__ void end_chunk() {}
    __device__ C result(uint32) const { return found; }
};

// The mean; positions without elements count as zeros.
template <class C> struct WindowMean : CarriedSum<C> {
    __device__ C result(uint32 taps) const { return this->sum() / C(taps); }
};

// The outputs of a thread; `there` is false beyond the end.
template <int V> struct PoolShare {
    uint32 output, channel;
    bool there;

    __device__ explicit PoolShare(const Pool& args) {
        uint32 block = divide(blockIdx.x, args.chunks);
        uint32 chunk = blockIdx.x - block * args.chunks.size;
        output = block * blockDim.y + threadIdx.y;
        channel = (chunk * blockDim.x + threadIdx.x) * V;
        there = output < args.outputs && channel < args.channels;
    }
    __device__ int64 offset(const Pool& args) const {
        return int64(output) * args.channels + channel;
    }
};

// Call `use` with each tap of a window that has an element, and its offset.
template <class Use>
__device__ inline void for_taps(const Pool& args, const Origin& origin, uint32 first, uint32 end,
                                Use use) {
#pragma unroll 4
    for (uint32 t = first; t < end; ++t) {
        int64 offset;
        if (find(args.windows, origin, tap_of(args.windows, t), offset)) use(t, offset);
    }
}

// The same for all taps. A thread of one element ends a chunk of its state after POOL_CHUNK taps;
// one of a vector does not, since that takes too many registers. So larger windows are pooled by
// elements. Their gradients are added in vectors all the same, since most of the time goes into
// finding elements, which a vector shares.
template <int V, class State, class Use>
__device__ inline void for_window(const Pool& args, uint32 output, State (&states)[V], Use use) {
    Origin origin = origin_of(args.windows, output);
    if constexpr (V > 1) {
        for_taps(args, origin, 0, args.taps, use);
    } else {
        for (uint32 first = 0; first < args.taps; first += POOL_CHUNK) {
            for_taps(args, origin, first, min(args.taps - first, uint32(POOL_CHUNK)) + first, use);
            states[0].end_chunk();
        }
    }
}

template <class T, int V, template <class> class State>
__device__ inline void pool(const Pool& args) {
    wait_for_dependencies(args);
    launch_dependents();
    PoolShare<V> share(args);
    if (!share.there) return;
    const T* source = global<T>(args.source) + share.channel;
    State<compute_of<T>> states[V];
    for_window(args, share.output, states, [&](uint32, int64 offset) {
        Items<T, V> items = load_vector<V>(source + offset);
#pragma unroll
        for (int v = 0; v < V; ++v) states[v].add(widen(items.item[v]));
    });
    Items<T, V> results;
#pragma unroll
    for (int v = 0; v < V; ++v) results.item[v] = cast<T>(states[v].result(args.taps));
    store_vector<V>(global<T>(args.out) + share.offset(args), results);
}

// The tap of the first of the greatest elements; no tap where there are no elements.
template <class T, int V> __device__ inline void find_greatest(const Pool& args) {
    using C = compute_of<T>;
    constexpr uint32 NONE = 0xffffffff;
    constexpr int WORD = V < 4 ? V : 4;
    wait_for_dependencies(args);
    launch_dependents();
    PoolShare<V> share(args);
    if (!share.there) return;
    const T* source = global<T>(args.source) + share.channel;
    Origin origin = origin_of(args.windows, share.output);
    C greatest[V] = {};
    Items<uint32, V> tap = splat<V>(NONE);
#pragma unroll 1
    for (uint32 t = 0; t < args.taps; ++t) {
        int64 offset;
        if (!find(args.windows, origin, tap_of(args.windows, t), offset)) continue;
        Items<T, V> items = load_vector<V>(source + offset);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            C x = widen(items.item[v]);
            bool greater = x > greatest[v] || (x != x && greatest[v] == greatest[v]);
            if (tap.item[v] == NONE || greater) {
                greatest[v] = x;
                tap.item[v] = t;
            }
        }
    }
    uint32* to = global<uint32>(args.tap) + share.offset(args);
#pragma unroll
    for (int v = 0; v < V; v += WORD) {
        Items<uint32, WORD> word;
#pragma unroll
        for (int w = 0; w < WORD; ++w) word.item[w] = tap.item[v + w];
        store_vector<WORD>(to + v, word);
    }
}

// The source is the result's gradient, and windows run backwards. With GREATEST an output passes its
// gradient to the element at its tap alone.
template <class T, int V, bool GREATEST> __device__ inline void pool_vjp(const Pool& args) {
    using C = compute_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    PoolShare<V> share(args);
    if (!share.there) return;
    const T* source = global<T>(args.source) + share.channel;
    const uint32* taps = global<uint32>(args.tap) + share.channel;
    CarriedSum<C> sums[V];
    for_window(args, share.output, sums, [&](uint32 t, int64 offset) {
        Items<T, V> items = load_vector<V>(source + offset);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (!GREATEST || taps[offset + v] == t) sums[v].add(widen(items.item[v]));
        }
    });
    Items<T, V> results;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        C sum = sums[v].sum();
        results.item[v] = cast<T>(GREATEST ? sum : sum / C(args.taps));
    }
    store_vector<V>(global<T>(args.out) + share.offset(args), results);
}

}  // namespace cyrt

#define CYRT_POOL_KERNEL(NAME, ...)                     \
    extern "C" __global__ void __launch_bounds__(256)   \
        NAME(const __grid_constant__ cyrt::Pool args) { \
        __VA_ARGS__(args);                              \
    }
#define CYRT_POOL(NAME, TYPE, OP)                                            \
    CYRT_POOL_KERNEL(NAME, cyrt::pool<TYPE, cyrt::items_of<TYPE>, cyrt::OP>) \
    CYRT_POOL_KERNEL(NAME##_elements, cyrt::pool<TYPE, 1, cyrt::OP>)
#define CYRT_POOL_VJP(NAME, TYPE, GREATEST)                                      \
    CYRT_POOL_KERNEL(NAME, cyrt::pool_vjp<TYPE, cyrt::items_of<TYPE>, GREATEST>) \
    CYRT_POOL_KERNEL(NAME##_elements, cyrt::pool_vjp<TYPE, 1, GREATEST>)
#define CYRT_POOL_TAPS(NAME, TYPE)                                                 \
    CYRT_POOL_KERNEL(NAME##_taps, cyrt::find_greatest<TYPE, cyrt::items_of<TYPE>>) \
    CYRT_POOL_KERNEL(NAME##_taps_elements, cyrt::find_greatest<TYPE, 1>)
