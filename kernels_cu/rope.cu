// Rotary position embedding (Su et al., arXiv:2104.09864): pairs of features are rotated by an angle
// that is proportional to their position.
//
// A thread rotates V pairs of up to ROPE_HEADS heads, and computes their angles once; or it copies V
// features that are not rotated.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "rotation.cuh"
#include "strided.cuh"
#include "params/rope.h"

namespace cyrt {

template <int V, class T>
__device__ inline void rotate(const Rope& args, const Rotation<V>& rotation, const T* in, T* out,
                              uint32 pair) {
    const bool traditional = args.flags & ROPE_TRADITIONAL;
    const uint32 low = traditional ? 2 * pair : pair;
    const uint32 high = traditional ? low + V : pair + args.pairs;
    Items<T, V> a = load_vector<V>(in + low), b = load_vector<V>(in + high);
#pragma unroll
    for (int k = 0; k < V; ++k) {
        // Pair k is elements 2 k and 2 k + 1 of the two vectors together, or element k of each.
        T& x = traditional ? (2 * k < V ? a.item[2 * k % V] : b.item[2 * k % V]) : a.item[k];
        T& y = traditional ? (2 * k + 1 < V ? a.item[(2 * k + 1) % V] : b.item[(2 * k + 1) % V])
                           : b.item[k];
        float u = widen(x), v = widen(y);
        x = Cast<T, float>::of(u * rotation.cosine[k] - v * rotation.sine[k]);
        y = Cast<T, float>::of(u * rotation.sine[k] + v * rotation.cosine[k]);
    }
    store_vector(out + low, a);
    store_vector(out + high, b);
}

template <class T, int V> __device__ inline void rope(const Rope& args) {
    const uint32 n = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32 index = divide(n, args.chunks), row = divide(index, args.positions),
                 batch = divide(row, args.groups);
    const uint32 chunk = n - index * args.chunks.size;
    const uint32 t = index - row * args.positions.size;
    const uint32 head = (row - batch * args.groups.size) * ROPE_HEADS;
    const uint32 heads = min(args.heads - head, uint32(ROPE_HEADS));
    const T* in = static_cast<const T*>(args.input) + batch * args.in_batch + head * args.in_head +
                  t * args.in_position;
    T* out = static_cast<T*>(args.out) + batch * args.out_batch + head * args.out_head +
             t * args.out_position;
    compute_now(in, out);
    wait_for_dependencies(args);
    launch_dependents();
    if (n >= args.count) return;
    __builtin_assume(__isGlobal(in));
    __builtin_assume(__isGlobal(out));
    const uint32 first = chunk * V;
    if (first < args.pairs) {
        int64 position = args.first + t;
        if (args.offsets != nullptr) position += args.offsets[batch * args.offsets_step];
        const Rotation<V> rotation =
            rotation_at<V>(args, first, position, args.flags & ROPE_WIDE_FREQS);
        for (uint32 h = 0; h < heads; ++h) {
            rotate<V>(args, rotation, in, out, first);
            in += args.in_head;
            out += args.out_head;
        }
    } else {
        for (uint32 h = 0; h < heads; ++h) {
            store_vector(out + args.pairs + first, load_vector<V>(in + args.pairs + first));
            in += args.in_head;
            out += args.out_head;
        }
    }
}

}  // namespace cyrt

// The second kernel takes vectors: strides, pairs and features are multiples of one, addresses are
// aligned.
#define CYRT_ROPE(NAME, TYPE)                                                            \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Rope args) {           \
        cyrt::rope<TYPE, 1>(args);                                                       \
    }                                                                                    \
    extern "C" __global__ void NAME##_vectors(const __grid_constant__ cyrt::Rope args) { \
        cyrt::rope<TYPE, cyrt::items_of<TYPE>>(args);                                    \
    }
