// Activation functions of neural networks and their derivatives, for float and double.
//
// Each function has the limit of its definition at infinities, where the plain formula multiplies
// an infinity by 0.
#pragma once

#include "real_math.cuh"
#include "params/activation.h"

namespace cyrt {

// a * weight, for a weight that falls faster than a grows: 0 where it underflows to 0.
template <class T> __device__ inline T weighted(T a, T weight) {
    return weight == T(0) ? T(0) : a * weight;
}

template <class T> __device__ inline if_real<T> relu(T a) { return maximum(a, T(0)); }
template <class T> __device__ inline if_real<T> relu_slope(T a) { return a > T(0) ? T(1) : T(0); }

// The part of the gradient a of maximum(b, c) that belongs to b: half of it if both are equal.
template <class T> __device__ inline if_real<T> greater_share(T a, T b, T c) {
    return b > c ? a : b == c ? a * T(0.5) : T(0);
}

template <class T> __device__ inline if_real<T> silu(T a) { return weighted(a, sigmoid(a)); }
template <class T> __device__ inline if_real<T> silu_slope(T a) {
    T s = sigmoid(a);
    return s + weighted(a, s * sigmoid(-a));
}

// Gaussian error linear units (Hendrycks and Gimpel, arXiv:1606.08415): a times the normal
// distribution's cumulative function. erfc keeps its accuracy where that is near 0.
constexpr double SQRT_HALF = 0.70710678118654752440;
constexpr double NORMAL_DENSITY_AT_0 = 0.39894228040143267794;  // 1 / sqrt(2 pi)
template <class T> __device__ inline if_real<T> normal_cdf(T a) {
    return T(0.5) * erfc(-a * T(SQRT_HALF));
}
template <class T> __device__ inline if_real<T> gelu(T a) { return weighted(a, normal_cdf(a)); }
template <class T> __device__ inline if_real<T> gelu_slope(T a) {
    return normal_cdf(a) + weighted(a, exp(T(-0.5) * a * a) * T(NORMAL_DENSITY_AT_0));
}

// The same paper's approximation, 0.5 a (1 + tanh(u)) = a sigmoid(2 u).
constexpr double TWICE_SQRT_2_OVER_PI = 1.59576912160573071176;
constexpr double GELU_CUBIC = 0.044715;
template <class T> __device__ inline if_real<T> gelu_tanh(T a) {
    return weighted(a, sigmoid(T(TWICE_SQRT_2_OVER_PI) * a * (T(1) + T(GELU_CUBIC) * a * a)));
}
template <class T> __device__ inline if_real<T> gelu_tanh_slope(T a) {
    T twice = T(TWICE_SQRT_2_OVER_PI) * a * (T(1) + T(GELU_CUBIC) * a * a);
    T steepness = T(TWICE_SQRT_2_OVER_PI) * (T(1) + T(3 * GELU_CUBIC) * a * a);
    T s = sigmoid(twice);
    return s + weighted(a * steepness, s * sigmoid(-twice));
}

template <class T> __device__ inline if_real<T> sigmoid_slope(T a) {
    return sigmoid(a) * sigmoid(-a);
}
template <class T> __device__ inline if_real<T> tanh_slope(T a) {
    return T(4) * sigmoid(T(2) * a) * sigmoid(T(-2) * a);
}

// Called, not inlined: loops that call it are unrolled.
template <class C> __device__ __noinline__ C activate(C a, uint32 activation) {
    switch (activation) {
    case ACTIVATION_RELU: return relu(a);
    case ACTIVATION_GELU: return gelu(a);
    case ACTIVATION_GELU_TANH: return gelu_tanh(a);
    case ACTIVATION_SILU: return silu(a);
    default: return a;
    }
}

}  // namespace cyrt
