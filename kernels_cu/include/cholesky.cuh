// Cholesky's factorization.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// a = x x^H with a lower triangular x, or x^H x with an upper triangular one; n x n. The columns stay
// unscaled until the end, so that a step needs one barrier.
template <class T> __device__ inline void cholesky(const Linalg& args) {
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, failed = 0;
    int64 matrix = blockIdx.x, count = int64(n) * n;
    bool upper = args.flags & LINALG_UPPER;
    RowMajor<const T> a = {global<T>(args.a) + matrix * count, n};
    RowMajor<T> out = {global<T>(args.x) + matrix * count, n};
    RowMajor<T> l = {work_of<T, true>(args, matrix), odd(n)};
    Spread all(n);
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j <= i; j += all.columns)
            l(i, j) = upper ? conj(a(j, i)) : a(i, j);
    }
    for (int j = 0; j < n; ++j) {
        __syncthreads();
        R pivot = real(l(j, j)), inverse = R(1) / pivot;
        if (!(pivot > R(0))) {
            failed = j + 1;
            break;
        }
        Spread rest(n - j - 1);
        for (int i = j + 1 + rest.row; i < n; i += rest.rows) {
            T factor = divide(l(i, j), pivot, inverse);
            for (int k = j + 1 + rest.column; k <= i; k += rest.columns) {
                l(i, k) = l(i, k) - factor * conj(l(k, j));
            }
        }
    }
    __syncthreads();
    report(args, matrix, failed);
    if (failed) return fill_with_nan<T>(args.x, matrix, count);
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j < i; j += all.columns) {
            R root = sqrt(real(l(j, j)));
            T value = divide(l(i, j), root, R(1) / root);
            out(i, j) = upper ? number<T>(0) : value;
            out(j, i) = upper ? conj(value) : number<T>(0);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out(i, i) = number<T>(sqrt(real(l(i, i))));
}

}  // namespace cyrt
