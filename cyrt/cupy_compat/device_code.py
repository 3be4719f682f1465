"""CUDA C++ code for kernels in CuPy's style: arrays, indexers, half precision, complex numbers."""

from __future__ import annotations

#: CuPy's views of arrays: indexed by an element's number in C order, or by an index for each axis.
ARRAYS = r"""
#pragma once
#include <stddef.h>
#include <stdint.h>

template <bool small> struct _IndexOf { typedef ptrdiff_t type; };
template <> struct _IndexOf<true> { typedef int type; };

template <class T, int _ndim, bool _c_contiguous = false, bool _use_32bit_indexing = false>
class CArray {
public:
    static constexpr int ndim = _ndim;
    static constexpr bool c_contiguous = _c_contiguous;
    typedef typename _IndexOf<_use_32bit_indexing>::type index_t;

    T* data_;
    ptrdiff_t size_;
    ptrdiff_t shape_[_ndim ? _ndim : 1];
    ptrdiff_t strides_[_ndim ? _ndim : 1];

    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return shape_; }
    __device__ const ptrdiff_t* strides() const { return strides_; }

    template <class Index, int count> __device__ T& at(const Index (&index)[count]) const {
        static_assert(count == (_ndim ? _ndim : 1), "an index for each axis");
        index_t offset = 0;
#pragma unroll
        for (int axis = 0; axis < _ndim; ++axis)
            offset += static_cast<index_t>(strides_[axis]) * static_cast<index_t>(index[axis]);
        return *reinterpret_cast<T*>(reinterpret_cast<char*>(data_) + offset);
    }
    __device__ T& at(ptrdiff_t i) const {
        if (_c_contiguous || _ndim == 0) return data_[i];
        index_t offset = 0, rest = static_cast<index_t>(i);
#pragma unroll
        for (int axis = _ndim - 1; axis > 0; --axis) {
            index_t count = static_cast<index_t>(shape_[axis]);
            offset += static_cast<index_t>(strides_[axis]) * (rest % count);
            rest /= count;
        }
        offset += static_cast<index_t>(strides_[0]) * rest;
        return *reinterpret_cast<T*>(reinterpret_cast<char*>(data_) + offset);
    }

    template <class Index, int count> __device__ T& operator[](const Index (&index)[count]) {
        return at(index);
    }
    template <class Index, int count>
    __device__ const T& operator[](const Index (&index)[count]) const {
        return at(index);
    }
    __device__ T& operator[](ptrdiff_t i) { return at(i); }
    __device__ const T& operator[](ptrdiff_t i) const { return at(i); }
};

template <int _ndim, bool _use_32bit_indexing = false> class CIndexer {
public:
    static constexpr int ndim = _ndim;
    typedef typename _IndexOf<_use_32bit_indexing>::type index_t;

    ptrdiff_t size_;
    ptrdiff_t shape_[_ndim];
    ptrdiff_t index_[_ndim];

    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t* shape() const { return shape_; }
    __device__ void set(ptrdiff_t i) {
        index_t rest = static_cast<index_t>(i);
#pragma unroll
        for (int axis = _ndim - 1; axis > 0; --axis) {
            index_t count = static_cast<index_t>(shape_[axis]);
            index_[axis] = rest % count;
            rest /= count;
        }
        index_[0] = rest;
    }
    __device__ const ptrdiff_t (&get() const)[_ndim] { return index_; }
};
"""

#: Two bytes in memory; a float in arithmetic.
HALVES = r"""
#pragma once
struct float16 {
    unsigned short data_;
    float16() = default;
    __device__ float16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(data_) : "f"(x)); }
    __device__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(data_));
        return x;
    }
    static __device__ float16 from_bits(unsigned short bits) {
        float16 x;
        x.data_ = bits;
        return x;
    }
    __device__ unsigned short raw() const { return data_; }
    __device__ bool iszero() const { return (data_ & 0x7fff) == 0; }
    __device__ bool isnan() const { return (data_ & 0x7fff) > 0x7c00; }
    __device__ bool isinf() const { return (data_ & 0x7fff) == 0x7c00; }
    __device__ bool isfinite() const { return (data_ & 0x7c00) != 0x7c00; }
    __device__ bool signbit() const { return data_ >> 15; }
    __device__ float16& operator+=(float x) { return *this = float16(float(*this) + x); }
    __device__ float16& operator-=(float x) { return *this = float16(float(*this) - x); }
    __device__ float16& operator*=(float x) { return *this = float16(float(*this) * x); }
    __device__ float16& operator/=(float x) { return *this = float16(float(*this) / x); }
};
struct bfloat16 {
    unsigned short data_;
    bfloat16() = default;
    __device__ bfloat16(float x) {
        unsigned bits = __float_as_uint(x);
        data_ = x != x ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    __device__ operator float() const { return __uint_as_float(unsigned(data_) << 16); }
    static __device__ bfloat16 from_bits(unsigned short bits) {
        bfloat16 x;
        x.data_ = bits;
        return x;
    }
    __device__ unsigned short raw() const { return data_; }
    __device__ bfloat16& operator+=(float x) { return *this = bfloat16(float(*this) + x); }
    __device__ bfloat16& operator-=(float x) { return *this = bfloat16(float(*this) - x); }
    __device__ bfloat16& operator*=(float x) { return *this = bfloat16(float(*this) * x); }
    __device__ bfloat16& operator/=(float x) { return *this = bfloat16(float(*this) / x); }
};
"""

#: ``complex<float>`` and ``complex<double>``, with Thrust's names.
COMPLEX = r"""
#pragma once
namespace thrust {

template <bool, class T> struct _EnableIf {};
template <class T> struct _EnableIf<true, T> { typedef T type; };

template <class T> struct alignas(2 * sizeof(T)) complex {
    typedef T value_type;
    T x, y;

    complex() = default;
    __host__ __device__ constexpr complex(T re, T im = T(0)) : x(re), y(im) {}
    // Implicit only where nothing is lost, so that a float and a double number make a double one.
    complex(const complex&) = default;
    template <class U, typename _EnableIf<(sizeof(U) < sizeof(T)), int>::type = 0>
    __host__ __device__ constexpr complex(const complex<U>& z) : x(z.x), y(z.y) {}
    template <class U, typename _EnableIf<(sizeof(U) > sizeof(T)), int>::type = 0>
    __host__ __device__ explicit constexpr complex(const complex<U>& z) : x(T(z.x)), y(T(z.y)) {}
    complex& operator=(const complex&) = default;
    template <class U> __host__ __device__ complex& operator=(const complex<U>& z) {
        x = T(z.x);
        y = T(z.y);
        return *this;
    }
    __host__ __device__ constexpr T real() const { return x; }
    __host__ __device__ constexpr T imag() const { return y; }
    __host__ __device__ void real(T re) { x = re; }
    __host__ __device__ void imag(T im) { y = im; }
    __host__ __device__ complex operator+() const { return *this; }
    __host__ __device__ complex operator-() const { return complex(-x, -y); }
    template <class U> __host__ __device__ complex& operator+=(const U& z) {
        return *this = *this + complex(z);
    }
    template <class U> __host__ __device__ complex& operator-=(const U& z) {
        return *this = *this - complex(z);
    }
    template <class U> __host__ __device__ complex& operator*=(const U& z) {
        return *this = *this * complex(z);
    }
    template <class U> __host__ __device__ complex& operator/=(const U& z) {
        return *this = *this / complex(z);
    }

    // Friends that are not templates, so that the other operand is converted.
    friend __host__ __device__ complex operator+(const complex& a, const complex& b) {
        return complex(a.x + b.x, a.y + b.y);
    }
    friend __host__ __device__ complex operator-(const complex& a, const complex& b) {
        return complex(a.x - b.x, a.y - b.y);
    }
    friend __host__ __device__ complex operator*(const complex& a, const complex& b) {
        return complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    }
    // Scaled by the larger part of the divisor, so that nothing overflows that need not.
    friend __host__ __device__ complex operator/(const complex& a, const complex& b) {
        if ((b.x < 0 ? -b.x : b.x) >= (b.y < 0 ? -b.y : b.y)) {
            if (b.x == T(0) && b.y == T(0)) return complex(a.x / b.x, a.y / b.x);
            T ratio = b.y / b.x, scale = T(1) / (b.x + b.y * ratio);
            return complex((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
        }
        T ratio = b.x / b.y, scale = T(1) / (b.y + b.x * ratio);
        return complex((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
    }
    friend __host__ __device__ bool operator==(const complex& a, const complex& b) {
        return a.x == b.x && a.y == b.y;
    }
    friend __host__ __device__ bool operator!=(const complex& a, const complex& b) {
        return !(a == b);
    }
};

template <class T> __device__ T real(const complex<T>& z) { return z.x; }
template <class T> __device__ T imag(const complex<T>& z) { return z.y; }
template <class T> __device__ complex<T> conj(const complex<T>& z) { return complex<T>(z.x, -z.y); }
template <class T> __device__ T norm(const complex<T>& z) { return z.x * z.x + z.y * z.y; }
template <class T> __device__ T abs(const complex<T>& z) { return ::hypot(z.x, z.y); }
template <class T> __device__ T arg(const complex<T>& z) { return ::atan2(z.y, z.x); }
template <class T> __device__ complex<T> polar(T size, T angle = T(0)) {
    return complex<T>(size * ::cos(angle), size * ::sin(angle));
}
template <class T> __device__ bool isnan(const complex<T>& z) { return z.x != z.x || z.y != z.y; }
template <class T> __device__ bool isinf(const complex<T>& z) {
    return ::isinf(z.x) || ::isinf(z.y);
}
template <class T> __device__ bool isfinite(const complex<T>& z) {
    return ::isfinite(z.x) && ::isfinite(z.y);
}
template <class T> __device__ complex<T> exp(const complex<T>& z) { return polar(::exp(z.x), z.y); }
template <class T> __device__ complex<T> log(const complex<T>& z) {
    return complex<T>(::log(abs(z)), arg(z));
}
template <class T> __device__ complex<T> log10(const complex<T>& z) {
    return log(z) / T(2.30258509299404568402);
}
template <class T> __device__ complex<T> sqrt(const complex<T>& z) {
    if (z.x == T(0) && z.y == T(0)) return complex<T>(T(0), z.y);
    T size = ::sqrt((::fabs(z.x) + abs(z)) / T(2)), other = z.y / (T(2) * size);
    return z.x >= T(0) ? complex<T>(size, other)
                       : complex<T>(::fabs(other), ::copysign(size, z.y));
}
template <class T> __device__ complex<T> sinh(const complex<T>& z) {
    return complex<T>(::sinh(z.x) * ::cos(z.y), ::cosh(z.x) * ::sin(z.y));
}
template <class T> __device__ complex<T> cosh(const complex<T>& z) {
    return complex<T>(::cosh(z.x) * ::cos(z.y), ::sinh(z.x) * ::sin(z.y));
}
template <class T> __device__ complex<T> tanh(const complex<T>& z) {
    T tangent = ::tanh(z.x), other = ::tan(z.y);
    return complex<T>(tangent, other) / complex<T>(T(1), tangent * other);
}
template <class T> __device__ complex<T> sin(const complex<T>& z) {
    return complex<T>(::sin(z.x) * ::cosh(z.y), ::cos(z.x) * ::sinh(z.y));
}
template <class T> __device__ complex<T> cos(const complex<T>& z) {
    return complex<T>(::cos(z.x) * ::cosh(z.y), -::sin(z.x) * ::sinh(z.y));
}
template <class T> __device__ complex<T> tan(const complex<T>& z) { return sin(z) / cos(z); }
template <class T, class U> __device__ complex<T> pow(const complex<T>& z, const U& exponent) {
    return z == complex<T>(T(0)) ? complex<T>(exponent == U(0) ? T(1) : T(0))
                                 : exp(log(z) * complex<T>(exponent));
}

}  // namespace thrust
using thrust::abs;
using thrust::arg;
using thrust::complex;
using thrust::conj;
using thrust::imag;
using thrust::norm;
using thrust::polar;
using thrust::real;
"""

#: `cuComplex.h` in terms of ``complex``, which has operators as well.
CUCOMPLEX = r"""
#pragma once
#include <cupy/complex.cuh>

typedef complex<float> cuFloatComplex;
typedef complex<float> cuComplex;
typedef complex<double> cuDoubleComplex;

#define _CUPY_COMPLEX(T, suffix) \
    __device__ inline T cuCreal##suffix(complex<T> z) { return z.x; } \
    __device__ inline T cuCimag##suffix(complex<T> z) { return z.y; } \
    __device__ inline T cuCabs##suffix(complex<T> z) { return abs(z); } \
    __device__ inline complex<T> cuConj##suffix(complex<T> z) { return conj(z); } \
    __device__ inline complex<T> cuCfma##suffix(complex<T> a, complex<T> b, complex<T> c) { \
        return a * b + c; \
    }
_CUPY_COMPLEX(float, f)
_CUPY_COMPLEX(double, )
#undef _CUPY_COMPLEX

#define _CUPY_COMPLEX(name, sign) \
    template <class T> __device__ inline complex<T> name(complex<T> a, complex<T> b) { \
        return a sign b; \
    } \
    __device__ inline complex<float> name##f(complex<float> a, complex<float> b) { \
        return a sign b; \
    }
_CUPY_COMPLEX(cuCadd, +)
_CUPY_COMPLEX(cuCsub, -)
_CUPY_COMPLEX(cuCmul, *)
_CUPY_COMPLEX(cuCdiv, /)
#undef _CUPY_COMPLEX

__device__ inline cuFloatComplex make_cuFloatComplex(float x, float y) { return {x, y}; }
__device__ inline cuFloatComplex make_cuComplex(float x, float y) { return {x, y}; }
__device__ inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return {x, y}; }
__device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return z; }
__device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return cuFloatComplex(z);
}
"""

#: The headers that a kernel may include, by CuPy's names.
HEADERS: dict[str, str] = {
    "cupy/carray.cuh": ARRAYS + "#include <cupy/halves.cuh>\n",
    "cupy/complex.cuh": COMPLEX,
    "cupy/halves.cuh": HALVES,
}
