// f16 and bf16 as floats: a warp's halves are widened, computed with in f32 and narrowed again.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "exec/handler_floats.hpp"

namespace cyrt::emu {
namespace {

using FloatLanes = float[kWarpSize];
using WordLanes = u32[kWarpSize];

// Modifiers of a result: .sat clamps to [0, 1], .relu replaces negative values by zero.
enum class Clamp { none, sat, relu };
template <Clamp C, class T> CYRT_INLINE T clamp(T a) {
    if (C == Clamp::sat) return saturate<true>(a);
    if (C == Clamp::relu) return a > T(0) || is_nan(a) ? a : T(0);
    return a;
}

// An f32 whose last bit is set if rounding to f32 loses bits (see sum_to_odd).
CYRT_INLINE float to_odd(float rounded, bool inexact, bool above) {
    const u32 bits = bits_as<u32>(rounded);
    const bool toward_zero = above == (s32(bits) < 0);  // the exact value's side
    const u32 odd = bits & 1 ? bits : toward_zero ? bits - 1 : bits + 1;
    return bits_as<float>(inexact ? odd : bits);
}

struct Half {
    static constexpr u32 kExponent = 0x7c00;  // bits of the exponent of the low value

    static CYRT_INLINE float widen(u32 half) {
        const u32 shifted = (half & 0x7fffu) << 13;
        const u32 rebased = shifted + (112u << 23);
        // A subnormal's bits, under the exponent of 2^-14, are that much too large.
        const float subnormal = bits_as<float>(shifted + (113u << 23)) - 0x1p-14f;
        const u32 special = rebased + (112u << 23);  // infinity, NaN
        const u32 number = shifted < (1u << 23) ? bits_as<u32>(subnormal) : rebased;
        const u32 magnitude = shifted < (31u << 23) ? number : special;
        return bits_as<float>(magnitude | (half & 0x8000u) << 16);
    }
    // To nearest even.
    static CYRT_INLINE u32 narrow(float value) {
        const u32 bits = bits_as<u32>(value), sign = bits >> 16 & 0x8000u;
        const u32 magnitude = bits & 0x7fffffffu;
        const u32 normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
        // Adding 2^-1 aligns the last bit of a subnormal with that of the sum.
        const u32 subnormal = bits_as<u32>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
        const u32 number = magnitude < (113u << 23) ? subnormal : normal;
        const u32 bounded = number < kExponent ? number : kExponent;
        const u32 large = magnitude < (143u << 23) ? bounded : kExponent;
        return magnitude > 0x7f800000u ? 0x7fffu : large | sign;
    }

    // The product of two halves is exact in f32.
    static CYRT_INLINE float fma(float a, float b, float c) {
        const float product = a * b, sum = product + c;
        const float part = sum - product;
        const float error = (product - (sum - part)) + (c - part);
        return to_odd(sum, error < 0 || error > 0, error > 0);
    }

#ifdef __F16C__
    static CYRT_NOINLINE void widen_all(const u32* words, int shift, float* out) {
        const __m128i count = _mm_cvtsi32_si128(shift);
        for (int i = 0; i < kWarpSize; i += 8) {
            __m256i word = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i));
            word = _mm256_and_si256(_mm256_srl_epi32(word, count), _mm256_set1_epi32(0xffff));
            const __m128i halves =
                _mm_packus_epi32(_mm256_castsi256_si128(word), _mm256_extracti128_si256(word, 1));
            _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
        }
    }
    static CYRT_NOINLINE void narrow_all(const float* values, u32* out) {
        const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
        for (int i = 0; i < kWarpSize; i += 8) {
            __m256 value = _mm256_loadu_ps(values + i);
            value = _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
            const __m128i halves = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_cvtepu16_epi32(halves));
        }
    }
#else
    static CYRT_NOINLINE void widen_all(const u32* words, int shift, float* out) {
        CYRT_LANES out[i] = widen(words[i] >> shift);
    }
    static CYRT_NOINLINE void narrow_all(const float* values, u32* out) {
        CYRT_LANES out[i] = narrow(values[i]);
    }
#endif
};

struct BFloat {
    static constexpr u32 kExponent = 0x7f80;

    static CYRT_INLINE float widen(u32 half) { return bits_as<float>(half << 16); }
    static CYRT_INLINE u32 narrow(float value) {
        const u32 bits = bits_as<u32>(value);
        const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
        return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded;
    }
    static CYRT_INLINE float fma(float a, float b, float c) {
        const double sum = sum_to_odd(double(a) * double(b), double(c));
        const float rounded = float(sum);
        return to_odd(rounded, sum < double(rounded) || sum > double(rounded),
                      sum > double(rounded));
    }
    static CYRT_NOINLINE void widen_all(const u32* words, int shift, float* out) {
        CYRT_LANES out[i] = widen(words[i] >> shift);
    }
    static CYRT_NOINLINE void narrow_all(const float* values, u32* out) {
        CYRT_LANES out[i] = narrow(values[i]);
    }
};

}  // namespace
}  // namespace cyrt::emu
