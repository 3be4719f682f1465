// Means, and numbers among the parameters of norm.cu.
#pragma once

#include "real_math.cuh"
#include "params/norm.h"

namespace cyrt {

template <class V> __device__ inline V number(const unsigned char (&bytes)[8]) {
    return *reinterpret_cast<const V*>(bytes);
}

// A row's sum over its length, which is exact where all elements are equal: the product with 1 / n
// is corrected by the remainder.
template <class V> __device__ inline V mean_of(V sum, V n, V share) {
    V mean = sum * share;
    return fma(fma(-mean, n, sum), share, mean);
}

}  // namespace cyrt
