// Arithmetic of complex numbers, with the special cases of C99's Annex G and the array API standard.
// Functions such as exp are in elementwise_math.cuh.
#pragma once

#include "integer_math.cuh"
#include "real_math.cuh"

namespace cyrt {

template <class T> __device__ inline complex<T> operator+(complex<T> a, complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class T> __device__ inline complex<T> operator-(complex<T> a, complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}
template <class T> __device__ inline complex<T> operator-(complex<T> a) { return {-a.re, -a.im}; }
template <class T> __device__ inline complex<T> operator*(complex<T> a, complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's: nothing overflows that need not.
template <class T> __device__ inline complex<T> operator/(complex<T> a, complex<T> b) {
    if (abs(b.re) >= abs(b.im)) {
        if (b.re == T(0) && b.im == T(0)) return {a.re / abs(b.re), a.im / abs(b.re)};
        T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    T ratio = b.re / b.im, scale = T(1) / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T> __device__ inline bool operator==(complex<T> a, complex<T> b) {
    return a.re == b.re && a.im == b.im;
}
template <class T> __device__ inline bool operator!=(complex<T> a, complex<T> b) {
    return !(a == b);
}

template <class T> __device__ inline bool truth(complex<T> a) {
    return a.re != T(0) || a.im != T(0);
}
template <class T> __device__ inline bool isnan(complex<T> a) { return isnan(a.re) || isnan(a.im); }
template <class T> __device__ inline bool isinf(complex<T> a) { return isinf(a.re) || isinf(a.im); }
template <class T> __device__ inline bool isfinite(complex<T> a) {
    return isfinite(a.re) && isfinite(a.im);
}
template <class T> __device__ inline complex<T> conj(complex<T> a) { return {a.re, -a.im}; }
template <class T> __device__ inline T abs(complex<T> a) { return hypot(a.re, a.im); }
template <class T> __device__ inline complex<T> round(complex<T> a) {
    return {round(a.re), round(a.im)};
}
template <class T> __device__ inline complex<T> reciprocal(complex<T> a) {
    return complex<T>{T(1), T(0)} / a;
}
template <class T> __device__ inline complex<T> sign(complex<T> a) {
    if (isnan(a)) return {not_a_number<T>(), not_a_number<T>()};
    if (!truth(a)) return {T(0), T(0)};
    if (isinf(a.re) != isinf(a.im)) {
        return isinf(a.re) ? complex<T>{copysign(T(1), a.re), T(0)}
                           : complex<T>{T(0), copysign(T(1), a.im)};
    }
    T size = abs(a);
    return {a.re / size, a.im / size};
}

}  // namespace cyrt
