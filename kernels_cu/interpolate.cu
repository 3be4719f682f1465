// Images, whose channels are last, in another size: the nearest element, or weighted sums of
// neighbours along each axis; and the gradients, which are gathered, so that sums have one order.
//
// An axis that is not interpolated has the size 1. Positions are computed as PyTorch does, in float
// (double for double), the nearest always in float. CYRT_INTERPOLATE(name, type) makes the kernels.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "real_math.cuh"
#include "strided.cuh"
#include "params/interpolate.h"

namespace cyrt {

// Keys, Cubic convolution interpolation, IEEE TASSP 29 (1981), with a = -0.75.
template <class C> __device__ inline C cubic_weight(C t, int tap) {
    constexpr C A = C(-0.75);
    C x = tap == 0 ? t + C(1) : tap == 1 ? t : tap == 2 ? C(1) - t : C(2) - t;
    if (tap == 1 || tap == 2) return ((A + C(2)) * x - (A + C(3))) * x * x + C(1);
    return ((A * x - C(5) * A) * x + C(8) * A) * x - C(4) * A;
}

// The elements that an output along an axis is a weighted sum of: TAPS of them, from `first` on;
// those beyond the ends are the elements at the ends.
template <class C, int TAPS> struct Taps {
    int first, last;
    C fraction;

    __device__ Taps(const Interpolate& args, const InterpolateAxis& axis, int output)
        : last(axis.input - 1), fraction(0) {
        if (TAPS == 1) {
            float at = args.halfway ? float(output) + 0.5f : float(output);
            first = min(int(::floorf(at * float(axis.scale))), last);
            return;
        }
        C scale = C(axis.scale), at = scale * C(output);
        if (!args.corners) at = scale * (C(output) + C(0.5)) - C(0.5);
        if (TAPS == 2) at = at < C(0) ? C(0) : at;
        first = min(int(::floor(at)), last);
        fraction = minimum(maximum(at - C(first), C(0)), C(1));
        if (TAPS == 4) first -= 1;
    }
    __device__ int index(int tap) const { return max(min(first + tap, last), 0); }
    __device__ C weight(int tap) const {
        if (TAPS == 1) return C(1);
        if (TAPS == 2) return tap == 0 ? C(1) - fraction : fraction;
        return cubic_weight(fraction, tap);
    }
    // The weight of an element.
    __device__ C weight_of(int element) const {
        C sum = C(0);
#pragma unroll
        for (int t = 0; t < TAPS; ++t) sum += index(t) == element ? weight(t) : C(0);
        return sum;
    }
};

// The outputs that an element may be in the sum of, and some more.
template <int TAPS> struct Outputs {
    int first, last;

    __device__ Outputs(const InterpolateAxis& axis, int element) : first(0), last(axis.output - 1) {
        double reach = TAPS, per = axis.scale > 0 ? 1 / axis.scale : 0;
        if (per == 0) return;
        double low = (element - reach) * per - 2, high = (element + reach + 1) * per + 2;
        if (element > 0 && low > 0) first = int(low < last ? low : last);
        if (element < axis.input - 1 && high < last) last = int(high);
    }
};

// The position of a thread, and its channel.
struct Pixel {
    uint32 position, channel, batch;
    int at[INTERPOLATE_AXES];
    bool there;

    __device__ explicit Pixel(const Interpolate& args) {
        uint32 block = divide(blockIdx.x, args.chunks);
        position = block * blockDim.y + threadIdx.y;
        channel = (blockIdx.x - block * args.chunks.size) * blockDim.x + threadIdx.x;
        there = position < args.positions && channel < args.channels;
        batch = position;
#pragma unroll
        for (int d = INTERPOLATE_AXES - 1; d >= 0; --d) {
            uint32 next = divide(batch, args.sizes[d]);
            at[d] = int(batch - next * args.sizes[d].size);
            batch = next;
        }
    }
};

// Elements whose weight is 0 are not read: an infinite one adds nothing.
template <class T, int TAPS> __device__ inline void interpolate(const Interpolate& args) {
    using C = compute_of<T>;
    Pixel pixel(args);
    wait_for_dependencies(args);
    launch_dependents();
    if (!pixel.there) return;
    const T* source = global<T>(args.source) + pixel.channel;
    const InterpolateAxis* axis = args.axis;
    Taps<C, TAPS> x(args, axis[0], pixel.at[0]), y(args, axis[1], pixel.at[1]);
    Taps<C, TAPS> z(args, axis[2], pixel.at[2]);
    C sum = C(0);
#pragma unroll 1
    for (int i = 0; i < TAPS; ++i) {
        C weight = x.weight(i), plane = C(0);
        if (weight == C(0)) continue;
        int64 at = int64(pixel.batch) * axis[0].input + x.index(i);
#pragma unroll 1
        for (int j = 0; j < TAPS; ++j) {
            C height = y.weight(j), row = C(0);
            if (height == C(0)) continue;
            int64 begin = (at * axis[1].input + y.index(j)) * axis[2].input;
#pragma unroll
            for (int k = 0; k < TAPS; ++k) {
                C width = z.weight(k);
                if (width != C(0)) {
                    row += width * widen(source[(begin + z.index(k)) * args.channels]);
                }
            }
            plane += height * row;
        }
        sum += weight * plane;
    }
    global<T>(args.out)[int64(pixel.position) * args.channels + pixel.channel] = cast<T>(sum);
}

// The source is the result's gradient.
template <class T, int TAPS> __device__ inline void interpolate_vjp(const Interpolate& args) {
    using C = compute_of<T>;
    Pixel pixel(args);
    wait_for_dependencies(args);
    launch_dependents();
    if (!pixel.there) return;
    const T* source = global<T>(args.source) + pixel.channel;
    const InterpolateAxis* axis = args.axis;
    Outputs<TAPS> x(axis[0], pixel.at[0]), y(axis[1], pixel.at[1]), z(axis[2], pixel.at[2]);
    C sum = C(0);
#pragma unroll 1
    for (int i = x.first; i <= x.last; ++i) {
        C weight = Taps<C, TAPS>(args, axis[0], i).weight_of(pixel.at[0]), plane = C(0);
        if (weight == C(0)) continue;
        int64 at = int64(pixel.batch) * axis[0].output + i;
#pragma unroll 1
        for (int j = y.first; j <= y.last; ++j) {
            C height = Taps<C, TAPS>(args, axis[1], j).weight_of(pixel.at[1]), row = C(0);
            if (height == C(0)) continue;
            int64 begin = (at * axis[1].output + j) * axis[2].output;
#pragma unroll 1
            for (int k = z.first; k <= z.last; ++k) {
                C width = Taps<C, TAPS>(args, axis[2], k).weight_of(pixel.at[2]);
                if (width != C(0)) row += width * widen(source[(begin + k) * args.channels]);
            }
            plane += height * row;
        }
        sum += weight * plane;
    }
    global<T>(args.out)[int64(pixel.position) * args.channels + pixel.channel] = cast<T>(sum);
}

}  // namespace cyrt

#define CYRT_INTERPOLATE_KERNEL(NAME, ...)                     \
    extern "C" __global__ void __launch_bounds__(256)          \
        NAME(const __grid_constant__ cyrt::Interpolate args) { \
        __VA_ARGS__(args);                                     \
    }
#define CYRT_INTERPOLATE(NAME, FUNCTION, TYPE)                       \
    CYRT_INTERPOLATE_KERNEL(NAME##_nearest, cyrt::FUNCTION<TYPE, 1>) \
    CYRT_INTERPOLATE_KERNEL(NAME##_linear, cyrt::FUNCTION<TYPE, 2>)  \
    CYRT_INTERPOLATE_KERNEL(NAME##_cubic, cyrt::FUNCTION<TYPE, 4>)
