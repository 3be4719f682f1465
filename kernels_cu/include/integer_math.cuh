// Functions of integers and booleans where C's operators are not NumPy's.
#pragma once

#include "types.cuh"

namespace cyrt {

template <class T> struct is_integer {
    static constexpr bool value = false;
};
template <> struct is_integer<int32> {
    static constexpr bool value = true;
};
template <> struct is_integer<uint32> {
    static constexpr bool value = true;
};
template <> struct is_integer<int64> {
    static constexpr bool value = true;
};
template <> struct is_integer<uint64> {
    static constexpr bool value = true;
};

template <class T, bool = is_integer<T>::value> struct integer_only {};
template <class T> struct integer_only<T, true> {
    using type = T;
};
template <class T> using if_integer = typename integer_only<T>::type;

template <class T> constexpr bool is_signed = T(-1) < T(0);

template <class T> __device__ inline if_integer<T> abs(T a) { return a < T(0) ? T(0) - a : a; }
template <class T> __device__ inline if_integer<T> sign(T a) { return T(a > 0) - T(a < T(0)); }

// Towards minus infinity; 0 where the divisor is 0.
template <class T> __device__ __noinline__ if_integer<T> floor_divide(T a, T b) {
    if (b == 0) return 0;
    if (is_signed<T> && b == T(-1)) return T(0) - a;
    T quotient = a / b;
    return is_signed<T> && (a < T(0)) != (b < T(0)) && quotient * b != a ? quotient - 1 : quotient;
}

// The remainder has the divisor's sign; it is 0 if the divisor is 0.
template <class T> __device__ __noinline__ if_integer<T> remainder(T a, T b) {
    if (b == 0 || (is_signed<T> && b == T(-1))) return 0;
    T rest = a % b;
    return is_signed<T> && rest != 0 && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

// Euclid's algorithm.
template <class U> __device__ inline U common_divisor(U a, U b) {
    while (b) {
        U rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Of absolute values, which as signed integers may not exist. gcd(0, 0) is 0.
template <class T> __device__ __noinline__ if_integer<T> gcd(T a, T b) {
    if (sizeof(T) == 4) return T(common_divisor(uint32(abs(a)), uint32(abs(b))));
    return T(common_divisor(uint64(abs(a)), uint64(abs(b))));
}

// Wraps; 0 where one is 0.
template <class T> __device__ __noinline__ if_integer<T> lcm(T a, T b) {
    if (a == 0 || b == 0) return 0;
    if (sizeof(T) == 4) return T(uint32(abs(a)) / uint32(gcd(a, b)) * uint32(abs(b)));
    return T(uint64(abs(a)) / uint64(gcd(a, b)) * uint64(abs(b)));
}

// Wraps; a negative exponent gives the reciprocal, rounded to zero.
template <class T> __device__ __noinline__ if_integer<T> pow(T a, T b) {
    if (is_signed<T> && b < T(0)) {
        if (a == T(-1)) return b & 1 ? a : T(1);
        return T(a == 1);
    }
    T result = 1;
    for (; b; b >>= 1, a *= a) {
        if (b & 1) result *= a;
    }
    return result;
}

template <class T> __device__ inline if_integer<T> left_shift(T a, T b) {
    return uint64(b) < 8 * sizeof(T) ? a << b : T(0);
}
template <class T> __device__ inline if_integer<T> right_shift(T a, T b) {
    return uint64(b) < 8 * sizeof(T) ? a >> b : a < T(0) ? T(-1) : T(0);
}

template <class T> __device__ inline if_integer<T> maximum(T a, T b) { return a > b ? a : b; }
template <class T> __device__ inline if_integer<T> minimum(T a, T b) { return a < b ? a : b; }

__device__ inline bool maximum(bool a, bool b) { return a || b; }
__device__ inline bool minimum(bool a, bool b) { return a && b; }

template <class T> __device__ inline bool truth(T a) { return a != T(0); }

}  // namespace cyrt
