// Results for matrices that a library has failed to factor.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// x, y and z have m, n and k numbers for each matrix. They become NaN if it has failed: if the
// library's status in a is not 0; or, where failures spread, if its last number in x is NaN.
// T is real.
template <class T> __device__ inline void mark_failed(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64 matrix = blockIdx.x;
    int info = global<const int>(args.a)[matrix];
    if (info == 0 && args.flags & LINALG_SPREADS) {
        T last = global<T>(args.x)[(matrix + 1) * args.m - 1];
        info = last != last;
    }
    report(args, matrix, info);
    if (info == 0) return;
    __syncthreads();  // all threads have read the last number
    fill_with_nan<T>(args.x, matrix, args.m);
    fill_with_nan<T>(args.y, matrix, args.n);
    fill_with_nan<T>(args.z, matrix, args.k);
}

}  // namespace cyrt
