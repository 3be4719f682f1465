// Elementary functions of f32 by polynomials over lanes, each at least as accurate as PTX requires
// for the .approx instructions: ex2, lg2 and tanh within about 2 ulp, sin and cos within 1e-7. The
// coefficients are fits at Chebyshev points over the reduced range of each function.
#pragma once

#include "exec/handler_floats.hpp"

namespace cyrt::emu {
namespace {

CYRT_INLINE float power_of_two(s32 exponent) { return bits_as<float>(u32(exponent + 127) << 23); }

struct Ex2 {
    static CYRT_INLINE float of(float x) {
        // Beyond these bounds the result is infinite or zero; a NaN becomes -160 until the end.
        float bounded = x > -160.0f ? x : -160.0f;
        bounded = bounded < 130.0f ? bounded : 130.0f;
        const float whole = __builtin_rintf(bounded);
        const float f = bounded - whole;
        float p = 0.00015469732f;
        p = mul_add(p, f, 0.00134004322f);
        p = mul_add(p, f, 0.0096180256f);
        p = mul_add(p, f, 0.0555032721f);
        p = mul_add(p, f, 0.240226512f);
        p = mul_add(p, f, 0.693147207f);
        p = mul_add(p, f, 1.0f);
        // In two steps: the scale of a subnormal result is not a normal number.
        const s32 n = s32(whole);
        const float scaled = p * power_of_two(n >> 1) * power_of_two(n - (n >> 1));
        return is_nan(x) ? x : scaled;
    }
};

struct Lg2 {
    static CYRT_INLINE float of(float x) {
        const bool tiny = x < 0x1p-126f;
        const u32 bits = bits_as<u32>(tiny ? x * 0x1p24f : x);
        // x = 2^e * m, m in [sqrt(1/2), sqrt(2))
        const s32 e = s32(bits - 0x3f3504f3u) >> 23;
        const float t = bits_as<float>(bits - (u32(e) << 23)) - 1.0f;
        float p = 0.0972410019f;
        p = mul_add(p, t, -0.169188153f);
        p = mul_add(p, t, 0.172025888f);
        p = mul_add(p, t, -0.178882944f);
        p = mul_add(p, t, 0.205044584f);
        p = mul_add(p, t, -0.240469018f);
        p = mul_add(p, t, 0.288576184f);
        p = mul_add(p, t, -0.360674101f);
        p = mul_add(p, t, 0.480897889f);
        p = mul_add(p, t, -0.721347516f);
        p = mul_add(p, t, 1.44269504f);
        const float result = mul_add(p, t, float(e - (tiny ? 24 : 0)));
        const float infinity = __builtin_inff();
        const float special = x == 0.0f ? -infinity : x == infinity ? x : __builtin_nanf("");
        return x > 0.0f && x < infinity ? result : special;
    }
};

// sin(x + shift * pi/2): the quadrant and the rest are taken in double precision.
template <u32 Shift> struct Sine {
    static CYRT_INLINE float of(float x) {
        constexpr double kToInteger = 0x1.8p52;  // adding it leaves an integer in the low bits
        const double shifted = double(x) * 0x1.45f306dc9c883p-1 + kToInteger;  // 2 / pi
        const double n = shifted - kToInteger;
        const double exact_part = double(x) - n * 0x1.921fb54p0;  // pi/2, 30 bits and the rest
        const float near_rest = float(exact_part - n * 0x1.10b4611a62633p-30);
        // Hardware loses the fraction of a huge argument too: its angle is 0.
        const bool huge = !(magnitude(x) < 0x1p24f);
        const float r = huge ? x - x : near_rest;
        const u32 quadrant = (huge ? 0 : u32(bits_as<u64>(shifted))) + Shift;
        const float z = r * r;
        float s = 2.71734945e-06f;
        s = mul_add(s, z, -0.000198392027f);
        s = mul_add(s, z, 0.00833332878f);
        s = mul_add(s, z, -0.166666666f);
        s = mul_add(s * z, r, r);
        float c = 2.43798803e-05f;
        c = mul_add(c, z, -0.00138866186f);
        c = mul_add(c, z, 0.0416666167f);
        c = mul_add(c, z, -0.499999996f);
        c = mul_add(c, z, 1.0f);
        const float chosen = quadrant & 1 ? c : s;
        return bits_as<float>(bits_as<u32>(chosen) ^ (quadrant & 2) << 30);
    }
};
using Sin = Sine<0>;
using Cos = Sine<1>;

struct Tanh {
    static CYRT_INLINE float of(float x) {
        const float z = x * x;
        float p = -0.00566477536f;
        p = mul_add(p, z, 0.02059568f);
        p = mul_add(p, z, -0.0537226793f);
        p = mul_add(p, z, 0.133311502f);
        p = mul_add(p, z, -0.333332616f);
        const float near_zero = mul_add(p * z, x, x);
        const u32 sign = bits_as<u32>(x) & 0x80000000u;
        const float a = bits_as<float>(bits_as<u32>(x) ^ sign);
        const float far_off = 1.0f - 2.0f / (Ex2::of(a * 2.88539008f) + 1.0f);  // 2 / ln 2
        const float signed_far = bits_as<float>(bits_as<u32>(far_off) | sign);
        return a < 0.625f ? near_zero : signed_far;
    }
};

}  // namespace
}  // namespace cyrt::emu
