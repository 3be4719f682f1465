// PTX floating point: flushing, saturation, canonical NaN, fused multiply-add, directed rounding.
// Compiled without contraction and without traps (-ffp-contract=off -fno-trapping-math
// -fno-math-errno), so that selections vectorise.
#pragma once

#include <fenv.h>

#include "exec/handler_lanes.hpp"

namespace cyrt::emu {
namespace {

CYRT_INLINE bool is_nan(float a) { return a != a; }
CYRT_INLINE bool is_nan(double a) { return a != a; }

// Subnormals become zeros of the same sign.
template <bool Ftz> CYRT_INLINE float flush(float a) {
    if (!Ftz) return a;
    const u32 bits = bits_as<u32>(a);
    return bits_as<float>(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}
CYRT_INLINE double flush(double a) {
    const u64 bits = bits_as<u64>(a);
    return bits_as<double>(bits & 0x7ff0000000000000u ? bits : bits & 0x8000000000000000u);
}
// Clamps to [0, 1]; NaN and -0 become +0.
template <bool Sat, class T> CYRT_INLINE T saturate(T a) {
    if (!Sat) return a;
    return a > T(0) ? (a < T(1) ? a : T(1)) : T(0);
}
// Single precision has one NaN; double precision keeps payloads.
CYRT_INLINE float canonical(float a) { return is_nan(a) ? bits_as<float>(0x7fffffffu) : a; }
CYRT_INLINE double canonical(double a) { return a; }

CYRT_INLINE float magnitude(float a) { return bits_as<float>(bits_as<u32>(a) & 0x7fffffffu); }

// Op on f32 with .ftz and .sat.
template <class Op, bool Ftz, bool Sat> struct Single {
    template <class... T> static CYRT_INLINE float of(T... a) {
        return saturate<Sat>(flush<Ftz>(canonical(Op::of(flush<Ftz>(a)...))));
    }
};

struct Add {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a + b; }
};
struct Sub {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a - b; }
};
struct Mul {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a * b; }
};

template <class T> using Bits = std::conditional_t<sizeof(T) == 4, u32, u64>;

// -0 is below +0: if neither is less, the sign bits decide. A number has precedence over a NaN.
struct Min {
    template <class T> static CYRT_INLINE T of(T a, T b) {
        const T equal = bits_as<T>(Bits<T>(bits_as<Bits<T>>(a) | bits_as<Bits<T>>(b)));
        const T chosen = a < b ? a : a == b ? equal : b;
        return is_nan(b) ? a : chosen;
    }
};
struct Max {
    template <class T> static CYRT_INLINE T of(T a, T b) {
        const T equal = bits_as<T>(Bits<T>(bits_as<Bits<T>>(a) & bits_as<Bits<T>>(b)));
        const T chosen = a > b ? a : a == b ? equal : b;
        return is_nan(b) ? a : chosen;
    }
};
// .NaN: a NaN has precedence. .xorsign.abs: compares magnitudes, with the product's sign.
template <class Op> struct NanWins {
    static CYRT_INLINE float of(float a, float b) {
        return is_nan(a) || is_nan(b) ? a + b : Op::of(a, b);
    }
};
template <class Op> struct XorSign {
    static CYRT_INLINE float of(float a, float b) {
        const u32 sign = (bits_as<u32>(a) ^ bits_as<u32>(b)) & 0x80000000u;
        return bits_as<float>(bits_as<u32>(Op::of(magnitude(a), magnitude(b))) ^ sign);
    }
};
// The double nearest to a sum, with its last bit set if bits were lost: rounding it once more to at
// most 51 bits gives the exact sum rounded once.
CYRT_INLINE double sum_to_odd(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    const double error = (a - (sum - part)) + (b - part);
    const u64 bits = bits_as<u64>(sum);
    const bool toward_zero = (error < 0) != (sum < 0);
    const u64 odd = bits & 1 ? bits : toward_zero ? bits - 1 : bits + 1;
    return bits_as<double>(error < 0 || error > 0 ? odd : bits);
}

// Fused: one rounding. Correct in every rounding mode where the processor has the instruction; in
// software single precision goes through double (exact product), double precision through libm.
struct Fma {
#ifdef __FMA__
    static CYRT_INLINE float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
    static CYRT_INLINE float of(float a, float b, float c) {
        return float(sum_to_odd(double(a) * double(b), c));
    }
#endif
    static CYRT_INLINE double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct DirectedFma {
    static CYRT_INLINE float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static CYRT_INLINE double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
// Multiply-add for polynomials, fused or not: the faster one.
CYRT_INLINE float mul_add(float a, float b, float c) {
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// Sets the rounding mode of the thread and restores it. Operands and results are in memory that the
// calls could access, so no arithmetic moves across them.
template <int Mode, Handler Run> void directed(Warp& warp, const Inst& inst) {
    const int before = fegetround();
    fesetround(Mode);
    Run(warp, inst);
    fesetround(before);
}

// Table entries named head + rounding + tail; the default rounding is to nearest.
#define CYRT_DIRECTED(head, tail, ...)                           \
    {head ".rz" tail, directed<FE_TOWARDZERO, __VA_ARGS__>},     \
        {head ".rm" tail, directed<FE_DOWNWARD, __VA_ARGS__>}, { \
        head ".rp" tail, directed<FE_UPWARD, __VA_ARGS__>        \
    }
#define CYRT_ROUNDED(head, tail, ...) \
    {head ".rn" tail, __VA_ARGS__}, CYRT_DIRECTED(head, tail, __VA_ARGS__)

}  // namespace
}  // namespace cyrt::emu
