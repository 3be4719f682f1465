// Functions that elementwise operations alone apply: NumPy's, with the special cases of C99's Annex G
// and the array API standard. After a change here the modules of elementwise.cu alone are compiled.
//
// The complex sin, cos and tan are the hyperbolic ones of the number turned by a right angle; so are
// asin and atan. asinh and acos follow Hull, Fairgrieve and Tang; atanh and sqrt Kahan. The long ones
// are not inlined: a kernel has several elements a thread.
#pragma once

#include "complex_math.cuh"
#include "real_math.cuh"

namespace cyrt {

// -- float and double ------------------------------------------------------------------------------

constexpr double LOG10_E = 0.43429448190325182765;

CYRT_REAL_FUNCTION(CYRT_CALLED, acos, acosf, acos)
CYRT_REAL_FUNCTION(CYRT_CALLED, acosh, acoshf, acosh)
CYRT_REAL_FUNCTION(CYRT_CALLED, asin, asinf, asin)
CYRT_REAL_FUNCTION(CYRT_CALLED, asinh, asinhf, asinh)
CYRT_REAL_FUNCTION(CYRT_CALLED, atan, atanf, atan)
CYRT_REAL_FUNCTION(CYRT_CALLED, atanh, atanhf, atanh)
CYRT_REAL_FUNCTION(CYRT_CALLED, cbrt, cbrtf, cbrt)
CYRT_REAL_FUNCTION(CYRT_INLINE, ceil, ceilf, ceil)
CYRT_REAL_FUNCTION(CYRT_CALLED, cosh, coshf, cosh)
CYRT_REAL_FUNCTION(CYRT_CALLED, erf, erff, erf)
CYRT_REAL_FUNCTION(CYRT_CALLED, erfinv, erfinvf, erfinv)
CYRT_REAL_FUNCTION(CYRT_CALLED, expm1, expm1f, expm1)
CYRT_REAL_FUNCTION(CYRT_CALLED, i0, cyl_bessel_i0f, cyl_bessel_i0)
CYRT_REAL_FUNCTION(CYRT_INLINE, floor, floorf, floor)
CYRT_REAL_FUNCTION(CYRT_CALLED, lgamma, lgammaf, lgamma)
CYRT_REAL_FUNCTION(CYRT_CALLED, log10, log10f, log10)
CYRT_REAL_FUNCTION(CYRT_CALLED, sinh, sinhf, sinh)
CYRT_REAL_FUNCTION(CYRT_CALLED, tan, tanf, tan)
CYRT_REAL_FUNCTION(CYRT_INLINE, tanh, tanhf, tanh)
CYRT_REAL_FUNCTION(CYRT_INLINE, trunc, truncf, trunc)
CYRT_REAL_FUNCTION_2(CYRT_CALLED, atan2, atan2f, atan2)
CYRT_REAL_FUNCTION_2(CYRT_CALLED, fmod, fmodf, fmod)

// Small whole exponents by multiplication, and 0.5 by the square root, rounded once: CUDA's functions
// are an ulp off where the power is a number of the type. The powers of -0 and minus infinity by 0.5
// are 0 and infinity, other than their square roots.
__device__ __noinline__ float pow(float a, float b) {
    double square = double(a) * double(a);
    if (b == 2) return float(square);
    if (b == 3) return float(square * double(a));
    if (b == 4) return float(square * square);
    if (b == 0.5f) return ::sqrtf(::isinf(a) ? ::fabsf(a) : a + 0.0f);
    return ::powf(a, b);
}
__device__ __noinline__ double pow(double a, double b) {
    if (b == 0.5) return ::sqrt(::isinf(a) ? ::fabs(a) : a + 0.0);
    if (b != 2 && b != 3 && b != 4) return ::pow(a, b);
    double square = a * a, error = fma(a, a, -square);
    if (b == 2) return square;
    double other = b == 3 ? a : square, power = square * other;
    double rest = fma(square, other, -power) + (b == 3 ? error * a : 2 * error * square);
    // The errors are numbers unless the power overflows, or they would be too small for the type.
    return abs(power) > 1e-200 && abs(power) <= Limits<double>::largest ? power + rest : power;
}

// Activation functions with a parameter, and those that few programs use; `_slope` is the derivative.
template <class T> __device__ inline if_real<T> leaky_relu(T a, T slope) {
    return a > T(0) ? a : a * slope;
}
template <class T> __device__ inline if_real<T> leaky_relu_slope(T a, T slope) {
    return a > T(0) ? T(1) : slope;
}
template <class T> __device__ inline if_real<T> elu(T a, T alpha) {
    return a > T(0) ? a : alpha * expm1(a);
}
template <class T> __device__ inline if_real<T> elu_slope(T a, T alpha) {
    return a > T(0) ? T(1) : alpha * exp(a);
}
// These constants keep a mean of 0 and a variance of 1 (Klambauer et al., arXiv:1706.02515).
constexpr double SELU_ALPHA = 1.6732632423543772848, SELU_SCALE = 1.0507009873554804934;
template <class T> __device__ inline if_real<T> selu(T a) {
    return T(SELU_SCALE) * elu(a, T(SELU_ALPHA));
}
template <class T> __device__ inline if_real<T> selu_slope(T a) {
    return T(SELU_SCALE) * elu_slope(a, T(SELU_ALPHA));
}
template <class T> __device__ inline if_real<T> hardswish(T a) {
    return a <= T(-3) ? T(-0.0) : a >= T(3) ? a : a * (a + T(3)) / T(6);
}
template <class T> __device__ inline if_real<T> hardswish_slope(T a) {
    return a <= T(-3) ? T(0) : a >= T(3) ? T(1) : a / T(3) + T(0.5);
}
// log(1 + exp(beta a)) / beta of a positive beta; beta a, which may overflow, is not computed.
template <class T> __device__ inline if_real<T> softplus(T a, T beta) {
    return maximum(a, T(0)) + log1p(exp(-abs(a) * beta)) / beta;
}

template <class T> __device__ __noinline__ if_real<T> logaddexp(T a, T b) {
    if (a == b) return a + T(LN_2);  // infinities too
    T larger = a > b ? a : b, difference = -abs(a - b);
    return isnan(difference) ? difference : larger + log1p(exp(difference));
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

// -- complex numbers -------------------------------------------------------------------------------

// exp(x) * factor where exp(x) alone may overflow.
template <class T> __device__ inline T exp_times(T x, T factor) {
    T half = exp(T(0.5) * x);
    return half * factor * half;
}
template <class T> constexpr T LARGE_EXPONENT = sizeof(T) == 4 ? T(80) : T(700);

template <class T> __device__ __noinline__ complex<T> exp(complex<T> z) {
    T x = z.re, y = z.im;
    if (y == T(0)) return {exp(x), y};
    if (!isfinite(y) && isinf(x)) {
        return x < T(0) ? complex<T>{T(0), T(0)} : complex<T>{x, y - y};
    }
    T s = sin(y), c = cos(y);
    if (x > LARGE_EXPONENT<T> && isfinite(x)) return {exp_times(x, c), exp_times(x, s)};
    T e = exp(x);
    return {e * c, e * s};
}

template <class T> __device__ __noinline__ complex<T> expm1(complex<T> z) {
    T x = z.re, y = z.im;
    if (y == T(0)) return {expm1(x) + T(0), y};  // the standard has +0 for -0
    if (isinf(x) && x < T(0)) return {T(-1), isfinite(y) ? T(0) * sin(y) : T(0)};
    if (isinf(x) && !isfinite(y)) return {x, y - y};
    T s = sin(y), half = sin(T(0.5) * y);
    if (x > LARGE_EXPONENT<T> && isfinite(x)) return {exp_times(x, cos(y)), exp_times(x, s)};
    return {expm1(x) * cos(y) - T(2) * half * half, exp(x) * s};
}

// x*x + y*y + rest, exact but for the last rounding where large terms cancel.
template <class T> __device__ inline T sum_of_squares(T x, T y, T rest) {
    T p = x * x, q = y * y;
    T errors = fma(x, x, -p) + fma(y, y, -q);
    return ((p + rest) + q) + errors;
}

template <class T> __device__ __noinline__ complex<T> log(complex<T> z) {
    T x = abs(z.re), y = abs(z.im), angle = atan2(z.im, z.re);
    T large = x > y ? x : y, small = x > y ? y : x;
    if (large > T(0.7) && large < T(1.5)) {
        return {T(0.5) * log1p(sum_of_squares(large, small, T(-1))), angle};
    }
    if (large > Limits<T>::largest / T(4) && isfinite(z)) {
        return {log(hypot(x / T(4), y / T(4))) + T(2 * LN_2), angle};
    }
    return {log(hypot(x, y)), angle};
}
template <class T> __device__ inline complex<T> scale(complex<T> z, double factor) {
    return {z.re * T(factor), z.im * T(factor)};
}
template <class T> __device__ inline complex<T> log2(complex<T> z) { return scale(log(z), LOG2_E); }
template <class T> __device__ inline complex<T> log10(complex<T> z) {
    return scale(log(z), LOG10_E);
}

template <class T> __device__ __noinline__ complex<T> log1p(complex<T> z) {
    T x = z.re, y = z.im;
    if (abs(x) < T(0.5) && abs(y) < T(1)) {
        return {T(0.5) * log1p(sum_of_squares(x, y, T(2) * x)), atan2(y, T(1) + x)};
    }
    return log(complex<T>{T(1) + x, y});
}

template <class T> __device__ __noinline__ complex<T> sqrt(complex<T> z) {
    T x = z.re, y = z.im;
    if (x == T(0) && y == T(0)) return {T(0), y};
    if (isinf(y)) return {infinity<T>(), y};
    if (isnan(x)) return {x, x};
    if (isinf(x)) {
        return x < T(0) ? complex<T>{abs(y - y), copysign(x, y)}
                        : complex<T>{x, copysign(y - y, y)};
    }
    T up = T(1);
    if (abs(x) >= Limits<T>::largest / T(4) || abs(y) >= Limits<T>::largest / T(4)) {
        x /= T(16), y /= T(16), up = T(4);
    } else if (abs(x) < Limits<T>::smallest * T(64) && abs(y) < Limits<T>::smallest * T(64)) {
        constexpr T FACTOR = sizeof(T) == 4 ? T(1 << 24) : T(1ll << 54);
        x *= FACTOR, y *= FACTOR, up = T(1) / (sizeof(T) == 4 ? T(1 << 12) : T(1 << 27));
    }
    T t = sqrt((abs(x) + hypot(x, y)) * T(0.5));
    return x >= T(0) ? complex<T>{t * up, y / (T(2) * t) * up}
                     : complex<T>{abs(y) / (T(2) * t) * up, copysign(t, y) * up};
}

template <class T> __device__ __noinline__ complex<T> sinh(complex<T> z) {
    T x = z.re, y = z.im;
    if (y == T(0)) return {sinh(x), y};
    if (!isfinite(y)) {
        if (x == T(0)) return {x, y - y};
        return isinf(x) ? complex<T>{infinity<T>(), y - y} : complex<T>{y - y, y - y};
    }
    T s = sin(y), c = cos(y);
    if (abs(x) > LARGE_EXPONENT<T> && isfinite(x)) {
        return {copysign(T(0.5), x) * exp_times(abs(x), c), exp_times(abs(x), s) * T(0.5)};
    }
    return {sinh(x) * c, cosh(x) * s};
}

template <class T> __device__ __noinline__ complex<T> cosh(complex<T> z) {
    T x = z.re, y = z.im;
    if (y == T(0)) return {cosh(x), isnan(x) ? y : copysign(T(0), x) * y};
    if (!isfinite(y)) {
        if (x == T(0)) return {y - y, x};
        return isinf(x) ? complex<T>{infinity<T>(), y - y} : complex<T>{y - y, y - y};
    }
    T s = sin(y), c = cos(y);
    if (abs(x) > LARGE_EXPONENT<T> && isfinite(x)) {
        return {exp_times(abs(x), c) * T(0.5), copysign(T(0.5), x) * exp_times(abs(x), s)};
    }
    return {cosh(x) * c, sinh(x) * s};
}

template <class T> __device__ __noinline__ complex<T> tanh(complex<T> z) {
    T x = z.re, y = z.im;
    if (isnan(x)) return {x, y == T(0) ? y : x};
    if (isinf(x)) return {copysign(T(1), x), copysign(T(0), y)};  // the standard, not Annex G
    if (!isfinite(y)) return {x == T(0) ? x : y - y, y - y};
    if (abs(x) >= (sizeof(T) == 4 ? T(11) : T(22))) {
        T e = exp(-abs(x));
        return {copysign(T(1), x), T(4) * sin(y) * cos(y) * e * e};
    }
    T t = tan(y), beta = T(1) + t * t, s = sinh(x), rho = sqrt(T(1) + s * s);
    if (isinf(t)) return {rho / s, T(1) / t};
    T below = T(1) + beta * s * s;
    return {beta * rho * s / below, t / below};
}

template <class T> __device__ inline complex<T> sin(complex<T> z) {
    complex<T> w = sinh(complex<T>{-z.im, z.re});
    return {w.im, -w.re};
}
template <class T> __device__ inline complex<T> cos(complex<T> z) {
    return cosh(complex<T>{-z.im, z.re});
}
template <class T> __device__ inline complex<T> tan(complex<T> z) {
    complex<T> w = tanh(complex<T>{-z.im, z.re});
    return {w.im, -w.re};
}

// (hypot(a, b) - b) / 2, given the hypotenuse, without cancellation.
template <class T> __device__ inline T half_excess(T a, T b, T hypotenuse) {
    if (b < T(0)) return (hypotenuse - b) / T(2);
    if (b == T(0)) return a / T(2);
    return a * a / (hypotenuse + b) / T(2);
}

// For x, y >= 0: the real part of asinh(x + iy), and its imaginary part as the angle of
// (adjacent, opposite).
template <class T> struct Arc {
    T real, adjacent, opposite;
};
template <class T> __device__ __noinline__ Arc<T> arc(T x, T y) {
    constexpr T EPSILON = Limits<T>::epsilon;
    Arc<T> result;
    T r = hypot(x, y + T(1)), s = hypot(x, y - T(1));
    T a = (r + s) / T(2);
    if (a < T(1)) a = T(1);
    if (a >= T(10)) {
        result.real = log(a + sqrt(a * a - T(1)));
    } else if (y == T(1) && x < EPSILON * EPSILON / T(128)) {
        result.real = sqrt(x);
    } else if (x >= EPSILON * abs(y - T(1))) {
        T less_one = half_excess(x, T(1) + y, r) + half_excess(x, T(1) - y, s);
        result.real = log1p(less_one + sqrt(less_one * (a + T(1))));
    } else if (y < T(1)) {
        result.real = x / sqrt((T(1) - y) * (T(1) + y));
    } else {
        result.real = log1p((y - T(1)) + sqrt((y - T(1)) * (y + T(1))));
    }
    result.opposite = y;
    if (y == T(1) && x < EPSILON / T(128)) {
        result.adjacent = sqrt(x) * sqrt((a + y) / T(2));
    } else if (x >= EPSILON * abs(y - T(1))) {
        T difference = half_excess(x, y + T(1), r) + half_excess(x, y - T(1), s);
        result.adjacent = sqrt(difference * (a + y));
    } else if (y > T(1)) {
        constexpr T UP = T(4) / EPSILON / EPSILON;
        result.adjacent = x * UP * y / sqrt((y + T(1)) * (y - T(1)));
        result.opposite = y * UP;
    } else {
        result.adjacent = sqrt((T(1) - y) * (T(1) + y));
    }
    return result;
}

template <class T> __device__ __noinline__ complex<T> asinh(complex<T> z) {
    T x = abs(z.re), y = abs(z.im), re, im;
    if (isnan(x) || isnan(y)) {
        if (isinf(x)) return {z.re, y};
        if (isinf(y)) return {z.im, x};
        return y == T(0) ? complex<T>{x, z.im} : complex<T>{x + y, x + y};
    }
    if (x > T(1) / Limits<T>::epsilon || y > T(1) / Limits<T>::epsilon) {
        complex<T> w = log(complex<T>{x, y});
        re = w.re + T(LN_2), im = w.im;
    } else {
        Arc<T> found = arc(x, y);
        re = found.real, im = atan2(found.opposite, found.adjacent);
    }
    return {copysign(re, z.re), copysign(im, z.im)};
}

template <class T> __device__ __noinline__ complex<T> acos(complex<T> z) {
    T x = abs(z.re), y = abs(z.im), re, im;
    if (isnan(x) || isnan(y)) {
        if (isinf(x)) return {y, -infinity<T>()};
        if (isinf(y)) return {x, -z.im};
        return x == T(0) ? complex<T>{T(PI / 2), y} : complex<T>{x + y, x + y};
    }
    if (x > T(1) / Limits<T>::epsilon || y > T(1) / Limits<T>::epsilon) {
        complex<T> w = log(complex<T>{z.re, y});
        re = w.im, im = w.re + T(LN_2);
    } else {
        Arc<T> found = arc(y, x);
        re = atan2(found.adjacent, copysign(found.opposite, z.re)), im = found.real;
    }
    return {re, signbit(z.im) ? im : -im};
}

template <class T> __device__ inline complex<T> acosh(complex<T> z) {
    complex<T> w = acos(z);
    if (isnan(w.re) && !isnan(w.im)) return {abs(w.im), w.re};
    if (isnan(w.im)) return {w.im, w.re};
    return {abs(w.im), copysign(w.re, z.im)};
}

template <class T> __device__ __noinline__ complex<T> atanh(complex<T> z) {
    constexpr T EPSILON = Limits<T>::epsilon;
    T x = abs(z.re), y = abs(z.im), re, im;
    if (y == T(0) && x <= T(1)) return {atanh(z.re), z.im};
    if (x == T(0)) return {z.re, atan(z.im)};
    if (isinf(y)) return {copysign(T(0), z.re), copysign(T(PI / 2), z.im)};
    if (isnan(x) || isnan(y)) {
        return isinf(x) ? complex<T>{copysign(T(0), z.re), y} : complex<T>{x + y, x + y};
    }
    if (x > T(1) / EPSILON || y > T(1) / EPSILON) {
        T size = hypot(x / T(2), y / T(2));
        re = isinf(x) ? T(0) : x / T(4) / size / size, im = T(PI / 2);
    } else {
        re = x == T(1) && y < EPSILON ? (T(LN_2) - log(y)) / T(2)
                                      : log1p(T(4) * x / ((x - T(1)) * (x - T(1)) + y * y)) / T(4);
        im = x == T(1) ? atan2(T(2), -y) / T(2)
                       : atan2(T(2) * y, (T(1) - x) * (T(1) + x) - y * y) / T(2);
    }
    return {copysign(re, z.re), copysign(im, z.im)};
}

template <class T> __device__ inline complex<T> asin(complex<T> z) {
    complex<T> w = asinh(complex<T>{z.im, z.re});
    return {w.im, w.re};
}
template <class T> __device__ inline complex<T> atan(complex<T> z) {
    complex<T> w = atanh(complex<T>{z.im, z.re});
    return {w.im, w.re};
}

// Errors of log(a) grow by b: it wants more digits than the result has.
__device__ inline complex128 exp_log(complex128 a, complex128 b) { return exp(b * log(a)); }
__device__ inline complex64 exp_log(complex64 a, complex64 b) {
    complex128 result = exp_log(complex128{a.re, a.im}, complex128{b.re, b.im});
    return {float(result.re), float(result.im)};
}

// Small whole exponents by multiplication, as NumPy; else exp(b * log(a)).
template <class T> __device__ __noinline__ complex<T> pow(complex<T> a, complex<T> b) {
    if (!truth(b)) return {T(1), T(0)};
    if (!truth(a)) {
        return b.re > T(0) ? complex<T>{T(0), T(0)}
                           : complex<T>{not_a_number<T>(), not_a_number<T>()};
    }
    if (b.im == T(0) && abs(b.re) < T(100) && b.re == trunc(b.re)) {
        int n = int(abs(b.re));
        for (; !(n & 1); n >>= 1) a = a * a;
        complex<T> result = a;
        while (n >>= 1) {
            a = a * a;
            if (n & 1) result = result * a;
        }
        return b.re < T(0) ? reciprocal(result) : result;
    }
    return exp_log(a, b);
}

}  // namespace cyrt
