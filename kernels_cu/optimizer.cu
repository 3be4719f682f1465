// Steps of optimizers over many tensors in one launch, and the sum of the squares of gradients.
//
// A block steps one tile of one tensor. Numbers that change with the steps (the learning rate, the
// corrections of Adam) are computed from a counter in memory, so that the parameters of a launch
// are those of the last one. Each tile has a counter of its own, since no block knows when others
// have read theirs. CYRT_OPTIMIZER(name, type, rule) makes one kernel, CYRT_SQUARE_SUM(name, type)
// one that stores the sum of the squares of each tile.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "params/optimizer.h"

namespace cyrt {

__device__ inline float exp_minus_1(float x) { return ::expm1f(x); }
__device__ inline double exp_minus_1(double x) { return ::expm1(x); }
__device__ inline float cos_pi(float x) { return ::cospif(x); }
__device__ inline double cos_pi(double x) { return ::cospi(x); }
__device__ inline float power_of_2(float x) { return ::exp2f(x); }
__device__ inline double power_of_2(double x) { return ::exp2(x); }
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }

// What all elements of a tile are stepped by.
template <class C> struct Scalars {
    C scale;          // the factor of the gradient
    C rate;           // the learning rate
    C first, second;  // Adam's factors of m and of the root of v
};

template <class C> __device__ inline C rate_of(const Optimizer& args, int step) {
    if (args.given_rate) return C(*global<float>(args.given_rate));
    C rate = C(args.rate);
    if (step < args.warmup) {
        C start = C(args.start);
        return start + (rate - start) * (C(step) / C(args.warmup));
    }
    if (args.decay == 0) return rate;
    C part = C(step - args.warmup) / C(args.decay), end = C(args.end);
    if (args.flags & OPTIMIZER_EXPONENTIAL) {
        rate *= power_of_2(part * C(args.log2_factor));
        return rate > end ? rate : end;
    }
    if (!(part < C(1))) return end;
    C left = args.flags & OPTIMIZER_LINEAR ? C(1) - part : (C(1) + cos_pi(part)) / C(2);
    return end + (rate - end) * left;
}

// Gradients whose norm is at most max_norm stay. NaN is not: then all of them become NaN.
template <class C> __device__ inline C scale_of(const Optimizer& args) {
    if (!args.squares) return C(1);
    C norm = root(C(*global<double>(args.squares)));
    return norm <= C(args.max_norm) ? C(1) : C(args.max_norm) / norm;
}

// A gradient g and the moments m and v step an element p.

struct Sgd {
    static constexpr int MOMENTS = 0;
    template <class C>
    __device__ static void apply(const Optimizer& args, const Scalars<C>& by, C& p, C g, C&, C&) {
        p -= by.rate * (g + C(args.weight_decay) * p);
    }
};

struct Momentum {
    static constexpr int MOMENTS = 1;
    template <class C>
    __device__ static void apply(const Optimizer& args, const Scalars<C>& by, C& p, C g, C& m, C&) {
        g += C(args.weight_decay) * p;
        m = C(args.b1) * m + g;
        p -= by.rate * (args.flags & OPTIMIZER_NESTEROV ? g + C(args.b1) * m : m);
    }
};

struct Adam {
    static constexpr int MOMENTS = 2;
    template <class C>
    __device__ static void apply(const Optimizer& args, const Scalars<C>& by, C& p, C g, C& m,
                                 C& v) {
        m = C(args.b1) * m + C(args.c1) * g;
        v = C(args.b2) * v + C(args.c2) * g * g;
        p -= by.rate *
             (by.first * m / (root(v) * by.second + C(args.eps)) + C(args.weight_decay) * p);
    }
};

struct Lion {
    static constexpr int MOMENTS = 1;
    template <class C>
    __device__ static void apply(const Optimizer& args, const Scalars<C>& by, C& p, C g, C& m, C&) {
        C mixed = C(args.b1) * m + C(args.c1) * g;
        C sign = mixed > C(0) ? C(1) : mixed < C(0) ? C(-1) : mixed;  // NaN's sign is NaN
        p -= by.rate * (sign + C(args.weight_decay) * p);
        m = C(args.b2) * m + C(args.c2) * g;
    }
};

// Some elements side by side of a tensor, which one thread takes.
template <class T> struct Part {
    static constexpr int N = VECTOR_BYTES / sizeof(compute_of<T>);
    static_assert(N * OPTIMIZER_BLOCK * sizeof(compute_of<T>) == OPTIMIZER_TILE_BYTES, "a tile");

    T* p;
    const T* g;
    uint32 first, limit;
    bool vector;

    __device__ explicit Part(const Optimizer& args) {
        uint32 tile = blockIdx.x;
        int low = 0, high = args.count;  // the tensor is one of low to high - 1
        while (high - low > 1) {
            int middle = (low + high) / 2;
            (tile < args.first[middle] ? high : low) = middle;
        }
        p = global<T>(args.tensors[low]);
        g = global<T>(args.gradients[low]);
        limit = args.elements[low];
        first = ((tile - args.first[low]) * OPTIMIZER_BLOCK + threadIdx.x) * N;
        uint64 addresses = reinterpret_cast<uint64>(p) | reinterpret_cast<uint64>(g);
        vector = first + N <= limit && addresses % (N * sizeof(T)) == 0;
    }
    __device__ Items<T, N> load(const T* from) const {
        return load_items<N>(from, 1, Span{first, 1, limit, vector});
    }
    __device__ void store(T* to, const Items<T, N>& items) const {
        store_items(to, 1, Span{first, 1, limit, vector}, items);
    }
};

template <class T, class Rule> __device__ inline void step_tensors(const Optimizer& args) {
    using C = compute_of<T>;
    constexpr int N = Part<T>::N;
    __shared__ Scalars<C> shared;
    Part<T> part(args);
    int64 offset = (int64(blockIdx.x) * OPTIMIZER_BLOCK + threadIdx.x) * N;
    C *at_m = global<C>(args.m) + offset, *at_v = global<C>(args.v) + offset;
    compute_now(part.p, part.g, part.first, at_m, at_v);
    wait_for_dependencies(args);
    launch_dependents();
    Items<T, N> ps = part.load(part.p), gs = part.load(part.g);
    Items<C, N> ms = {}, vs = {};
    if (Rule::MOMENTS > 0) ms = load_vector<N>(at_m);
    if (Rule::MOMENTS > 1) vs = load_vector<N>(at_v);
    if (threadIdx.x == 0) {
        int* steps = global<int>(args.step) + blockIdx.x;
        int step = *steps;
        shared.scale = scale_of<C>(args);
        shared.rate = rate_of<C>(args, step);
        *steps = ++step;
        if (Rule::MOMENTS > 1) {
            shared.first = C(-1) / exp_minus_1(C(step) * C(args.log_b1));
            shared.second = C(1) / root(-exp_minus_1(C(step) * C(args.log_b2)));
        }
    }
    __syncthreads();
    Scalars<C> by = shared;
    C p[N], g[N];
    widen(ps, p);
    widen(gs, g);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        Rule::apply(args, by, p[k], by.scale * g[k], ms.item[k], vs.item[k]);
        ps.item[k] = cast<T>(p[k]);
    }
    part.store(part.p, ps);
    if (Rule::MOMENTS > 0) store_vector<N>(at_m, ms);
    if (Rule::MOMENTS > 1) store_vector<N>(at_v, vs);
}

template <class T> __device__ inline void sum_squares(const Optimizer& args) {
    using C = compute_of<T>;
    constexpr int N = Part<T>::N;
    Part<T> part(args);
    compute_now(part.g, part.first);
    wait_for_dependencies(args);
    launch_dependents();
    Items<T, N> gs = part.load(part.g);
    C g[N], sum = C(0);
    widen(gs, g);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += g[k] * g[k];
    sum = block_reduce(sum, [](C a, C b) { return a + b; }, C(0));
    if (threadIdx.x == 0) global<double>(args.squares)[blockIdx.x] = double(sum);
}

}  // namespace cyrt

#define CYRT_OPTIMIZER(NAME, TYPE, RULE)                                            \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Optimizer args) { \
        cyrt::step_tensors<TYPE, RULE>(args);                                       \
    }

#define CYRT_SQUARE_SUM(NAME, TYPE)                                                 \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Optimizer args) { \
        cyrt::sum_squares<TYPE>(args);                                              \
    }
