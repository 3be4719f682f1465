// The gradients of gated linear units, of the gate and of what it is multiplied with, in one pass.
//
// CYRT_SWIGLU_VJP(name, type) makes one kernel, whose parameters are Gated.
#pragma once

#include "activations.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "strided.cuh"
#include "params/gated.h"

namespace cyrt {

// silu and its slope, which share a sigmoid. `a` is an element of type T.
template <class V> struct Silu {
    V value, slope;
};
template <class T> __device__ inline Silu<compute_of<T>> silu_of(compute_of<T> a) {
    if constexpr (sizeof(T) > 2) {
        return {silu(a), silu_slope(a)};
    } else {  // within a few units of float, which is more than 16 bits hold; 4 instructions for 40
        float power, s;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(a * -float(LOG2_E)));
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(1.0f + power));
        float value = weighted(a, s);
        return {value, fma(value, 1.0f - s, s)};
    }
}

// A block is x threads along rows and y rows; blockIdx counts row blocks, and within them the chunks
// of a row.
template <class T, bool VECTORS> __device__ inline void differentiate_swiglu(const Gated& args) {
    using V = compute_of<T>;
    constexpr int N = items_of<T>;
    uint32 row_block = divide(blockIdx.x, args.chunks);
    uint32 chunk = blockIdx.x - row_block * args.chunks.size;
    int64 row = int64(row_block) * blockDim.y + threadIdx.y;
    Span span;
    span.first = chunk * blockDim.x * N + threadIdx.x * (VECTORS ? N : 1);
    span.spacing = VECTORS ? 1 : blockDim.x;
    span.limit = args.n;
    span.vector = VECTORS;
    if (row >= args.rows || span.first >= args.n) return;
    V gate[N], up[N], gradient[N];
    Items<T, N> a = load_items<N>(global<T>(args.gate) + row * args.gate_step, 1, span);
    Items<T, N> b = load_items<N>(global<T>(args.up) + row * args.up_step, 1, span);
    Items<T, N> c = load_items<N>(global<T>(args.gradient) + row * args.gradient_step, 1, span);
    widen(a, gate);
    widen(b, up);
    widen(c, gradient);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        Silu<V> silu = silu_of<T>(gate[k]);
        a.item[k] = cast<T>(silu.slope * up[k] * gradient[k]);
        b.item[k] = cast<T>(silu.value * gradient[k]);
    }
    store_items(global<T>(args.gate_gradient) + row * args.n, 1, span, a);
    store_items(global<T>(args.up_gradient) + row * args.n, 1, span, b);
}

template <class T> __device__ inline void swiglu_vjp(const Gated& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & GATED_VECTORS) {
        differentiate_swiglu<T, true>(args);
    } else {
        differentiate_swiglu<T, false>(args);
    }
}

}  // namespace cyrt

#define CYRT_SWIGLU_VJP(NAME, TYPE)                                 \
    extern "C" __global__ void __launch_bounds__(cyrt::GATED_BLOCK) \
        NAME(const __grid_constant__ cyrt::Gated args) {            \
        cyrt::swiglu_vjp<TYPE>(args);                               \
    }
