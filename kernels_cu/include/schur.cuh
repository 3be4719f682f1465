// Eigenvalues and right eigenvectors of general complex matrices: reduction to Hessenberg form,
// Schur's form by the QR algorithm with single shifts (Golub and Van Loan, 7.4 and 7.5), and back
// substitution.
#pragma once

#include "householder.cuh"

namespace cyrt {

// A rotation [c s; -conj(s) c] that maps (x, y) to (r, 0).
template <class T> struct GivensRotation {
    RealOf<T> c;
    T s, r;

    __device__ GivensRotation(T x, T y) {
        using R = RealOf<T>;
        R scale = maximum(size_of(x), size_of(y));
        c = R(1), s = number<T>(0), r = x;
        if (size_of(y) == 0 || !isfinite(scale)) return;
        T a = x * (R(1) / scale), b = y * (R(1) / scale);
        R length = abs(a), norm = sqrt(square(a) + square(b));
        T phase = length == 0 ? number<T>(1) : a * (R(1) / length);
        c = length / norm;
        s = phase * conj(b) * (R(1) / norm);
        r = phase * (norm * scale);
    }
};

// Whether elements with this sum of squares count as 0. The largest element of the matrix is about 1,
// so they are far below its rounding errors: a matrix of low rank leaves rounding errors of rounding
// errors, of which each is about as small as its neighbours. Products of larger ones are normal
// numbers, also those by which a reflection divides.
template <class R> __device__ inline bool is_negligible(R squares) {
    return squares <= LEAST_SQUARES<R>;
}

// h becomes upper Hessenberg, and z unitary: a = z h z^H.
template <class T>
__device__ inline void reduce_to_hessenberg(RowMajor<T> h, RowMajor<T> z, T* u, int n) {
    Groups group(n);
    for (int j = 0; j + 2 < n; ++j) {
        int first = j + 1;
        RealOf<T> others = 0;
        for (int i = first + 1 + group.lane; i < n; i += group.lanes) others += square(h(i, j));
        others = group.sum(others);
        if (is_negligible(others)) {
            __syncthreads();
            for (int i = first + 1 + threadIdx.x; i < n; i += blockDim.x) h(i, j) = number<T>(0);
            continue;
        }
        Reflection<T> each = reflection_of(h(first, j), others);
        for (int i = first + threadIdx.x; i < n; i += blockDim.x) {
            u[i] = i == first ? each.head : h(i, j);
        }
        __syncthreads();
        for (int base = j; base < n; base += group.count) {
            int c = base + group.index;
            T sum = number<T>(0);
            for (int i = first + group.lane; c < n && i < n; i += group.lanes) {
                sum = sum + conj(u[i]) * h(i, c);
            }
            sum = group.sum(sum) * conj(each.tau);
            for (int i = first + group.lane; c < n && i < n; i += group.lanes) {
                h(i, c) = h(i, c) - u[i] * sum;
            }
        }
        __syncthreads();
        // Rows of h, and then those of z.
        for (int base = 0; base < 2 * n; base += group.count) {
            int row = base + group.index;
            RowMajor<T> a = row < n ? h : z;
            int r = row < n ? row : row - n;
            bool active = row < 2 * n;
            T sum = number<T>(0);
            for (int i = first + group.lane; active && i < n; i += group.lanes) {
                sum = sum + a(r, i) * u[i];
            }
            sum = group.sum(sum) * each.tau;
            for (int i = first + group.lane; active && i < n; i += group.lanes) {
                a(r, i) = a(r, i) - sum * conj(u[i]);
            }
        }
        __syncthreads();
        for (int i = first + 1 + threadIdx.x; i < n; i += blockDim.x) h(i, j) = number<T>(0);
    }
    __syncthreads();
}

// The eigenvalue of the last 2 x 2 block that is nearer to its last element.
template <class T> __device__ inline T shift_of(RowMajor<T> h, int hi) {
    using R = RealOf<T>;
    T a = h(hi - 1, hi - 1), b = h(hi - 1, hi), c = h(hi, hi - 1), d = h(hi, hi);
    T product = b * c, half = (a - d) * R(0.5);
    if (size_of(product) == 0) return d;
    T square_of = half * half + product;
    // The root of a complex number, scaled by its size.
    R length = abs(square_of), re = sqrt((length + abs(square_of.re)) * R(0.5));
    R im = re == 0 ? R(0) : abs(square_of.im) / (R(2) * re);
    T root =
        square_of.re >= 0 ? T{re, copysign(im, square_of.im)} : T{im, copysign(re, square_of.im)};
    T plus = half + root, minus = half - root;
    return d - product / (size_of(plus) > size_of(minus) ? plus : minus);
}

// h becomes upper triangular. Returns 0, or 1 + the row at which the method did not converge.
template <class T>
__device__ inline int reduce_to_triangle(RowMajor<T> h, RowMajor<T> z, int n, bool vectors) {
    using R = RealOf<T>;
    int hi = n - 1, iteration = 0;
    while (hi > 0) {
        __syncthreads();
        // The first row of the last block that does not fall apart; each warp finds it.
        int lo = 0;
        for (int base = hi; base > 0; base -= WARP) {
            int row = base - int(threadIdx.x % WARP);
            bool small = false;
            if (row > 0) {
                R sum = size_of(h(row, row)) + size_of(h(row - 1, row - 1));
                R below = size_of(h(row, row - 1));
                small = below <= Limits<R>::epsilon * sum || is_negligible(below * below);
            }
            unsigned found = __ballot_sync(0xffffffffu, small);
            if (found) {
                lo = base - (__ffs(found) - 1);
                break;
            }
        }
        __syncthreads();
        if (lo > 0 && threadIdx.x == 0) h(lo, lo - 1) = number<T>(0);
        if (lo == hi) {
            --hi, iteration = 0;
            continue;
        }
        if (++iteration > 60) return hi + 1;
        T shift = shift_of(h, hi);
        if (iteration % 10 == 0) shift = h(hi, hi) + number<T>(R(0.75) * size_of(h(hi, hi - 1)));
        T x = h(lo, lo) - shift, y = h(lo + 1, lo);
        __syncthreads();
        for (int k = lo; k < hi; ++k) {
            if (k > lo) x = h(k, k - 1), y = h(k + 1, k - 1);
            GivensRotation<T> turn(x, y);
            for (int j = k + threadIdx.x; j < n; j += blockDim.x) {
                T first = h(k, j), second = h(k + 1, j);
                h(k, j) = first * turn.c + turn.s * second;
                h(k + 1, j) = second * turn.c - conj(turn.s) * first;
            }
            __syncthreads();
            if (k > lo && threadIdx.x == 0) {
                h(k, k - 1) = turn.r;
                h(k + 1, k - 1) = number<T>(0);
            }
            int rows = min(k + 2, hi) + 1;
            for (int i = threadIdx.x; i < rows + (vectors ? n : 0); i += blockDim.x) {
                RowMajor<T> a = i < rows ? h : z;
                int r = i < rows ? i : i - rows;
                T first = a(r, k), second = a(r, k + 1);
                a(r, k) = first * turn.c + conj(turn.s) * second;
                a(r, k + 1) = second * turn.c - turn.s * first;
            }
            __syncthreads();
        }
    }
    __syncthreads();
    return 0;
}

// values = the diagonal of the triangle of a real matrix, whose eigenvalues are real, or in pairs of
// conjugates: rounding errors make them neither. An eigenvalue that is nearest to its own conjugate
// is real, and so is one whose imaginary part is below the rounding error of the real one; two that
// are nearest to each other's conjugates are a pair. Distances above `most` change nothing. u has
// room for n elements.
template <class T>
__device__ inline void real_spectrum(RowMajor<T> t, T* u, T* values, int n, RealOf<T> most) {
    using R = RealOf<T>;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        T value = conj(t(i, i));
        int nearest = i;
        R least = size_of(t(i, i) - value);
        if (least > most) nearest = -1, least = most;
        for (int j = 0; j < n; ++j) {
            R distance = size_of(t(j, j) - value);
            if (distance < least) least = distance, nearest = j;
        }
        u[i] = number<T>(R(nearest));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int other = int(u[i].re);
        T value = t(i, i);
        if (other >= 0 && int(u[other].re) == i) value = (value + conj(t(other, other))) * R(0.5);
        if (abs(value.im) <= Limits<R>::epsilon * abs(value.re)) value.im = 0;
        values[i] = value;
    }
}

// x has the eigenvectors of the upper triangular t in its columns, a thread's each; nothing
// overflows, and equal eigenvalues are parted by a rounding error.
template <class T>
__device__ inline void solve_triangle(RowMajor<T> t, RowMajor<T> x, int n, RealOf<T> least) {
    using R = RealOf<T>;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        T value = t(k, k);
        x(k, k) = number<T>(1);
        for (int i = k + 1; i < n; ++i) x(i, k) = number<T>(0);
        for (int i = k - 1; i >= 0; --i) {
            T sum = number<T>(0);
            for (int j = i + 1; j <= k; ++j) sum = sum + t(i, j) * x(j, k);
            T difference = value - t(i, i);
            if (size_of(difference) < least) difference = number<T>(least);
            T each = sum / difference;
            x(i, k) = each;
            R size = size_of(each);
            if (size > R(1e10)) {
                for (int j = i; j <= k; ++j) x(j, k) = x(j, k) * (R(1) / size);
            }
        }
    }
    __syncthreads();
}

// x = the eigenvalues, y = the eigenvectors in columns, of norm 1 and with a real greatest element.
// T is complex.
template <class T, bool SHARED> __device__ inline void eig(const Linalg& args) {
    using R = RealOf<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int n = args.n;
    bool vectors = args.flags & LINALG_VECTORS;
    int64 matrix = blockIdx.x, count = int64(n) * n;
    T* u = work_of<T, SHARED>(args, matrix);
    RowMajor<T> h = {u + n, odd(n)}, z = {h.elements + n * h.stride, odd(n)};
    RowMajor<T> x = {z.elements + n * z.stride, odd(n)};
    RowMajor<const T> in = {global<T>(args.a) + matrix * count, n};
    RowMajor<T> out = {global<T>(args.y) + matrix * count, n};
    Spread all(n);
    R largest = 0;
    bool imaginary = false;
    for (int i = all.row; i < n; i += all.rows) {
        for (int j = all.column; j < n; j += all.columns) {
            T value = in(i, j);
            largest = maximum(largest, maximum(abs(value.re), abs(value.im)));
            imaginary |= value.im != 0;
            h(i, j) = value;
            z(i, j) = number<T>(i == j);
        }
    }
    largest = greatest(largest);
    imaginary = __syncthreads_or(imaginary);
    int failed = !isfinite(largest);
    R scale = power_below(largest);
    if (!failed) {
        for (int i = all.row; i < n; i += all.rows) {
            for (int j = all.column; j < n; j += all.columns) h(i, j) = h(i, j) * (R(1) / scale);
        }
        __syncthreads();
        reduce_to_hessenberg(h, z, u, n);
        failed = reduce_to_triangle(h, z, n, vectors);
    }
    report(args, matrix, failed);
    if (failed) {
        fill_with_nan<T>(args.x, matrix, n);
        return fill_with_nan<T>(args.y, matrix, count);
    }
    T* values = global<T>(args.x) + matrix * n;
    if (imaginary) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = h(i, i);
    } else {
        // The vectors are those of the triangle's diagonal.
        R most = vectors ? R(n) * Limits<R>::epsilon : Limits<R>::largest;
        real_spectrum(h, u, values, n, most);
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = values[i] * scale;
    if (!vectors) return;
    solve_triangle(h, x, n, Limits<R>::epsilon * R(2) * sqrt(R(n)));
    for (int i = all.row; i < n; i += all.rows) {
        for (int k = all.column; k < n; k += all.columns) {
            T sum = number<T>(0);
            for (int j = 0; j <= k; ++j) sum = sum + z(i, j) * x(j, k);
            out(i, k) = sum;
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        R sum = 0, best = 0;
        T at = number<T>(1);
        for (int i = 0; i < n; ++i) {
            T each = out(i, k);
            sum += square(each);
            if (square(each) > best) best = square(each), at = each;
        }
        T factor = conj(at) * (R(1) / (abs(at) * sqrt(sum)));
        for (int i = 0; i < n; ++i) out(i, k) = out(i, k) * factor;
    }
}

}  // namespace cyrt
