// Systems of equations with triangular matrices.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// x = op(a)^-1 b, n x k, for a triangular a, as it is or transposed. A block solves for LINALG_TILE
// columns of b.
template <class T> __device__ inline void triangular(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, k = args.k, tile = blockIdx.x % args.tiles;
    int64 matrix = blockIdx.x / args.tiles;
    bool transposed = args.flags & LINALG_TRANSPOSED, unit = args.flags & LINALG_UNIT;
    bool conjugate = args.flags & LINALG_CONJUGATE;
    bool lower = !(args.flags & LINALG_UPPER) != transposed;
    int first = tile * LINALG_TILE, columns = min(LINALG_TILE, k - first);
    RowMajor<const T> in = {global<T>(args.a) + matrix * n * n, n};
    RowMajor<const T> right = {global<T>(args.b) + matrix * n * k + first, k};
    RowMajor<T> out = {global<T>(args.x) + matrix * n * k + first, k};
    RowMajor<T> a = {work_of<T, true>(args, matrix), odd(n)};
    RowMajor<T> b = {a.elements + n * a.stride, odd(columns)};
    Spread square(n), wide(columns);
    for (int i = square.row; i < n; i += square.rows) {
        for (int j = square.column; j < n; j += square.columns) {
            T value = conjugate ? conj(in(i, j)) : in(i, j);
            (transposed ? a(j, i) : a(i, j)) = value;
        }
    }
    for (int i = wide.row; i < n; i += wide.rows) {
        for (int c = wide.column; c < columns; c += wide.columns) b(i, c) = right(i, c);
    }
    int failed = 0;
    for (int i = threadIdx.x; !unit && i < n; i += blockDim.x) {
        if (size_of(in(i, i)) == 0) failed = 1;
    }
    failed = __syncthreads_or(failed);
    if (tile == 0) report(args, matrix, failed);
    for (int step = 0; step < n; ++step) {
        int j = lower ? step : n - 1 - step;
        T pivot = unit ? number<T>(1) : a(j, j), inverse = inverse_of(pivot);
        int from = lower ? j + 1 : 0, to = lower ? n : j;
        for (int i = from + wide.row; i < to; i += wide.rows) {
            T factor = a(i, j);
            for (int c = wide.column; c < columns; c += wide.columns) {
                b(i, c) = b(i, c) - factor * divide(b(j, c), pivot, inverse);
            }
        }
        __syncthreads();
    }
    for (int i = wide.row; i < n; i += wide.rows) {
        T pivot = unit ? number<T>(1) : a(i, i), inverse = inverse_of(pivot);
        for (int c = wide.column; c < columns; c += wide.columns) {
            out(i, c) = failed ? Numbers<T>::nan() : divide(b(i, c), pivot, inverse);
        }
    }
}

}  // namespace cyrt
