// Kernels before and after a library's factorization, so that matrices fail as those of own kernels
// do.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// x = m x n matrices, or a triangle of Hermitian ones, whose diagonals are real: imaginary parts
// there are not read. Numbers that are not finite become 0, since a library's
// iterations need not end for them, and y, which is 0 before, becomes 1 for their matrix. Each
// matrix has several blocks.
template <class T> __device__ inline void finite_copy(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64 matrix = blockIdx.x / args.tiles, count = int64(args.m) * args.n;
    int64 first = int64(blockIdx.x % args.tiles) * blockDim.x + threadIdx.x;
    const T* in = global<const T>(args.a) + matrix * count;
    T* out = global<T>(args.x) + matrix * count;
    bool failed = false;
    for (int64 i = first; i < count; i += int64(args.tiles) * blockDim.x) {
        int row = i / args.n, column = i % args.n;
        bool other =
            args.flags & LINALG_UPPER ? column < row : args.flags & LINALG_LOWER && column > row;
        T value = other ? number<T>(0) : in[i];
        if (row == column && args.flags & (LINALG_UPPER | LINALG_LOWER)) {
            value = number<T>(real(value));
        }
        bool finite = isfinite(value);
        out[i] = finite ? value : number<T>(0);
        failed |= !finite;
    }
    failed = __syncthreads_or(failed);
    if (failed && threadIdx.x == 0) atomicOr(global<int>(args.y) + matrix, 1);
}

// The status of a matrix that a library was not asked to factor, since it has numbers that are not
// finite. Its results are NaN, and it has not failed.
constexpr int NOT_FINITE = -0x7fffffff;

// x, y and z have m, n and k numbers for each matrix. They become NaN if it has failed, or is not
// finite: if the library's status in a is not 0, or if b is given and not 0. T is real.
template <class T> __device__ inline void mark_failed(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64 matrix = blockIdx.x;
    int info = global<const int>(args.a)[matrix];
    if (info == 0 && args.b) info = global<const int>(args.b)[matrix];
    report(args, matrix, info == NOT_FINITE ? 0 : info);
    if (info == 0) return;
    fill_with_nan<T>(args.x, matrix, args.m);
    fill_with_nan<T>(args.y, matrix, args.n);
    fill_with_nan<T>(args.z, matrix, args.k);
}

// x = the lower triangle of the n x n factors in a, which are stored by columns. A matrix has failed
// if the library's status in b is not 0, or if the last number of its factor is NaN: all others lead
// to this one, and the library need not notice NaN. Each block has a tile.
template <class T> __device__ inline void lower_factor(const Linalg& args) {
    __shared__ T columns[WARP][WARP + 1];
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, across = (n + WARP - 1) / WARP, tile = blockIdx.x % args.tiles;
    int first_row = tile / across * WARP, first_column = tile % across * WARP;
    int64 matrix = blockIdx.x / args.tiles;
    const T* in = global<const T>(args.a) + matrix * n * n;
    T* out = global<T>(args.x) + matrix * n * n;
    int info = global<const int>(args.b)[matrix];
    RealOf<T> last = real(in[int64(n) * n - 1]);
    if (info == 0 && last != last) info = n;
    if (tile == 0) report(args, matrix, info);
    Spread all(WARP);
    for (int j = all.row; j < WARP; j += all.rows) {
        int row = first_row + all.column, column = first_column + j;
        if (column <= row && row < n) columns[j][all.column] = in[int64(column) * n + row];
    }
    __syncthreads();
    for (int i = all.row; i < WARP; i += all.rows) {
        int row = first_row + i, column = first_column + all.column;
        if (row >= n || column >= n) continue;
        T value = column <= row ? columns[all.column][i] : number<T>(0);
        out[int64(row) * n + column] = info ? Numbers<T>::nan() : value;
    }
}

// Checks what a library found out about L and U in z, with n rows and m columns, stored by columns.
// The pivots in x, from 1 on, become numbers of rows: those of NaN may be anything. The status in y
// becomes 0 if the pivot that it names is not 0: NaN makes no matrix singular. Where b is not 0 the
// matrix was not finite, which libraries need not notice: L and U become NaN.
template <class T> __device__ inline void check_lu(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int rows = args.n, columns = args.m, count = min(rows, columns);
    int64 matrix = blockIdx.x;
    int64* pivots = global<int64>(args.x) + matrix * count;
    int* status = global<int>(args.y) + matrix;
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        pivots[j] = min(max(pivots[j], int64(1)), int64(rows));
    }
    if (global<const int>(args.b)[matrix]) {
        fill_with_nan<T>(args.z, matrix, int64(rows) * columns);
        if (threadIdx.x == 0) *status = NOT_FINITE;
    } else if (threadIdx.x == 0 && *status > 0 && *status <= count) {
        int64 at = *status - 1;
        T pivot = global<const T>(args.z)[matrix * rows * columns + at * (rows + 1)];
        if (size_of(pivot) != 0) *status = 0;
    }
}

}  // namespace cyrt
