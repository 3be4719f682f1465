// Functions of float and double that several families call: NumPy's, with the array API standard's
// special cases. Those of elementwise operations alone are in elementwise_math.cuh.
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
CYRT_REAL_FUNCTION(CYRT_CALLED, cos, cosf, cos)
CYRT_REAL_FUNCTION(CYRT_CALLED, erfc, erfcf, erfc)
CYRT_REAL_FUNCTION(CYRT_INLINE, exp, expf, exp)
CYRT_REAL_FUNCTION(CYRT_INLINE, exp2, exp2f, exp2)
CYRT_REAL_FUNCTION(CYRT_INLINE, log, logf, log)
CYRT_REAL_FUNCTION(CYRT_CALLED, log1p, log1pf, log1p)
CYRT_REAL_FUNCTION(CYRT_INLINE, log2, log2f, log2)
CYRT_REAL_FUNCTION(CYRT_INLINE, round, rintf, rint)  // halves to the even one
CYRT_REAL_FUNCTION(CYRT_INLINE, rsqrt, rsqrtf, rsqrt)
CYRT_REAL_FUNCTION(CYRT_CALLED, sin, sinf, sin)
CYRT_REAL_FUNCTION(CYRT_INLINE, sqrt, sqrtf, sqrt)
CYRT_REAL_FUNCTION_2(CYRT_INLINE, copysign, copysignf, copysign)
CYRT_REAL_FUNCTION_2(CYRT_INLINE, hypot, hypotf, hypot)

__device__ inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
__device__ inline double fma(double a, double b, double c) { return ::fma(a, b, c); }

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

// NaN if a or b is NaN.
template <class T> __device__ inline if_real<T> maximum(T a, T b) {
    return a > b || isnan(a) ? a : b;
}
template <class T> __device__ inline if_real<T> minimum(T a, T b) {
    return a < b || isnan(a) ? a : b;
}

}  // namespace cyrt
