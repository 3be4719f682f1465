// Element types, as they are in memory, and conversions between them.
//
// Arithmetic is done in a type's compute type: float for the 16-bit floats, int and unsigned for
// the narrow integers, bool for `boolean`, the type itself for the rest.
#pragma once

namespace cyrt {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using float32 = float;
using float64 = double;

// Any byte but 0 is true, as in memory that others wrote.
struct boolean {
    uint8 byte;
};

struct float16 {
    uint16 bits;
};

struct bfloat16 {
    uint16 bits;
};

template <class T> struct alignas(2 * sizeof(T)) complex {
    T re, im;
};
using complex64 = complex<float>;
using complex128 = complex<double>;

template <class T> struct real_of {
    using type = T;
};
template <class T> struct real_of<complex<T>> {
    using type = T;
};

// -- memory to compute type -----------------------------------------------------------------------

__device__ inline bool widen(boolean x) { return x.byte != 0; }
__device__ inline int widen(int8 x) { return x; }
__device__ inline int widen(int16 x) { return x; }
__device__ inline unsigned widen(uint8 x) { return x; }
__device__ inline unsigned widen(uint16 x) { return x; }
__device__ inline float widen(float16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}
__device__ inline float widen(bfloat16 x) { return __uint_as_float(uint32(x.bits) << 16); }
template <class T> __device__ inline T widen(T x) { return x; }

// The type that elements of a type in memory are computed in.
template <class T> using compute_of = decltype(widen(T{}));

// -- compute type to memory, and casts ------------------------------------------------------------

// A float out of an integer's range: what x86 gives NumPy where C leaves it open, but for int32
// and the 64-bit types, which saturate.
template <class To, class From> struct Cast {
    __device__ static To of(From x) { return static_cast<To>(x); }
};
template <class To> struct CastFloat {
    __device__ static To of(double x) { return static_cast<To>(static_cast<int>(x)); }
    __device__ static To of(float x) { return static_cast<To>(static_cast<int>(x)); }
};
template <> struct CastFloat<uint32> {
    __device__ static uint32 of(double x) { return static_cast<uint32>(static_cast<int64>(x)); }
    __device__ static uint32 of(float x) { return static_cast<uint32>(static_cast<int64>(x)); }
};
template <> struct CastFloat<uint64> {
    template <class T> __device__ static uint64 of(T x) {
        return x < T(0) ? static_cast<uint64>(static_cast<int64>(x)) : static_cast<uint64>(x);
    }
};
template <> struct Cast<int8, float> : CastFloat<int8> {};
template <> struct Cast<int16, float> : CastFloat<int16> {};
template <> struct Cast<uint8, float> : CastFloat<uint8> {};
template <> struct Cast<uint16, float> : CastFloat<uint16> {};
template <> struct Cast<uint32, float> : CastFloat<uint32> {};
template <> struct Cast<uint64, float> : CastFloat<uint64> {};
template <> struct Cast<int8, double> : CastFloat<int8> {};
template <> struct Cast<int16, double> : CastFloat<int16> {};
template <> struct Cast<uint8, double> : CastFloat<uint8> {};
template <> struct Cast<uint16, double> : CastFloat<uint16> {};
template <> struct Cast<uint32, double> : CastFloat<uint32> {};
template <> struct Cast<uint64, double> : CastFloat<uint64> {};

template <class From> struct Cast<bool, From> {
    __device__ static bool of(From x) { return x != From(0); }
};
template <class From> struct Cast<boolean, From> {
    __device__ static boolean of(From x) { return {uint8(x != From(0))}; }
};

template <class From> struct Cast<float16, From> {
    __device__ static float16 of(From x) {
        float16 narrow;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(static_cast<float>(x)));
        return narrow;
    }
};
template <> struct Cast<float16, double> {
    __device__ static float16 of(double x) {
        float16 narrow;
        asm("cvt.rn.f16.f64 %0, %1;" : "=h"(narrow.bits) : "d"(x));
        return narrow;
    }
};
template <class From> struct Cast<bfloat16, From> {
    __device__ static bfloat16 of(From x) {
        bfloat16 narrow;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(static_cast<float>(x)));
        return narrow;
    }
};

template <class T, class From> struct Cast<complex<T>, From> {
    __device__ static complex<T> of(From x) { return {Cast<T, From>::of(x), T(0)}; }
};
template <class T, class From> struct Cast<complex<T>, complex<From>> {
    __device__ static complex<T> of(complex<From> x) { return {T(x.re), T(x.im)}; }
};
// To a real type the imaginary part is dropped.
template <class To, class From> struct Cast<To, complex<From>> {
    __device__ static To of(complex<From> x) { return Cast<To, From>::of(x.re); }
};
template <class From> struct Cast<float16, complex<From>> {
    __device__ static float16 of(complex<From> x) { return Cast<float16, From>::of(x.re); }
};
template <class From> struct Cast<bfloat16, complex<From>> {
    __device__ static bfloat16 of(complex<From> x) { return Cast<bfloat16, From>::of(x.re); }
};
template <class From> struct Cast<boolean, complex<From>> {
    __device__ static boolean of(complex<From> x) {
        return {uint8(x.re != From(0) || x.im != From(0))};
    }
};

// From a compute type to any type, as it is in memory or is computed in.
template <class To, class From> __device__ inline To cast(From x) { return Cast<To, From>::of(x); }

}  // namespace cyrt
