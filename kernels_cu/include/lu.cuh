// The factorization P A = L U with partial pivoting, and what follows from it.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// The row, from j on, of the element of column j that is greatest by size. Each warp finds it.
template <class T>
__device__ inline int pivot_row(RowMajor<T> a, int j, int rows, RealOf<T>* size) {
    using R = RealOf<T>;
    R best = R(-1);
    int at = j;
    for (int i = j + threadIdx.x % WARP; i < rows; i += WARP) {
        R each = size_of(a(i, j));
        if (each > best) best = each, at = i;
    }
#pragma unroll
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        R other = shuffle_xor(best, lanes);
        int there = shuffle_xor(at, lanes);
        if (other > best || (other == best && there < at)) best = other, at = there;
    }
    *size = best;
    return at;
}

template <class T>
__device__ inline void swap_rows(RowMajor<T> a, int i, int j, int columns) {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        T value = a(i, c);
        a(i, c) = a(j, c);
        a(j, c) = value;
    }
}

// Subtracts multiples of row j of b, from column `first` on, from the rows `from` to `to`, so that
// the elements of column j of a would become 0.
template <class T>
__device__ inline void eliminate(RowMajor<T> a, int j, T pivot, T inverse, RowMajor<T> b, int first,
                                 int columns, int from, int to) {
    Spread rest(columns - first);
    for (int i = from + rest.row; i < to; i += rest.rows) {
        T factor = divide(a(i, j), pivot, inverse);
        for (int c = first + rest.column; c < columns; c += rest.columns) {
            b(i, c) = b(i, c) - factor * b(j, c);
        }
    }
}

// Factors a, m x n, in place; columns of L stay unscaled. The same happens to the k columns of b,
// which become L^-1 P b. Returns 1 + the first column without a pivot, or 0.
template <class T>
__device__ inline int factor(RowMajor<T> a, int m, int n, RowMajor<T> b, int k, int32* pivots,
                             bool complete, int* swaps) {
    int failed = 0;
    *swaps = 0;
    for (int j = 0; j < min(m, n); ++j) {
        __syncthreads();
        RealOf<T> size;
        int at = pivot_row(a, j, m, &size);
        if (pivots && threadIdx.x == 0) pivots[j] = at;
        if (size == 0) {
            if (!failed) failed = j + 1;
            if (!complete) break;
            continue;
        }
        __syncthreads();
        if (at != j) {
            ++*swaps;
            swap_rows(a, j, at, n);
            swap_rows(b, j, at, k);
            __syncthreads();
        }
        T pivot = a(j, j), inverse = inverse_of(pivot);
        eliminate(a, j, pivot, inverse, a, j + 1, n, j + 1, m);
        eliminate(a, j, pivot, inverse, b, 0, k, j + 1, m);
    }
    __syncthreads();
    return failed;
}

// x = L and U in one matrix, m x n; y = the row that each row was exchanged with.
template <class T, bool SHARED> __device__ inline void lu(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int m = args.m, n = args.n, swaps;
    int64 matrix = blockIdx.x, count = int64(m) * n;
    RowMajor<const T> in = {global<T>(args.a) + matrix * count, n};
    RowMajor<T> out = {global<T>(args.x) + matrix * count, n};
    RowMajor<T> a = SHARED ? RowMajor<T>{work_of<T, true>(args, matrix), odd(n)} : out;
    Spread all(n);
    for (int i = all.row; i < m; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) a(i, j) = in(i, j);
    }
    int failed = factor(a, m, n, a, 0, global<int32>(args.y) + matrix * min(m, n), true, &swaps);
    report(args, matrix, failed);
    for (int i = all.row; i < m; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) {
            T value = a(i, j), pivot = a(min(i, j), j);
            if (j < i && size_of(pivot) != 0) value = divide(value, pivot, inverse_of(pivot));
            out(i, j) = value;
        }
    }
}

// x = a, m x k, with rows exchanged as the n pivots in b say, or exchanged back.
template <class T, bool SHARED> __device__ inline void exchange(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int m = args.m, n = args.n, k = args.k, failed = 0;
    int64 matrix = blockIdx.x, count = int64(m) * k;
    RowMajor<const T> in = {global<T>(args.a) + matrix * count, k};
    RowMajor<T> out = {global<T>(args.x) + matrix * count, k};
    const int32* pivots = global<int32>(args.b) + matrix * n;
    int32* rows = reinterpret_cast<int32*>(work_of<T, SHARED>(args, matrix));
    for (int i = threadIdx.x; i < m; i += blockDim.x) rows[i] = i;
    for (int j = threadIdx.x; j < n; j += blockDim.x) failed |= !(pivots[j] >= j && pivots[j] < m);
    failed = __syncthreads_or(failed);
    for (int step = 0; !failed && threadIdx.x == 0 && step < n; ++step) {
        int j = args.flags & LINALG_TRANSPOSED ? n - 1 - step : step, at = pivots[j], row = rows[j];
        rows[j] = rows[at];
        rows[at] = row;
    }
    __syncthreads();
    report(args, matrix, failed);
    Spread wide(k);
    for (int i = wide.row; i < m; i += wide.rows) {
        for (int c = wide.column; c < k; c += wide.columns) {
            out(i, c) = failed ? Numbers<T>::nan() : in(rows[i], c);
        }
    }
}

// x = a^-1 b, or a^-1; n x k.
template <class T> __device__ inline void solve(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, k = args.k, swaps;
    int64 matrix = blockIdx.x, count = int64(n) * k;
    RowMajor<const T> in = {global<T>(args.a) + matrix * n * n, n};
    RowMajor<const T> right = {global<T>(args.b) + matrix * count, k};
    RowMajor<T> out = {global<T>(args.x) + matrix * count, k};
    RowMajor<T> a = {work_of<T, true>(args, matrix), odd(n + k)}, b = {a.elements + n, a.stride};
    Spread square(n), wide(k);
    for (int i = square.row; i < n; i += square.rows) {
        for (int j = square.column; j < n; j += square.columns) a(i, j) = in(i, j);
    }
    for (int i = wide.row; i < n; i += wide.rows) {
        for (int c = wide.column; c < k; c += wide.columns) {
            b(i, c) = args.flags & LINALG_IDENTITY ? number<T>(i == c) : right(i, c);
        }
    }
    int failed = factor(a, n, n, b, k, static_cast<int32*>(nullptr), false, &swaps);
    report(args, matrix, failed);
    if (failed) return fill_with_nan<T>(args.x, matrix, count);
    for (int j = n - 1; j > 0; --j) {
        T pivot = a(j, j), inverse = inverse_of(pivot);
        eliminate(a, j, pivot, inverse, b, 0, k, 0, j);
        __syncthreads();
    }
    for (int i = wide.row; i < n; i += wide.rows) {
        T pivot = a(i, i), inverse = inverse_of(pivot);
        for (int c = wide.column; c < k; c += wide.columns) {
            out(i, c) = divide(b(i, c), pivot, inverse);
        }
    }
}

// A number that is greater for a greater size, but for the last bits.
__device__ inline uint32 order_of(float size) { return __float_as_uint(size); }
__device__ inline uint32 order_of(double size) { return __double2hiint(size); }

// x = a^-1, for LINALG_IDENTITY, by the method of Gauss and Jordan, in registers, by one warp: each
// lane has a row. Rows are exchanged at the end only. A column of the inverse replaces each
// column that has become one of the identity.
template <class T> __device__ inline void solve_small(const Linalg& args) {
    constexpr int ROWS = MOST_ROWS<T>;
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, failed = 0, lane = threadIdx.x;
    int64 matrix = blockIdx.x, count = int64(n) * n;
    RowMajor<const T> in = {global<T>(args.a) + matrix * count, n};
    RowMajor<T> out = {global<T>(args.x) + matrix * count, n};
    SharedVectors<T> shared = {work_of<T, true>(args, matrix)};
    RowMajor<T> a = {shared.elements + 2 * ROWS, odd(n)};
    Spread all(n);
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) a(i, j) = in(i, j);
    }
    __syncthreads();
    T row[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j) row[j] = lane < n && j < n ? a(lane, j) : number<T>(0);
    int step = lane < n ? -1 : n;  // the one whose pivot is in this row
    int at = 0;                    // the row of the pivot of step number `lane`
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
        R size = size_of(row[0]);
        uint32 key = (order_of(size) & ~63u) | (size > R(0) ? 32u : 0u) | (31u - lane);
        key = __reduce_max_sync(0xffffffffu, step < 0 ? key : 0);
        if (key < 32) {
            failed = j + 1;
            break;
        }
        int pivot_row = 31 - (key & 31);
        if (lane == j) at = pivot_row;
        if (lane == pivot_row) {
            step = j;
            shared.store(j, row);
#pragma unroll
            for (int k = 0; k < ROWS; ++k) row[k] = number<T>(0);
        }
        __syncthreads();
        T pivots[ROWS];
        shared.load(j, pivots);
        T inverse = inverse_of(pivots[0]);
        R scale = 1;  // the inverse of a subnormal pivot may be infinite
        if (!isfinite(inverse)) {
            scale = R(1) / Limits<R>::epsilon;
#pragma unroll
            for (int k = 0; k < ROWS; ++k) pivots[k] = pivots[k] * scale;
            inverse = inverse_of(pivots[0]);
        }
        T factor = lane == pivot_row ? -inverse : row[0] * inverse;
#pragma unroll
        for (int k = 1; k < ROWS; ++k) row[k - 1] = row[k] - factor * pivots[k];
        row[ROWS - 1] = -factor * scale;
    }
    report(args, matrix, failed);
    if (failed) return fill_with_nan<T>(args.x, matrix, count);
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
        int j = k - (ROWS - n), column = __shfl_sync(0xffffffffu, at, max(j, 0));
        if (j >= 0 && lane < n) a(step, column) = row[k];
    }
    __syncthreads();
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) out(i, j) = a(i, j);
    }
}

template <class T> __device__ inline if_real<T> times_power_of_two(T a, int exponent) {
    return ::ldexp(a, exponent);
}
template <class T>
__device__ inline complex<T> times_power_of_two(complex<T> a, int exponent) {
    return {::ldexp(a.re, exponent), ::ldexp(a.im, exponent)};
}

// A number of about 1 times a power of two: a product of many overflows only if its value does.
template <class T> struct ScaledNumber {
    T factor;
    int exponent;

    __device__ static ScaledNumber of(T number, int exponent = 0) {
        int own = 0;
        RealOf<T> size = maximum(abs(real(number)), abs(imaginary(number)));
        if (isfinite(size)) ::frexp(size, &own);
        return {times_power_of_two(number, -own), exponent + own};
    }
    __device__ ScaledNumber operator*(ScaledNumber other) const {
        return of(factor * other.factor, exponent + other.exponent);
    }
    __device__ T value() const { return times_power_of_two(factor, exponent); }
};

// x = the determinant; or x = its sign, and y = the logarithm of its magnitude.
template <class T> __device__ inline void determinant(const Linalg& args) {
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n, swaps;
    int64 matrix = blockIdx.x;
    RowMajor<const T> in = {global<T>(args.a) + matrix * n * n, n};
    RowMajor<T> a = {work_of<T, true>(args, matrix), odd(n)};
    Spread all(n);
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) a(i, j) = in(i, j);
    }
    factor(a, n, n, a, 0, static_cast<int32*>(nullptr), true, &swaps);
    if (threadIdx.x >= WARP) return;
    ScaledNumber<T> product =
        ScaledNumber<T>::of(number<T>(threadIdx.x == 0 && swaps % 2 ? -1 : 1));
    R logarithm = 0;
    for (int j = threadIdx.x; j < n; j += WARP) {
        T pivot = a(j, j);
        if (args.flags & LINALG_LOG) {
            logarithm += log(abs(pivot));
            pivot = sign(pivot);
        }
        product = product * ScaledNumber<T>::of(pivot);
    }
    product = warp_reduce(product, [](ScaledNumber<T> p, ScaledNumber<T> q) { return p * q; });
    logarithm = warp_reduce(logarithm, [](R p, R q) { return p + q; });
    if (threadIdx.x == 0) {
        global<T>(args.x)[matrix] = product.value();
        if (args.flags & LINALG_LOG) global<R>(args.y)[matrix] = logarithm;
    }
}

}  // namespace cyrt
