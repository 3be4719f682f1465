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

// The same in registers, by one warp: each lane has a column of the lower triangle. Each step moves
// the rows round; the elements above the diagonal stay 0.
template <class T> __device__ inline void cholesky_small(const Linalg& args) {
    constexpr int ROWS = MOST_ROWS<T>;
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, failed = 0, c = threadIdx.x;
    int64 matrix = blockIdx.x, count = int64(n) * n;
    bool upper = args.flags & LINALG_UPPER;
    // Column c of a lower triangle, or row c of an upper one.
    int first = upper ? c * n : c, next = upper ? 1 : n;
    const T* a = global<T>(args.a) + matrix * count + first;
    T* out = global<T>(args.x) + matrix * count + first;
    SharedVectors<T> shared = {work_of<T, true>(args, matrix)};
    T column[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        T value = i < n && c <= i ? a[i * next] : number<T>(0);
        column[i] = upper ? conj(value) : value;
    }
    R square_of_diagonal = 1;
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
        if (c == j) shared.store(j, column);
        __syncthreads();
        T l[ROWS];
        shared.load(j, l);
        R pivot = real(l[0]), inverse = R(1) / pivot;
        if (!(pivot > R(0))) {
            failed = j + 1;
            break;
        }
        T factor = number<T>(0), last = column[0];
        if (c > j) {
            factor = c < n ? divide(conj(shared.of_step(j)[c - j]), pivot, inverse) : factor;
            last = number<T>(0);
        }
        if (c == j) square_of_diagonal = pivot;
#pragma unroll
        for (int i = 1; i < ROWS; ++i) column[i - 1] = column[i] - l[i] * factor;
        column[ROWS - 1] = last;
    }
    report(args, matrix, failed);
    if (failed) return fill_with_nan<T>(args.x, matrix, count);
    R root = sqrt(square_of_diagonal), inverse = R(1) / root;
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
        int i = k - (ROWS - n);
        if (i < 0 || c >= n) continue;
        T value = i < c ? number<T>(0) : i == c ? number<T>(root) : column[k] * inverse;
        out[i * next] = upper ? conj(value) : value;
    }
}

}  // namespace cyrt
