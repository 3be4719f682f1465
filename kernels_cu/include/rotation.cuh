// Angles of rotary position embeddings.
#pragma once

#include "real_math.cuh"
#include "types.cuh"

namespace cyrt {

template <int V> struct Rotation {
    float cosine[V], sine[V];
};

// The rotation of V pairs from `pair` on. They are reduced to a turn in double: they are exact at any
// position. Args has the fields of Rope: freqs, freqs_step, turns and log2_step.
template <int V, class Args>
__device__ inline Rotation<V> rotation_at(const Args& args, uint32 pair, int64 position) {
    Rotation<V> rotation;
    double turns = args.turns, ratio = 1;
    if (args.freqs == nullptr) {
        turns *= exp2(args.log2_step * pair);
        if (V > 1) ratio = exp2(args.log2_step);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
        double angle = turns;
        if (args.freqs != nullptr) angle /= args.freqs[int64(pair + k) * args.freqs_step];
        angle *= double(position);
        angle -= round(angle);
        ::sincospif(2 * float(angle), &rotation.sine[k], &rotation.cosine[k]);
        turns *= ratio;
    }
    return rotation;
}

}  // namespace cyrt
