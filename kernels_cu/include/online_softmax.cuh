// Softmax of logits that come one after the other, in powers of 2.
#pragma once

#include "memory.cuh"
#include "real_math.cuh"
#include "params/attention.h"

namespace cyrt {

// The largest of some logits, and the sum of the powers of 2 of their distances from it.
struct Share {
    float most, sum;
};

__device__ inline float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// The power of 2 of a logit's distance from the largest one, which is -infinity where there is none.
__device__ inline float weight(float logit, float most) {
    return power_of_two(logit - (most == -infinity<float>() ? 0 : most));
}

// Two weights as they are multiplied with the values.
template <class T> __device__ inline uint32 pack(float low, float high);
template <> __device__ inline uint32 pack<float16>(float low, float high) {
    uint32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
template <> __device__ inline uint32 pack<bfloat16>(float low, float high) {
    uint32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

// The factor of a row's sum of values. The sink of its head joins the sum of the weights.
template <class T, class Args>
__device__ inline float factor_of(const Args& args, uint32 head, Share all) {
    float own = 1, sum = all.sum;
    if (args.sinks != nullptr) {
        int64 index = head * args.sinks_step;
        float sink = args.flags & ATTENTION_WIDE_SINKS ? global<float>(args.sinks)[index]
                                                       : widen(global<T>(args.sinks)[index]);
        sink *= float(LOG2_E);
        float most = ::fmaxf(all.most, sink);
        own = weight(all.most, most);
        sum = all.sum * own + weight(sink, most);
    }
    return sum == 0 ? 0 : own / sum;
}

}  // namespace cyrt
