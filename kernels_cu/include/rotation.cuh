// Angles of rotary position embeddings.
#pragma once

#include "memory.cuh"
#include "real_math.cuh"
#include "types.cuh"

namespace cyrt {

template <int V> struct Rotation {
    float cosine[V], sine[V];
};

// The rotation by an angle in turns. It is reduced to less than one in double: it is exact at any
// position.
__device__ inline Rotation<1> rotation_of(double angle) {
    Rotation<1> rotation;
    angle -= round(angle);
    ::sincospif(2 * float(angle), rotation.sine, rotation.cosine);
    return rotation;
}

// The turns of a pair for each position, where there are no freqs. Args has the fields of Rope: freqs,
// freqs_step, turns and log2_step.
template <class Args> __device__ inline double turns_of(const Args& args, uint32 pair) {
    return args.turns * exp2(args.log2_step * pair);
}

// The divisor of a pair's turns, where there are freqs, of float or `wide`.
template <class Args>
__device__ inline double divisor_of(const Args& args, uint32 pair, bool wide) {
    const int64 index = pair * args.freqs_step;
    return wide ? global<double>(args.freqs)[index] : double(global<float>(args.freqs)[index]);
}

// The rotation of V pairs from `pair` on.
template <int V, class Args>
__device__ inline Rotation<V> rotation_at(const Args& args, uint32 pair, int64 position,
                                          bool wide) {
    Rotation<V> rotation;
    double turns = args.turns, ratio = 1;
    if (args.freqs == nullptr) {
        turns = turns_of(args, pair);
        if (V > 1) ratio = exp2(args.log2_step);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
        double angle = turns;
        if (args.freqs != nullptr) angle /= divisor_of(args, pair + k, wide);
        const Rotation<1> one = rotation_of(angle * double(position));
        rotation.cosine[k] = one.cosine[0];
        rotation.sine[k] = one.sine[0];
        turns *= ratio;
    }
    return rotation;
}

}  // namespace cyrt
