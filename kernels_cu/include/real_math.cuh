// Functions of float and double: NumPy's, with the array API standard's special cases.
#pragma once

#include "types.cuh"

namespace cyrt {

template <class T> struct is_real {
    static constexpr bool value = false;
};
template <> struct is_real<float> {
    static constexpr bool value = true;
};
template <> struct is_real<double> {
    static constexpr bool value = true;
};

template <class T, bool = is_real<T>::value> struct real_only {};
template <class T> struct real_only<T, true> {
    using type = T;
};
template <class T> using if_real = typename real_only<T>::type;

template <class T> struct Limits;
template <> struct Limits<float> {
    static constexpr float epsilon = 1.1920929e-07f, smallest = 1.17549435e-38f,
                           largest = 3.40282347e+38f;
};
template <> struct Limits<double> {
    static constexpr double epsilon = 2.220446049250313e-16, smallest = 2.2250738585072014e-308,
                            largest = 1.7976931348623157e+308;
};

constexpr double PI = 3.14159265358979323846;
constexpr double LN_2 = 0.69314718055994530942;
constexpr double LOG2_E = 1.44269504088896340736;
constexpr double LOG10_E = 0.43429448190325182765;

#define CYRT_REAL_FUNCTION(SPACE, NAME, OF_FLOAT, OF_DOUBLE) \
    SPACE float NAME(float a) { return ::OF_FLOAT(a); }      \
    SPACE double NAME(double a) { return ::OF_DOUBLE(a); }
#define CYRT_REAL_FUNCTION_2(SPACE, NAME, OF_FLOAT, OF_DOUBLE)      \
    SPACE float NAME(float a, float b) { return ::OF_FLOAT(a, b); } \
    SPACE double NAME(double a, double b) { return ::OF_DOUBLE(a, b); }

// The long ones are called, not inlined: a kernel applies them to several elements a thread.
#define CYRT_INLINE __device__ inline
#define CYRT_CALLED __device__ __noinline__
CYRT_REAL_FUNCTION(CYRT_INLINE, abs, fabsf, fabs)
CYRT_REAL_FUNCTION(CYRT_CALLED, acos, acosf, acos)
CYRT_REAL_FUNCTION(CYRT_CALLED, acosh, acoshf, acosh)
CYRT_REAL_FUNCTION(CYRT_CALLED, asin, asinf, asin)
CYRT_REAL_FUNCTION(CYRT_CALLED, asinh, asinhf, asinh)
CYRT_REAL_FUNCTION(CYRT_CALLED, atan, atanf, atan)
CYRT_REAL_FUNCTION(CYRT_CALLED, atanh, atanhf, atanh)
CYRT_REAL_FUNCTION(CYRT_CALLED, cbrt, cbrtf, cbrt)
CYRT_REAL_FUNCTION(CYRT_INLINE, ceil, ceilf, ceil)
CYRT_REAL_FUNCTION(CYRT_CALLED, cos, cosf, cos)
CYRT_REAL_FUNCTION(CYRT_CALLED, cosh, coshf, cosh)
CYRT_REAL_FUNCTION(CYRT_CALLED, erf, erff, erf)
CYRT_REAL_FUNCTION(CYRT_CALLED, erfc, erfcf, erfc)
CYRT_REAL_FUNCTION(CYRT_CALLED, erfinv, erfinvf, erfinv)
CYRT_REAL_FUNCTION(CYRT_INLINE, exp, expf, exp)
CYRT_REAL_FUNCTION(CYRT_INLINE, exp2, exp2f, exp2)
CYRT_REAL_FUNCTION(CYRT_CALLED, expm1, expm1f, expm1)
CYRT_REAL_FUNCTION(CYRT_INLINE, floor, floorf, floor)
CYRT_REAL_FUNCTION(CYRT_CALLED, lgamma, lgammaf, lgamma)
CYRT_REAL_FUNCTION(CYRT_INLINE, log, logf, log)
CYRT_REAL_FUNCTION(CYRT_CALLED, log10, log10f, log10)
CYRT_REAL_FUNCTION(CYRT_CALLED, log1p, log1pf, log1p)
CYRT_REAL_FUNCTION(CYRT_INLINE, log2, log2f, log2)
CYRT_REAL_FUNCTION(CYRT_INLINE, round, rintf, rint)  // halves to the even one
CYRT_REAL_FUNCTION(CYRT_INLINE, rsqrt, rsqrtf, rsqrt)
CYRT_REAL_FUNCTION(CYRT_CALLED, sin, sinf, sin)
CYRT_REAL_FUNCTION(CYRT_CALLED, sinh, sinhf, sinh)
CYRT_REAL_FUNCTION(CYRT_INLINE, sqrt, sqrtf, sqrt)
CYRT_REAL_FUNCTION(CYRT_CALLED, tan, tanf, tan)
CYRT_REAL_FUNCTION(CYRT_INLINE, tanh, tanhf, tanh)
CYRT_REAL_FUNCTION(CYRT_INLINE, trunc, truncf, trunc)
CYRT_REAL_FUNCTION_2(CYRT_CALLED, atan2, atan2f, atan2)
CYRT_REAL_FUNCTION_2(CYRT_INLINE, copysign, copysignf, copysign)
CYRT_REAL_FUNCTION_2(CYRT_CALLED, fmod, fmodf, fmod)
CYRT_REAL_FUNCTION_2(CYRT_INLINE, hypot, hypotf, hypot)
#undef CYRT_REAL_FUNCTION
#undef CYRT_REAL_FUNCTION_2
#undef CYRT_INLINE
#undef CYRT_CALLED

__device__ inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
__device__ inline double fma(double a, double b, double c) { return ::fma(a, b, c); }

// Small whole exponents by multiplication, rounded once: CUDA's functions are an ulp off where the
// power is a number of the type.
__device__ __noinline__ float pow(float a, float b) {
    double square = double(a) * double(a);
    if (b == 2) return float(square);
    if (b == 3) return float(square * double(a));
    if (b == 4) return float(square * square);
    return ::powf(a, b);
}
__device__ __noinline__ double pow(double a, double b) {
    if (b != 2 && b != 3 && b != 4) return ::pow(a, b);
    double square = a * a, error = fma(a, a, -square);
    if (b == 2) return square;
    double other = b == 3 ? a : square, power = square * other;
    double rest = fma(square, other, -power) + (b == 3 ? error * a : 2 * error * square);
    // The errors are numbers unless the power overflows, or they would be too small for the type.
    return abs(power) > 1e-200 && abs(power) <= Limits<double>::largest ? power + rest : power;
}

__device__ inline bool signbit(float a) { return __float_as_uint(a) >> 31; }
__device__ inline bool signbit(double a) { return __double_as_longlong(a) < 0; }

template <class T> __device__ inline T not_a_number() { return T(__uint_as_float(0x7fc00000)); }
template <class T> __device__ inline T infinity() { return T(__uint_as_float(0x7f800000)); }

__device__ inline bool isnan(float a) { return a != a; }
__device__ inline bool isnan(double a) { return a != a; }
__device__ inline bool isinf(float a) { return abs(a) == infinity<float>(); }
__device__ inline bool isinf(double a) { return abs(a) == infinity<double>(); }
__device__ inline bool isfinite(float a) { return abs(a) < infinity<float>(); }
__device__ inline bool isfinite(double a) { return abs(a) < infinity<double>(); }

template <class T> __device__ inline if_real<T> sign(T a) {
    return isnan(a) ? a : T(a > T(0)) - T(a < T(0));
}

template <class T> __device__ inline if_real<T> sigmoid(T a) {
    T e = exp(-abs(a));  // never overflows
    return (a < T(0) ? e : T(1)) / (T(1) + e);
}

template <class T> __device__ __noinline__ if_real<T> logaddexp(T a, T b) {
    if (a == b) return a + T(LN_2);  // infinities too
    T larger = a > b ? a : b, difference = -abs(a - b);
    return isnan(difference) ? difference : larger + log1p(exp(difference));
}

// NaN if a or b is NaN.
template <class T> __device__ inline if_real<T> maximum(T a, T b) {
    return a > b || isnan(a) ? a : b;
}
template <class T> __device__ inline if_real<T> minimum(T a, T b) {
    return a < b || isnan(a) ? a : b;
}

// floor(a / b) of the exact quotient.
template <class T> __device__ __noinline__ if_real<T> floor_divide(T a, T b) {
    if (!isfinite(a) || !isfinite(b) || a == T(0) || b == T(0)) return a / b;
    T rest = fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
    if (quotient == T(0)) return copysign(T(0), a / b);
    T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + T(1) : whole;
}

// The remainder has the divisor's sign.
template <class T> __device__ __noinline__ if_real<T> remainder(T a, T b) {
    T rest = fmod(a, b);
    if (rest == T(0)) return copysign(T(0), b);
    return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

// The element type's next number after a towards b, both of that type.
template <class Bits, class T> __device__ inline Bits step_bits(Bits bits, T a, T b) {
    constexpr Bits SIGN = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
    if (a == T(0)) return b < T(0) ? SIGN | 1 : 1;
    return (a < b) == (a > T(0)) ? bits + 1 : bits - 1;
}
template <class Element> struct Next {  // float16, bfloat16
    __device__ static float after(float a, float b) {
        Element element = cast<Element>(a);
        element.bits = step_bits<uint16>(element.bits, a, b);
        return widen(element);
    }
};
template <> struct Next<float> {
    __device__ static float after(float a, float b) {
        return __uint_as_float(step_bits<uint32>(__float_as_uint(a), a, b));
    }
};
template <> struct Next<double> {
    __device__ static double after(double a, double b) {
        return __longlong_as_double(step_bits<uint64>(__double_as_longlong(a), a, b));
    }
};
template <class Element, class T> __device__ inline T nextafter(T a, T b) {
    if (isnan(a) || isnan(b)) return a + b;
    return a == b ? b : Next<Element>::after(a, b);
}

}  // namespace cyrt
