// Matrices that a block of threads works on, and reports of those that it cannot factor.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "params/linalg.h"
#include "real_math.cuh"
#include "reduce.cuh"

namespace cyrt {

// -- numbers, real or complex ---------------------------------------------------------------------

template <class T> using RealOf = typename real_of<T>::type;

template <class T> __device__ inline if_real<T> conj(T a) { return a; }
template <class T> __device__ inline if_real<T> real(T a) { return a; }
template <class T> __device__ inline T real(complex<T> a) { return a.re; }
template <class T> __device__ inline if_real<T> imaginary(T) { return T(0); }
template <class T> __device__ inline T imaginary(complex<T> a) { return a.im; }
template <class T> __device__ inline complex<T> operator*(complex<T> a, T b) {
    return {a.re * b, a.im * b};
}
// The square of the magnitude.
template <class T> __device__ inline if_real<T> square(T a) { return a * a; }
template <class T> __device__ inline T square(complex<T> a) { return a.re * a.re + a.im * a.im; }
// A magnitude that needs no root: at most 1.42 times the true one.
template <class T> __device__ inline if_real<T> size_of(T a) { return abs(a); }
template <class T> __device__ inline T size_of(complex<T> a) { return abs(a.re) + abs(a.im); }

template <class T> struct Numbers {
    __device__ static T of(T re, T) { return re; }
    __device__ static T nan() { return not_a_number<T>(); }
};
template <class T> struct Numbers<complex<T>> {
    __device__ static complex<T> of(T re, T im) { return {re, im}; }
    __device__ static complex<T> nan() { return {not_a_number<T>(), not_a_number<T>()}; }
};
template <class T> __device__ inline T number(RealOf<T> re, RealOf<T> im = 0) {
    return Numbers<T>::of(re, im);
}

// a / b, given 1 / b, which is infinite for the smallest b. Those are scaled, because the division of
// complex numbers computes 1 / b, too.
template <class T> __device__ inline T divide(T a, T b, T inverse) {
    constexpr RealOf<T> SCALE = RealOf<T>(1) / Limits<RealOf<T>>::epsilon;
    return isfinite(inverse) ? a * inverse : (a * SCALE) / (b * SCALE);
}
template <class T> __device__ inline complex<T> divide(complex<T> a, T b, T inverse) {
    return {divide(a.re, b, inverse), divide(a.im, b, inverse)};
}
template <class T> __device__ inline T inverse_of(T a) { return number<T>(1) / a; }

// The greatest power of two that is at most a, which is positive and normal; 1 for 0.
__device__ inline float power_below(float a) {
    uint32 bits = __float_as_uint(a) & 0x7f800000u;
    return a == 0 ? 1.0f : bits ? __uint_as_float(bits) : Limits<float>::smallest;
}
__device__ inline double power_below(double a) {
    uint64 bits = __double_as_longlong(a) & 0x7ff0000000000000ull;
    return a == 0 ? 1.0 : bits ? __longlong_as_double(bits) : Limits<double>::smallest;
}

// -- matrices -------------------------------------------------------------------------------------

// Rows, or columns, of `stride` elements.
template <class T> struct RowMajor {
    T* elements;
    int stride;
    __device__ T& operator()(int i, int j) const { return elements[int64(i) * stride + j]; }
};
template <class T> struct ColumnMajor {
    T* elements;
    int stride;
    __device__ T& operator()(int i, int j) const { return elements[int64(j) * stride + i]; }
};

// The number of elements from one row (or column) of n elements to the next one in shared memory.
// It is odd, so that the threads of a warp that walk along the other dimension use all banks.
__device__ inline int odd(int n) { return n | 1; }

extern __shared__ uint4 linalg_shared[];

// The memory in which the block works: its shared memory, or its part of the workspace.
template <class T, bool SHARED> __device__ inline T* work_of(const Linalg& args, int64 matrix) {
    if constexpr (SHARED) {
        return reinterpret_cast<T*>(linalg_shared);
    } else {
        return global<T>(args.work) + matrix * args.work_size;
    }
}

// The threads of a block as rows and columns of a matrix with so many columns.
struct Spread {
    int row, column, rows, columns;

    __device__ explicit Spread(int width) {
        int shift = width <= 1 ? 0 : min(5, 32 - __clz(width - 1));
        columns = 1 << shift, rows = blockDim.x >> shift;
        row = threadIdx.x >> shift, column = threadIdx.x & (columns - 1);
    }
};

// The threads of a block as groups of lanes, each for a vector of so many elements: a lane has up to
// LINALG_PART of them, or more of vectors that are longer than LINALG_PART warps. The number of lanes,
// and so the rounding errors of a sum, do not depend on the batch. All groups of a warp take part in
// each reduction.
struct Groups {
    int lane, lanes, index, count;

    __device__ explicit Groups(int length) {
        int shift = length <= LINALG_PART ? 0 : min(5, 32 - __clz((length - 1) / LINALG_PART));
        lanes = 1 << shift, count = blockDim.x >> shift;
        lane = threadIdx.x & (lanes - 1), index = threadIdx.x >> shift;
    }
    template <class T> __device__ T sum(T value) const {
        return warp_reduce(value, [](T a, T b) { return a + b; }, lanes);
    }
};

// Elements of a vector that a thread loads at once.
template <class T> struct alignas(16) VectorPart {
    T element[LINALG_PART];
};

template <class T> __device__ inline T greatest(T value) {
    return block_reduce(value, [](T a, T b) { return maximum(a, b); }, T(0));
}

// The sum of n numbers; each warp computes it, so that it does not depend on the number of warps.
template <class R, class F> __device__ inline R sum_of(int n, F number_at) {
    R sum = 0;
    for (int i = threadIdx.x % WARP; i < n; i += WARP) sum += number_at(i);
    return warp_reduce(sum, [](R a, R b) { return a + b; });
}

// -- small matrices -------------------------------------------------------------------------------
//
// Each thread has a row, or a column, in registers. Each step of a factorization uses the first
// element and stores its results one position nearer to the front, since an element that is in a
// register has an index that the compiler knows.

// The elements of a vector in registers; matrices have at most as many rows. cyrt/builtin/linalg.pyx
// chooses these kernels.
template <class T>
constexpr int MOST_ROWS =
    sizeof(T) * LINALG_ROWS <= LINALG_ROW_BYTES ? LINALG_ROWS : LINALG_ROW_BYTES / sizeof(T);

// Two vectors in shared memory. A thread stores one in each step for the others of the block; they
// take turns, so that a step needs one barrier.
template <class T> struct SharedVectors {
    static constexpr int ROWS = MOST_ROWS<T>;
    T* elements;

    __device__ T* of_step(int step) const { return elements + (step & 1) * ROWS; }
    __device__ void store(int step, const T (&vector)[ROWS]) const {
        VectorPart<T>* parts = reinterpret_cast<VectorPart<T>*>(of_step(step));
#pragma unroll
        for (int i = 0; i < ROWS / LINALG_PART; ++i) {
            VectorPart<T> part;
#pragma unroll
            for (int k = 0; k < LINALG_PART; ++k) part.element[k] = vector[i * LINALG_PART + k];
            parts[i] = part;
        }
    }
    __device__ void load(int step, T (&vector)[ROWS]) const {
        const VectorPart<T>* parts = reinterpret_cast<const VectorPart<T>*>(of_step(step));
#pragma unroll
        for (int i = 0; i < ROWS / LINALG_PART; ++i) {
            VectorPart<T> part = parts[i];
#pragma unroll
            for (int k = 0; k < LINALG_PART; ++k) vector[i * LINALG_PART + k] = part.element[k];
        }
    }
};

// -- results --------------------------------------------------------------------------------------

// Stores where a matrix failed, or 0. The least number of a failure of the stream is kept: first the
// call's site counts, then the matrix. The word behind it counts the failures.
__device__ inline void report(const Linalg& args, int64 matrix, int info) {
    if (threadIdx.x) return;
    if (args.info) args.info[matrix] = info;
    if (info && args.failure) {
        atomicAdd(args.failure + 1, 1ull);
        atomicMin(args.failure, uint64(args.site) << 32 | uint64(matrix));
    }
}

template <class T> __device__ inline void fill_with_nan(void* memory, int64 matrix, int64 count) {
    if (!memory) return;
    T* out = global<T>(memory) + matrix * count;
    for (int64 i = threadIdx.x; i < count; i += blockDim.x) out[i] = Numbers<T>::nan();
}

}  // namespace cyrt
