// Pairs of independent normal numbers of random bits (Box and Muller, 1958).
//
// The one of float consists of additions, products, fused multiply-adds and a square root, all rounded
// as IEEE 754 says, so that every device and compiler gives the same bits; and it is short: the device's
// memory takes numbers faster than logf and sincospif give them.
#pragma once

#include "philox.cuh"
#include "real_math.cuh"

namespace cyrt {

// -2 log(u) of u in (0, 1]; relative error below 3e-7. Polynomial: minimax over [-1/3, 1/3] of
// (2 f - 2 log(1 + f)) / f^2, the error weighted as it adds to the result.
__device__ inline float minus_two_log(float u) {
    int exponent =
        (__float_as_int(u) - 0x3f2aaaab) & 0xff800000;  // the exponent of u / f, f in [2/3, 4/3)
    float f = __fadd_rn(__int_as_float(__float_as_int(u) - exponent), -1.0f);
    float q = 0.3053334355354309f;
    q = __fmaf_rn(q, f, -0.3398112654685974f);
    q = __fmaf_rn(q, f, 0.3288167417049408f);
    q = __fmaf_rn(q, f, -0.39636337757110596f);
    q = __fmaf_rn(q, f, 0.5001264214515686f);
    q = __fmaf_rn(q, f, -0.6667346954345703f);
    q = __fmaf_rn(q, f, 0.9999992251396179f);
    q = __fmaf_rn(__fmul_rn(f, f), q, __fmul_rn(-2.0f, f));
    return __fmaf_rn(__int2float_rn(exponent), float(-2 * LN_2 * 0x1p-23), q);
}

// 32 bits give the radius; of the other 32, two the quarter of the circle, the rest the angle from
// its middle, in [-pi/4, pi/4). Polynomials: minimax of (sin(a) - a) / a^3, (cos(a) - 1) / a^2.
__device__ inline void box_muller(uint32 first, uint32 second, float (&normal)[2]) {
    float radius = __fsqrt_rn(minus_two_log(positive_fraction(first)));
    float a = __fmul_rn(__int2float_rn(int(second << 2)), float(PI / 4 * 0x1p-31));
    float z = __fmul_rn(a, a);
    float s = __fmaf_rn(z, -0.00019517297914717346f, 0.008332177996635437f);
    s = __fmaf_rn(__fmaf_rn(z, s, -0.16666655242443085f), __fmul_rn(z, a), a);
    float c = __fmaf_rn(z, -0.0013597821816802025f, 0.04165629297494888f);
    c = __fmaf_rn(__fmaf_rn(z, c, -0.49999895691871643f), z, 1.0f);
    radius = __int_as_float(__float_as_int(radius) ^ int(second & 0x80000000u));
    bool turned = second & 0x40000000u;
    normal[0] = __fmul_rn(radius, turned ? s : c);
    normal[1] = __fmul_rn(radius, turned ? c : s);
}

__device__ inline void box_muller(uint64 first, uint64 second, double (&normal)[2]) {
    double radius = ::sqrt(-2 * ::log(positive_fraction(first)));
    ::sincospi(2 * UNIT<double> * units(second), &normal[0], &normal[1]);
    normal[0] *= radius;
    normal[1] *= radius;
}

}  // namespace cyrt
