// What kernels of products have in common: the step of a sum, and what becomes of the results.
#pragma once

#include "complex_math.cuh"
#include "memory.cuh"

namespace cyrt {

// The compiler has no choice in how a sum of real numbers is rounded, whatever is around it.
template <class C> __device__ inline void multiply_add(C& sum, C a, C b) { sum += a * b; }
__device__ inline void multiply_add(float& sum, float a, float b) { sum = __fmaf_rn(a, b, sum); }
__device__ inline void multiply_add(double& sum, double a, double b) { sum = __fma_rn(a, b, sum); }
template <class T>
__device__ inline void multiply_add(complex<T>& sum, complex<T> a, complex<T> b) {
    sum.re += a.re * b.re;
    sum.re -= a.im * b.im;
    sum.im += a.re * b.im;
    sum.im += a.im * b.re;
}

// The block's number among those of a product, and how many they are: all blocks of a launch, or, in a
// fused kernel, those of one of its products.
struct Blocks {
    uint32 number = blockIdx.x, count = gridDim.x;
};

// Each result is rounded and stored at its offset; all of them are contiguous. In a fused kernel other
// operations follow instead (see cyrt/builtin/fusion).
template <class T> struct StoreResults {
    static constexpr bool VECTORS = true;  // neighbouring ones may be stored at once
    __device__ void operator()(void* out, int64 offset, compute_of<T> result) const {
        global<T>(out)[offset] = cast<T>(result);
    }
};

}  // namespace cyrt
