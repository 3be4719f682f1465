// start + i * step, computed in the widest type of the element type's kind.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "params/arange.h"

namespace cyrt {

__device__ inline int64 progress(int64 start, int64 step, int64 i) { return start + i * step; }
__device__ inline double progress(double start, double step, int64 i) {
    return fma(double(i), step, start);
}
__device__ inline complex128 progress(complex128 start, complex128 step, int64 i) {
    return {progress(start.re, step.re, i), progress(start.im, step.im, i)};
}

template <class T, class Wide> __device__ inline void arange(const Arange& args) {
    constexpr int N = items_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int64 begin = int64(blockIdx.x) * blockDim.x * N + threadIdx.x;
    Wide start = value_of<Wide>(args.start), step = value_of<Wide>(args.step);
    T* out = static_cast<T*>(args.out);
    __builtin_assume(__isGlobal(out));
#pragma unroll
    for (int k = 0; k < N; ++k) {
        int64 i = begin + k * blockDim.x;
        if (i < args.n) out[i] = cast<T>(progress(start, step, i));
    }
}

}  // namespace cyrt

#define CYRT_ARANGE(NAME, TYPE, WIDE)                                            \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Arange args) { \
        cyrt::arange<TYPE, WIDE>(args);                                          \
    }
