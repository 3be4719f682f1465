// Singular values and vectors by the one-sided method of Jacobi (Hestenes, 1958), and eigenvalues
// and eigenvectors of Hermitian matrices by it.
//
// Rotations of pairs of columns make the columns of G = A V orthogonal; their norms are singular
// values. A Hermitian A becomes positive definite by a multiple of the identity that is added: then
// its singular values are its eigenvalues plus that number, and both G and V have multiples of its
// eigenvectors as columns, so that V is not needed. The n / 2 pairs of a round have no column in
// common; n - 1 rounds, a sweep, rotate all pairs.
#pragma once

#include "matrix.cuh"

namespace cyrt {

// The memory of one matrix, in elements of T; cyrt/builtin/linalg.pyx computes its size. Columns end
// with zeros, which rotations keep, so that their length is a multiple of LINALG_PART.
template <class T> struct JacobiMemory {
    using R = RealOf<T>;
    ColumnMajor<T> g;  // m x q
    ColumnMajor<T> v;  // n x n; for eigenvectors the matrix itself
    T* vector;         // q: coefficients of the columns
    R* norms;          // n
    int32* positions;  // n: where a column is in the result
    R* scalars;        // the scale, and the number added to the diagonal
    int32* rotated;    // by sweep: whether a pair was rotated; the last one: not finite

    __device__ JacobiMemory(T* work, int m, int n, int q) {
        g = {work, stride_of(m)};
        v = {work + int64(g.stride) * q, stride_of(n)};
        vector = v.elements + int64(v.stride) * n;
        norms = reinterpret_cast<R*>(vector + q);
        positions = reinterpret_cast<int32*>(vector + q + n);
        scalars = reinterpret_cast<R*>(vector + q + 2 * n);
        rotated = reinterpret_cast<int32*>(vector + q + 2 * n + 4);
    }
    __device__ static int rounded(int rows) {
        return (rows + LINALG_PART - 1) / LINALG_PART * LINALG_PART;
    }
    // An odd number of parts: different columns begin in different banks.
    __device__ static int stride_of(int rows) { return rounded(rows) | LINALG_PART; }
};

// Vectors that are shorter than this part of the longest one count as 0.
template <class R> constexpr R NEGLIGIBLE = Limits<R>::epsilon / 8;

// The shape of G: a matrix that is wider than high is factored as its conjugate transpose.
struct JacobiShape {
    int m, n, q;
    bool vectors, hermitian, transposed;
    bool basis;  // V is computed

    __device__ explicit JacobiShape(const Linalg& args)
        : m(args.m), n(args.n), q(args.k), vectors(args.flags & LINALG_VECTORS),
          hermitian(args.flags & LINALG_HERMITIAN), transposed(args.flags & LINALG_TRANSPOSED),
          basis(vectors && !hermitian) {}
};

template <class T>
__device__ inline void jacobi_load(const Linalg& args, int64 matrix, const JacobiMemory<T>& to) {
    using R = RealOf<T>;
    JacobiShape shape(args);
    int m = shape.m, n = shape.n, rows = to.rounded(m);
    int height = shape.transposed ? n : rows, width = shape.transposed ? rows : n;
    RowMajor<const T> a = {global<T>(args.a) + matrix * m * n, shape.transposed ? m : n};
    bool upper = args.flags & LINALG_UPPER;
    Spread all(width);
    R largest = 0;
    for (int i = all.row; i < height; i += all.rows) {
        for (int j = all.column; j < width; j += all.columns) {
            T value = (shape.transposed ? j : i) < m ? a(i, j) : number<T>(0);
            if (shape.hermitian && i == j) value = number<T>(real(value));
            if (shape.hermitian && i < m && i != j && (i < j) != upper) value = conj(a(j, i));
            largest = maximum(largest, maximum(abs(real(value)), abs(imaginary(value))));
            (shape.transposed ? to.g(j, i) : to.g(i, j)) = shape.transposed ? conj(value) : value;
        }
    }
    largest = greatest(largest);
    R scale = power_below(largest), sums = 0, shift = 0;
    bool finite = isfinite(largest);
    Groups group(m);
    for (int base = 0; base < n; base += group.count) {
        int c = base + group.index;
        R sum = 0, squares = 0;
        for (int i = group.lane; c < n && i < rows; i += group.lanes) {
            T value = to.g(i, c) * (R(1) / scale);
            to.g(i, c) = value;
            if (shape.hermitian && shape.vectors) to.v(i, c) = value;
            sum += size_of(value), squares += square(value);
        }
        if (!shape.hermitian) continue;
        sums = maximum(sums, group.sum(sum)), squares = group.sum(squares);
        if (group.lane == 0 && c < n) to.norms[c] = squares;
    }
    // The greatest sum of a column is a bound of the eigenvalues, and so is Frobenius' norm.
    if (shape.hermitian) {
        R most = greatest(sums);
        shift = R(1.25) * minimum(most, sqrt(sum_of<R>(n, [&](int c) { return to.norms[c]; })));
        if (shift == 0) shift = R(1);
    }
    for (int i = threadIdx.x; shape.hermitian && i < n; i += blockDim.x) {
        to.g(i, i) = to.g(i, i) + number<T>(shift);
    }
    rows = to.rounded(n);
    Spread basis(rows);
    for (int j = basis.row; shape.basis && j < n; j += basis.rows) {
        for (int i = basis.column; i < rows; i += basis.columns) to.v(i, j) = number<T>(i == j);
    }
    if (threadIdx.x <= LINALG_SWEEPS) {
        to.rotated[threadIdx.x] = threadIdx.x == LINALG_SWEEPS ? !finite : 0;
    }
    if (threadIdx.x == 0) to.scalars[0] = scale, to.scalars[1] = shift;
    __syncthreads();
}

// The columns of pair number `pair` of a round; n is even.
__device__ inline void pair_of(int pair, int round, int n, int* i, int* j) {
    int first = round + pair, second = round - pair;
    if (first >= n - 1) first -= n - 1;
    if (second < 0) second += n - 1;
    if (pair == 0) second = n - 1;
    *i = min(first, second), *j = max(first, second);
}

// 1 / a and 1 / sqrt(a) with the accuracy of the type, but not correctly rounded; a is a normal number.
__device__ inline float reciprocal(float a) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}
__device__ inline float inverse_root(float a) {
    float result;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}
__device__ inline double reciprocal(double a) { return 1.0 / a; }
__device__ inline double inverse_root(double a) { return rsqrt(a); }

// Functions of a number of at most 1 whose square does not vanish: its magnitude, and the number over
// that.
template <class T> __device__ inline if_real<T> magnitude_of(T a) { return abs(a); }
template <class T> __device__ inline T magnitude_of(complex<T> a) { return sqrt(square(a)); }
template <class T> __device__ inline if_real<T> phase_of(T a, T) { return copysign(T(1), a); }
template <class T> __device__ inline complex<T> phase_of(complex<T> a, T size) {
    return a * reciprocal(size);
}

template <class T> __device__ inline VectorPart<T>* parts_of(ColumnMajor<T> a, int column) {
    return reinterpret_cast<VectorPart<T>*>(a.elements + int64(column) * a.stride);
}

// Parts of two columns.
template <class T> struct TwoParts {
    VectorPart<T> first, second;

    __device__ void load(ColumnMajor<T> a, int i, int j, int part) {
        first = parts_of(a, i)[part], second = parts_of(a, j)[part];
    }
    __device__ void store(ColumnMajor<T> a, int i, int j, int part) const {
        parts_of(a, i)[part] = first, parts_of(a, j)[part] = second;
    }
    __device__ void add_products(RealOf<T>* squares, RealOf<T>* other_squares, T* products) const {
#pragma unroll
        for (int k = 0; k < LINALG_PART; ++k) {
            T a = first.element[k], b = second.element[k];
            *squares += square(a), *other_squares += square(b);
            *products = *products + conj(b) * a;
        }
    }
    // `sine` is the sine of the angle times the phase, `half` the tangent of half the angle times the
    // conjugate phase: what is added then has small errors if the angle is small.
    __device__ void turn(T sine, T half) {
        T opposite = conj(sine), other_half = conj(half);
#pragma unroll
        for (int k = 0; k < LINALG_PART; ++k) {
            T x = first.element[k], y = second.element[k];
            first.element[k] = x - sine * (y + half * x);
            second.element[k] = y + opposite * (x - other_half * y);
        }
    }
};

// Turns columns i and j of G, and those of V, which are not longer. `g` has the first parts.
template <class T>
__device__ inline void turn(const JacobiMemory<T>& memory, const JacobiShape& shape,
                            const Groups& group, int i, int j, TwoParts<T>& g, T sine, T half) {
    int last = shape.basis ? shape.n : 0;
#pragma unroll 1
    for (int part = group.lane; part * LINALG_PART < shape.m; part += group.lanes) {
        TwoParts<T> v;
        bool both = part * LINALG_PART < last;
        if (part != group.lane) g.load(memory.g, i, j, part);
        if (both) v.load(memory.v, i, j, part);
        g.turn(sine, half), g.store(memory.g, i, j, part);
        if (both) v.turn(sine, half), v.store(memory.v, i, j, part);
    }
}

// The cosine of the angle between two columns of m elements that counts as 0.
template <class R> __device__ inline R tolerance_of(int m) {
    return Limits<R>::epsilon * (R(2) + R(0.25) * sqrt(R(m)));
}

// Makes two columns orthogonal; returns whether they were so far from it that another sweep is
// needed. All lanes of a warp take part.
template <class T>
__device__ inline bool rotate(const JacobiMemory<T>& memory, const JacobiShape& shape,
                              const Groups& group, int i, int j, RealOf<T> tolerance, bool active) {
    using R = RealOf<T>;
    R first = 0, second = 0;
    T product = number<T>(0);
    TwoParts<T> g;
    if (active && group.lane * LINALG_PART < shape.m) {
        g.load(memory.g, i, j, group.lane);
        g.add_products(&first, &second, &product);
    }
#pragma unroll 1
    for (int part = group.lane + group.lanes; active && part * LINALG_PART < shape.m;
         part += group.lanes) {
        TwoParts<T> more;
        more.load(memory.g, i, j, part);
        more.add_products(&first, &second, &product);
    }
#pragma unroll 1
    for (int lanes = group.lanes >> 1; lanes; lanes >>= 1) {
        first += shuffle_xor(first, lanes), second += shuffle_xor(second, lanes);
        product = product + shuffle_xor(product, lanes);
    }
    // All are divided by both norms: then squares neither overflow nor vanish.
    R least = square(NEGLIGIBLE<R>), scale = inverse_root(first) * inverse_root(second);
    T cosine_between = product * scale;
    R size = magnitude_of(cosine_between), difference = (second - first) * scale;
    if (!active || !(first > least && second > least) || !(size > tolerance)) return false;
    // Twice the angle has the tangent 2 size / difference; `inverse` is 1 / the hypotenuse.
    R inverse = inverse_root(difference * difference + R(4) * size * size);
    R squared_cosine = R(0.5) + R(0.5) * abs(difference) * inverse;
    R inverse_cosine = inverse_root(squared_cosine);
    R sine = copysign(size * inverse * inverse_cosine, difference);
    R half = sine * reciprocal(R(1) + squared_cosine * inverse_cosine);
    T phase = phase_of(cosine_between, size);
    turn(memory, shape, group, i, j, g, phase * sine, conj(phase) * half);
    return size > R(8) * tolerance;
}

// Completes the columns of g that are negligible, and those beyond n, to an orthonormal basis: each
// becomes what a unit vector has outside the space of the others.
template <class T>
__device__ inline void complete_basis(const JacobiMemory<T>& memory, const JacobiShape& shape) {
    using R = RealOf<T>;
    int m = shape.m, n = shape.n, q = shape.q, unit = -1;
    Groups group(m);
    for (int c = 0; c < q; ++c) {
        bool complete = c < n && memory.norms[c] > NEGLIGIBLE<R>;
        if (complete) continue;
        // Of all unit vectors, one has at least 1 / m of its square outside.
        for (int attempt = 0; attempt < 2 * m; ++attempt) {
            unit = unit + 1 < m ? unit + 1 : 0;
            R outside = 0;
            for (int pass = 0; pass < 2; ++pass) {
                for (int base = 0; base < q; base += group.count) {
                    int other = base + group.index;
                    bool used = other < q && other != c &&
                                (other < c || (other < n && memory.norms[other] > NEGLIGIBLE<R>));
                    T sum = number<T>(0);
                    for (int i = group.lane; used && i < m; i += group.lanes) {
                        T value = pass ? memory.g(i, c) : number<T>(i == unit);
                        sum = sum + conj(memory.g(i, other)) * value;
                    }
                    sum = group.sum(sum);
                    if (group.lane == 0 && other < q) memory.vector[other] = sum;
                }
                __syncthreads();
                for (int i = threadIdx.x; i < m; i += blockDim.x) {
                    T value = pass ? memory.g(i, c) : number<T>(i == unit);
                    for (int other = 0; other < q; ++other) {
                        bool used =
                            other != c &&
                            (other < c || (other < n && memory.norms[other] > NEGLIGIBLE<R>));
                        if (used) value = value - memory.g(i, other) * memory.vector[other];
                    }
                    memory.g(i, c) = value;
                }
                __syncthreads();
                outside = sum_of<R>(m, [&](int i) { return square(memory.g(i, c)); });
                __syncthreads();
                if (!(outside * R(2 * m) > R(1))) break;
            }
            if (outside * R(2 * m) > R(1)) {
                for (int i = threadIdx.x; i < m; i += blockDim.x) {
                    memory.g(i, c) = memory.g(i, c) * (R(1) / sqrt(outside));
                }
                __syncthreads();
                break;
            }
        }
    }
}

// Stores columns at their positions; conjugated rows if `as_rows`.
template <class T>
__device__ inline void store_columns(ColumnMajor<T> from, T* to, int rows, int columns,
                                     const int32* positions, int num_positions, bool as_rows) {
    Spread all(columns);
    for (int i = all.row; i < rows; i += all.rows) {
        for (int j = all.column; j < columns; j += all.columns) {
            int position = j < num_positions ? positions[j] : j;
            if (as_rows) {
                to[int64(position) * rows + i] = conj(from(i, j));
            } else {
                to[int64(i) * columns + position] = from(i, j);
            }
        }
    }
}

// g^H A g of column c of G and the matrix itself, which is in V: with the square of the length it gives
// an eigenvalue (Rayleigh's quotient), whose error is smaller than that of the length.
template <class T>
__device__ inline RealOf<T> product_with_matrix(const JacobiMemory<T>& memory,
                                                const JacobiShape& shape, const Groups& group,
                                                int c) {
    RealOf<T> sum = 0;
    for (int part = group.lane; c < shape.n && part * LINALG_PART < shape.n; part += group.lanes) {
        T products[LINALG_PART] = {};
        for (int j = 0; j < shape.n; ++j) {
            T factor = memory.g(j, c);
            VectorPart<T> a = parts_of(memory.v, j)[part];
#pragma unroll
            for (int k = 0; k < LINALG_PART; ++k) {
                products[k] = products[k] + a.element[k] * factor;
            }
        }
        VectorPart<T> g = parts_of(memory.g, c)[part];
#pragma unroll
        for (int k = 0; k < LINALG_PART; ++k) sum += real(conj(g.element[k]) * products[k]);
    }
    return group.sum(sum);
}

// x = the singular values in descending order, y = U, z = V^H; or x = the eigenvalues in ascending
// order and y = the eigenvectors.
template <class T>
__device__ inline void jacobi_store(const Linalg& args, int64 matrix,
                                    const JacobiMemory<T>& memory) {
    using R = RealOf<T>;
    JacobiShape shape(args);
    int m = shape.m, n = shape.n, q = shape.q;
    // A matrix that is transposed has its left vectors in V.
    void* left = shape.transposed ? args.z : args.y;
    void* right = shape.transposed ? args.y : args.z;
    int failed = memory.rotated[LINALG_SWEEPS] || memory.rotated[LINALG_SWEEPS - 1];
    report(args, matrix, failed);
    if (failed) {
        fill_with_nan<R>(args.x, matrix, n);
        if (shape.hermitian) return fill_with_nan<T>(args.y, matrix, int64(n) * n);
        fill_with_nan<T>(left, matrix, int64(m) * q);
        return fill_with_nan<T>(right, matrix, int64(n) * n);
    }
    R scale = memory.scalars[0], shift = memory.scalars[1];
    Groups group(m);
    for (int base = 0; base < n; base += group.count) {
        int c = base + group.index;
        R squares = 0, length = 0;
        for (int i = group.lane; c < n && i < m; i += group.lanes)
            squares += square(memory.g(i, c));
        // Rotations lengthen or shorten v and g alike, by rounding errors.
        for (int i = group.lane; shape.basis && c < n && i < n; i += group.lanes) {
            length += square(memory.v(i, c));
        }
        squares = group.sum(squares), length = shape.basis ? group.sum(length) : R(1);
        R value = sqrt(squares / length) - shift;
        if (shape.hermitian && shape.vectors) {
            value = product_with_matrix(memory, shape, group, c) / squares;
            length = squares;
            __syncwarp();
        }
        if (c < n && group.lane == 0) memory.norms[c] = value;
        R inverse = R(1) / sqrt(length);
        for (int i = group.lane; shape.basis && c < n && i < n; i += group.lanes) {
            memory.v(i, c) = memory.v(i, c) * inverse;
        }
        for (int i = group.lane; shape.vectors && c < n && i < m; i += group.lanes) {
            memory.g(i, c) = memory.g(i, c) * inverse;
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < n; c += blockDim.x) {
        R norm = memory.norms[c];
        int position = 0;
        for (int other = 0; other < n; ++other) {
            R its = memory.norms[other];
            bool before = shape.hermitian ? its < norm : its > norm;
            position += before || (its == norm && other < c);
        }
        memory.positions[c] = position;
        global<R>(args.x)[matrix * n + position] = norm * scale;
    }
    __syncthreads();
    if (!shape.vectors) return;
    if (shape.hermitian) {
        return store_columns(memory.g, global<T>(args.y) + matrix * n * n, n, n, memory.positions,
                             n, false);
    }
    for (int base = 0; base < n; base += group.count) {
        int c = base + group.index;
        if (c >= n || !(memory.norms[c] > NEGLIGIBLE<R>)) continue;
        R inverse = R(1) / memory.norms[c];
        for (int i = group.lane; i < m; i += group.lanes) memory.g(i, c) = memory.g(i, c) * inverse;
    }
    __syncthreads();
    complete_basis(memory, shape);
    store_columns(memory.g, global<T>(left) + matrix * m * q, m, q, memory.positions, n,
                  shape.transposed);
    store_columns(memory.v, global<T>(right) + matrix * n * n, n, n, memory.positions, n,
                  !shape.transposed);
}

// All of it in one block; the matrices are in shared memory.
template <class T> __device__ inline void jacobi(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    int64 matrix = blockIdx.x;
    JacobiShape shape(args);
    JacobiMemory<T> memory(work_of<T, true>(args, matrix), shape.m, shape.n, shape.q);
    jacobi_load(args, matrix, memory);
    int even = shape.n + shape.n % 2, pairs = even / 2;
    Groups group(shape.m);
    bool finite = memory.rotated[LINALG_SWEEPS] == 0;
    RealOf<T> tolerance = tolerance_of<RealOf<T>>(shape.m);
    for (int sweep = 0; finite && sweep < LINALG_BLOCK_SWEEPS; ++sweep) {
        bool rotated = false;
        for (int round = 0; round < even - 1; ++round) {
            for (int base = 0; base < pairs; base += group.count) {
                int i, j, pair = base + group.index;
                pair_of(pair < pairs ? pair : 0, round, even, &i, &j);
                rotated |=
                    rotate(memory, shape, group, i, j, tolerance, pair < pairs && j < shape.n);
            }
            __syncthreads();
        }
        rotated = __syncthreads_or(rotated);
        if (!rotated) break;
        if (sweep == LINALG_BLOCK_SWEEPS - 1 && threadIdx.x == 0) {
            memory.rotated[LINALG_SWEEPS - 1] = 1;
        }
    }
    __syncthreads();
    jacobi_store(args, matrix, memory);
}

// The same by several launches, in the workspace: a block loads a matrix, ...
template <class T> __device__ inline void jacobi_begin(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    JacobiShape shape(args);
    int64 matrix = blockIdx.x;
    jacobi_load(args, matrix,
                JacobiMemory<T>(work_of<T, false>(args, matrix), shape.m, shape.n, shape.q));
}

// ... a block of one warp rotates a pair of a round, unless the sweep before had nothing to do, ...
template <class T> __device__ inline void jacobi_round(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    JacobiShape shape(args);
    int even = shape.n + shape.n % 2, pair = blockIdx.x % args.tiles;
    int sweep = args.round / (even - 1), round = args.round % (even - 1), i, j;
    int64 matrix = blockIdx.x / args.tiles;
    JacobiMemory<T> memory(work_of<T, false>(args, matrix), shape.m, shape.n, shape.q);
    if (memory.rotated[LINALG_SWEEPS] || (sweep && !memory.rotated[sweep - 1])) return;
    pair_of(pair, round, even, &i, &j);
    if (j >= shape.n) return;
    RealOf<T> tolerance = tolerance_of<RealOf<T>>(shape.m);
    if (rotate(memory, shape, Groups(WARP * LINALG_PART), i, j, tolerance, true))
        memory.rotated[sweep] = 1;
}

// ... and a block stores the results.
template <class T> __device__ inline void jacobi_end(const Linalg& args) {
    wait_for_dependencies(args);
    launch_dependents();
    JacobiShape shape(args);
    int64 matrix = blockIdx.x;
    jacobi_store(args, matrix,
                 JacobiMemory<T>(work_of<T, false>(args, matrix), shape.m, shape.n, shape.q));
}

}  // namespace cyrt
