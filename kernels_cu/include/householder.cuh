// Householder's reflections, and the factorization A = Q R.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// I - tau u u^H maps a vector to a multiple of the first unit vector, `beta`. u is the vector
// itself but for its first element, `head`. tau is 0 for a vector that is such a multiple.
template <class T> struct Reflection {
    T head, tau, beta;
};

// Vectors whose sum of squares is smaller are scaled first: the third power of its root, by which the
// reflection divides, might not be a normal number.
template <class R> constexpr R LEAST_SQUARES = 1e-200;
template <> constexpr float LEAST_SQUARES<float> = 1e-24f;

// Of a vector with this first element, and this sum of the others' squares.
template <class T> __device__ inline Reflection<T> reflection_of(T alpha, RealOf<T> others) {
    using R = RealOf<T>;
    if (others == 0 && imaginary(alpha) == 0) return {number<T>(1), number<T>(0), alpha};
    R norm = sqrt(square(alpha) + others), beta = real(alpha) > 0 ? -norm : norm;
    T head = alpha - number<T>(beta);
    R scale = R(1) / (beta * square(head));
    return {head, number<T>((beta - real(alpha)) * scale, -imaginary(alpha) * scale),
            number<T>(beta)};
}

// The sum of squares of a column's elements from row `first` on.
template <class T>
__device__ inline RealOf<T> squares_of(const Groups& group, ColumnMajor<T> a, int j, int first,
                                       int rows) {
    RealOf<T> sum = 0;
    for (int i = first + group.lane; i < rows; i += group.lanes) sum += square(a(i, j));
    return group.sum(sum);
}

// Multiplies a column's elements from row `first` on by a power of two, so that the largest one is
// about 1. Returns the power by which they were divided. All threads of the block take part.
template <class T>
__device__ inline RealOf<T> enlarge(const Groups& group, ColumnMajor<T> a, int j, int first,
                                    int rows) {
    using R = RealOf<T>;
    R largest = 0;
    for (int i = first + group.lane; i < rows; i += group.lanes) {
        largest = maximum(largest, size_of(a(i, j)));
    }
    largest = warp_reduce(largest, [](R x, R y) { return maximum(x, y); }, group.lanes);
    R scale = power_below(largest);
    __syncthreads();
    for (int i = first + threadIdx.x; i < rows; i += blockDim.x) {
        a(i, j) = a(i, j) * (R(1) / scale);
    }
    __syncthreads();
    return scale;
}

// Subtracts `factor` u (u^H c) from a column c, `lanes` of a warp in step. u has its elements in
// column j of a, from row `first` on, with its head there.
template <class T>
__device__ inline void reflect(const Groups& group, ColumnMajor<T> a, int j, int first, int rows,
                               T head, T factor, ColumnMajor<T> b, int c, bool active) {
    T sum = number<T>(0);
    for (int i = first + group.lane; i < rows; i += group.lanes) {
        if (active) sum = sum + conj(i == first ? head : a(i, j)) * b(i, c);
    }
    sum = group.sum(sum) * factor;
    for (int i = first + group.lane; i < rows; i += group.lanes) {
        if (active) b(i, c) = b(i, c) - (i == first ? head : a(i, j)) * sum;
    }
}

// x = Q, m x q, and y = R, q x n; or only y = R. q is k, min(m, n) or m. With LINALG_REFLECTIONS, x
// has the vectors u in its columns, and z has their 1 / tau; for tau = 0 these are 0 and 1.
template <class T, bool SHARED> __device__ inline void qr(const Linalg& args) {
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int m = args.m, n = args.n, q = args.k, steps = min(m, n);
    bool vectors = args.flags & LINALG_VECTORS;
    int64 matrix = blockIdx.x;
    RowMajor<const T> in = {global<T>(args.a) + matrix * m * n, n};
    RowMajor<T> r = {global<T>(args.y) + matrix * q * n, n};
    T* work = work_of<T, SHARED>(args, matrix);
    Reflection<T>* reflections = reinterpret_cast<Reflection<T>*>(work);
    ColumnMajor<T> a = {work + 3 * steps, odd(m)};
    ColumnMajor<T> basis = {a.elements + a.stride * n, odd(m)};
    Spread all(n);
    R largest = 0;
    for (int i = all.row; i < m; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) {
            T value = in(i, j);
            largest = maximum(largest, maximum(abs(real(value)), abs(imaginary(value))));
            a(i, j) = value;
        }
    }
    // Squares of elements neither overflow nor vanish if the largest one is about 1.
    R scale = power_below(greatest(largest));
    if (!isfinite(scale)) scale = R(1);
    for (int i = all.row; i < m; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) a(i, j) = a(i, j) * (R(1) / scale);
    }
    Groups group(m);
    for (int j = 0; j < steps; ++j) {
        __syncthreads();
        R others = squares_of(group, a, j, j + 1, m), size = R(1);
        // All groups have the same sum.
        if (others + square(a(j, j)) < LEAST_SQUARES<R>) {
            size = enlarge(group, a, j, j, m);
            others = squares_of(group, a, j, j + 1, m);
        }
        Reflection<T> each = reflection_of(a(j, j), others);
        if (threadIdx.x == 0) {
            reflections[j] = {each.head, each.tau, each.beta * size};
        }
        // Lanes of a warp stay together: groups beyond the last column take part in the sums.
        for (int base = j + 1; base < n; base += group.count) {
            int c = base + group.index;
            reflect(group, a, j, j, m, each.head, conj(each.tau), a, c, c < n);
        }
    }
    __syncthreads();
    for (int i = all.row; i < q; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) {
            T value = i > j ? number<T>(0) : i == j ? reflections[j].beta : a(i, j);
            r(i, j) = value * scale;
        }
    }
    if (args.flags & LINALG_REFLECTIONS) {
        RowMajor<T> u = {global<T>(args.x) + matrix * m * steps, steps};
        Spread wide(steps);
        for (int i = wide.row; i < m; i += wide.rows) {
            for (int j = wide.column; j < steps; j += wide.columns) {
                bool none = size_of(reflections[j].tau) == 0;
                u(i, j) = none || i < j ? number<T>(0) : i == j ? reflections[j].head : a(i, j);
                if (i == 0) {
                    global<T>(args.z)[matrix * steps + j] =
                        none ? number<T>(1) : inverse_of(reflections[j].tau);
                }
            }
        }
        return;
    }
    if (!vectors) return;
    for (int base = 0; base < q; base += group.count) {
        int c = base + group.index;
        for (int i = group.lane; i < m; i += group.lanes) {
            if (c < q) basis(i, c) = number<T>(i == c);
        }
        for (int j = steps - 1; j >= 0; --j) {
            Reflection<T> each = reflections[j];
            reflect(group, a, j, j, m, each.head, each.tau, basis, c, c < q);
        }
    }
    __syncthreads();
    RowMajor<T> out = {global<T>(args.x) + matrix * m * q, q};
    Spread square_of(q);
    for (int i = square_of.row; i < m; i += square_of.rows) {
        for (int j = square_of.column; j < q; j += square_of.columns) out(i, j) = basis(i, j);
    }
}

// The sum of a few numbers.
template <class T> __device__ inline T total(const T (&values)[LINALG_PART]) {
    static_assert(LINALG_PART == 4, "a sum of four");
    return (values[0] + values[1]) + (values[2] + values[3]);
}

// The sum of squares of all elements but the first one.
template <int ROWS, class T> __device__ inline RealOf<T> squares_below(const T (&u)[ROWS]) {
    RealOf<T> sums[LINALG_PART] = {};
#pragma unroll
    for (int i = 1; i < ROWS; ++i) sums[i % LINALG_PART] += square(u[i]);
    return total(sums);
}

// The factorization of `qr`, but for LINALG_REFLECTIONS, in registers: each thread has a column of A
// or, with Q, of the identity, which becomes Q^H as A becomes R.
template <class T> __device__ inline void qr_small(const Linalg& args) {
    constexpr int ROWS = MOST_ROWS<T>;
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int m = args.m, n = args.n, q = args.k, steps = min(m, n), c = threadIdx.x;
    bool of_q = (args.flags & LINALG_VECTORS) && c >= n && c < n + m;
    int64 matrix = blockIdx.x;
    RowMajor<const T> in = {global<T>(args.a) + matrix * m * n, n};
    RowMajor<T> r = {global<T>(args.y) + matrix * q * n, n};
    RowMajor<T> out = {global<T>(args.x) + matrix * m * q, q};
    SharedVectors<T> shared = {work_of<T, true>(args, matrix)};
    T column[ROWS];
    R largest = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        column[i] = i < m && c < n ? in(i, c) : number<T>(of_q && i == c - n);
        if (c >= n) continue;
        largest = maximum(largest, maximum(abs(real(column[i])), abs(imaginary(column[i]))));
    }
    R scale = power_below(greatest(largest));
    if (!isfinite(scale)) scale = R(1);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) column[i] = column[i] * (c < n ? R(1) / scale : R(1));
#pragma unroll 1
    for (int j = 0; j < q; ++j) {
        T first = column[0], factor = number<T>(0), u[ROWS] = {};
        R size = 1;
        if (j < steps) {
            if (c == j) shared.store(j, column);
            __syncthreads();
            shared.load(j, u);
            R others = squares_below(u);
            // All threads have the same sum.
            if (others + square(u[0]) < LEAST_SQUARES<R>) {
                R most = 0;
#pragma unroll
                for (int i = 0; i < ROWS; ++i) most = maximum(most, size_of(u[i]));
                size = power_below(most);
#pragma unroll
                for (int i = 0; i < ROWS; ++i) u[i] = u[i] * (R(1) / size);
                others = squares_below(u);
            }
            Reflection<T> each = reflection_of(u[0], others);
            T sums[LINALG_PART];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                T product = conj(i ? u[i] : each.head) * column[i];
                sums[i % LINALG_PART] = i < LINALG_PART ? product : sums[i % LINALG_PART] + product;
            }
            factor = total(sums) * conj(each.tau);
            first = c == j ? each.beta * size : first - each.head * factor;
        }
        if (c < n) r(j, c) = c < j ? number<T>(0) : first * scale;
        if (of_q) out(c - n, j) = conj(first);
#pragma unroll
        for (int i = 1; i < ROWS; ++i) column[i - 1] = column[i] - u[i] * factor;
        column[ROWS - 1] = number<T>(0);
    }
}

}  // namespace cyrt
