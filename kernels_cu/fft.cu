// Discrete Fourier transforms of lines of up to FFT_LONGEST points, whose prime factors are 2, 3, 5
// and 7: Stockham's algorithm in shared memory (Govindaraju et al., "High performance discrete
// Fourier transforms on graphics processors", SC 2008).
//
// CYRT_FFT(name, simple_name, type) makes the kernels of a real type. The simple one has lines whose
// points are all complex numbers in memory, without tables. A block transforms some lines. In a pass, a
// thread computes butterflies of as many points as the pass's radix. The first pass loads from global
// memory, the last one stores there, the others exchange points through shared memory.
//
// Longer transforms are several launches: lines are then columns of the transform, and results are
// multiplied by factors that depend on line and point. Transforms of any length are a convolution
// with a chirp (Bluestein, 1970): inputs and results are multiplied by tables.
//
// An even number of real values is a line of half as many complex points, from whose transform the
// first half of the spectrum follows, and back (Cooley, Lewis and Welch, "The fast Fourier transform
// algorithm: programming considerations", 1970).
//
// All transforms are forward; an inverse one conjugates its input and its result.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "memory.cuh"
#include "strided.cuh"
#include "params/fft.h"

namespace cyrt {

// -- butterflies: transforms of R points in registers ---------------------------------------------

// The product with -i.
template <class T> __device__ inline complex<T> turned(complex<T> a) { return {a.im, -a.re}; }

// cos and sin of 2 pi k / R; calls in unrolled loops are constants.
template <int R> __device__ __forceinline__ constexpr double cosine(int k) {
    int near = k > R / 2 ? R - k : k;
    if (R == 3) return -0.5;
    if (R == 5) return near == 1 ? 0.30901699437494742410 : -0.80901699437494742410;
    return near == 1   ? 0.62348980185873353053
           : near == 2 ? -0.22252093395631440429
                       : -0.90096886790241912624;
}
template <int R> __device__ __forceinline__ constexpr double sine(int k) {
    int near = k > R / 2 ? R - k : k;
    double sign = k > R / 2 ? -1 : 1;
    if (R == 3) return sign * 0.86602540378443864676;
    if (R == 5) return sign * (near == 1 ? 0.95105651629515357212 : 0.58778525229247312917);
    return sign * (near == 1   ? 0.78183148246802980871
                   : near == 2 ? 0.97492791218182360702
                               : 0.43388373911755812048);
}

template <class T> __device__ __forceinline__ void butterfly(complex<T> (&)[1]) {}

template <class T> __device__ __forceinline__ void butterfly(complex<T> (&v)[2]) {
    complex<T> a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
}

template <class T> __device__ __forceinline__ void butterfly(complex<T> (&v)[4]) {
    complex<T> a = v[0] + v[2], b = v[0] - v[2];
    complex<T> c = v[1] + v[3], d = turned(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
}

template <class T> __device__ __forceinline__ void butterfly(complex<T> (&v)[8]) {
    constexpr T H = 0.70710678118654752440;
    complex<T> even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    butterfly(even);
    butterfly(odd);
    odd[1] = {(odd[1].re + odd[1].im) * H, (odd[1].im - odd[1].re) * H};
    odd[2] = turned(odd[2]);
    odd[3] = {(odd[3].im - odd[3].re) * H, -(odd[3].re + odd[3].im) * H};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        v[k] = even[k] + odd[k];
        v[k + 4] = even[k] - odd[k];
    }
}

// Odd radices: points k and R - k have conjugate factors.
template <int R, class T> __device__ __forceinline__ void butterfly(complex<T> (&v)[R]) {
    constexpr int H = R / 2;
    complex<T> sum[H], difference[H], first = v[0];
#pragma unroll
    for (int k = 1; k <= H; ++k) {
        sum[k - 1] = v[k] + v[R - k];
        difference[k - 1] = v[k] - v[R - k];
        v[0] = v[0] + sum[k - 1];
    }
#pragma unroll
    for (int m = 1; m <= H; ++m) {
        complex<T> a = first, b = {};
#pragma unroll
        for (int k = 1; k <= H; ++k) {
            T c = cosine<R>(m * k % R), s = sine<R>(m * k % R);
            a = {fma(c, sum[k - 1].re, a.re), fma(c, sum[k - 1].im, a.im)};
            b = {fma(s, difference[k - 1].re, b.re), fma(s, difference[k - 1].im, b.im)};
        }
        v[m] = a + turned(b);
        v[R - m] = a - turned(b);
    }
}

// -- points in global memory ----------------------------------------------------------------------

// A line: its index within its transform, and where its points begin in the input and the output.
struct FftLine {
    uint32 sub;
    int64 from, to;
};

__device__ inline FftLine fft_line(const Fft& args, uint32 line) {
    uint32 transform = divide(line, args.subs), sub = line - transform * args.subs.size;
    int64 offset[2];
    locate_row(args.outer, transform, args.num_outer, offset);
    return {sub, offset[1] + sub * args.from.sub, offset[0] + sub * args.to.sub};
}

template <class T> __device__ __forceinline__ complex<T> fft_read(const Fft& args, int64 at) {
    if (args.flags & FFT_REAL_IN) return {global<T>(args.input)[at], T(0)};
    return global<complex<T>>(args.input)[at];
}

// Point k of a packed line: two real numbers.
template <class T>
__device__ __forceinline__ complex<T> fft_load_pair(const Fft& args, FftLine line, uint32 k) {
    int64 at = line.from + k * args.from.point;
    complex<T> x = {};
    if (2 * k < args.from.valid) x.re = global<T>(args.input)[at];
    if (2 * k + 1 < args.from.valid) x.im = global<T>(args.input)[at + args.from.sub];
    return x;
}

// The conjugate of point k of a packed line whose inverse transform is pairs of real numbers. The
// imaginary parts of the first and the last number of the spectrum have no effect.
template <class T>
__device__ __forceinline__ complex<T> fft_load_half(const Fft& args, FftLine line, uint32 k) {
    uint32 other = args.n - k;
    complex<T> a = {}, b = {};
    if (k < args.from.valid) a = fft_read<T>(args, line.from + k * args.from.point);
    if (other < args.from.valid) b = fft_read<T>(args, line.from + other * args.from.point);
    if (args.flags & FFT_CONJUGATE_IN) {
        a.im = -a.im;
        b.im = -b.im;
    }
    if (k == 0) a.im = b.im = 0;
    complex<T> w = global<complex<T>>(args.half)[k];
    complex<T> odd = turned(complex<T>{a.re - b.re, -(a.im + b.im)} * w);
    return complex<T>{a.re + b.re, b.im - a.im} + odd;
}

template <class T>
__device__ __forceinline__ complex<T> fft_load(const Fft& args, FftLine line, uint32 k) {
    if (args.flags & FFT_PACKED_IN) return fft_load_pair<T>(args, line, k);
    if (args.flags & FFT_PACKED_OUT) return fft_load_half<T>(args, line, k);
    uint32 index = k * args.from.step + line.sub, stored = index;
    int64 at = line.from + k * args.from.point;
    bool mirrored = args.flags & FFT_HERMITIAN && index > args.length / 2;
    if (mirrored) {
        stored = args.length - index;
        at += (int64(stored) - index) * args.from.sub;
    }
    complex<T> x = {};
    if (stored >= args.from.valid || index >= args.length) return x;
    x = fft_read<T>(args, at);
    if (mirrored != bool(args.flags & FFT_CONJUGATE_IN)) x.im = -x.im;
    if (args.in_table) x = x * global<complex<T>>(args.in_table)[index];
    return x;
}

template <class T>
__device__ __forceinline__ void fft_store(const Fft& args, FftLine line, uint32 k, complex<T> x) {
    uint32 index = k * args.to.step + line.sub;
    int64 at = line.to + k * args.to.point;
    if (index >= args.to.valid) return;
    if (args.high) {
        uint32 power = line.sub * k * args.twist, high = power >> args.low_bits;
        complex128 w = global<complex128>(args.high)[high] *
                       global<complex128>(args.low)[power - (high << args.low_bits)];
        x = x * complex<T>{T(w.re), T(w.im)};
    }
    if (args.out_table) x = x * global<complex<T>>(args.out_table)[index];
    T scale = args.scale;
    x = {x.re * scale, x.im * scale};
    if (args.flags & FFT_CONJUGATE_OUT) x.im = -x.im;
    if (args.flags & FFT_PACKED_OUT) {
        global<T>(args.out)[at] = x.re;
        global<T>(args.out)[at + args.to.sub] = x.im;
    } else if (args.flags & FFT_REAL_OUT) {
        global<T>(args.out)[at] = x.re;
    } else {
        global<complex<T>>(args.out)[at] = x;
    }
}

// -- passes ---------------------------------------------------------------------------------------

// A pass of a block, and where its lines are in shared memory.
template <class T> struct FftBlock {
    const Fft& args;
    const FftPass& pass;
    complex<T>* shared;
    uint32 begin, lines;  // the block's
    bool by_lines, first, last;

    __device__ __forceinline__ FftBlock(const Fft& args, uint32 number, complex<T>* shared)
        : args(args), pass(args.pass[number]), shared(shared), begin(blockIdx.x * args.tile.size),
          first(number == 0), last(number + 1 == args.passes && !(args.flags & FFT_PACKED_IN)) {
        uint32 left = args.lines - begin;
        lines = left < args.tile.size ? left : args.tile.size;
        by_lines = args.flags & (first ? FFT_LINES_IN : FFT_LINES_OUT);
    }
    // Sets the line of butterfly t and its index in that; returns false if there is none.
    __device__ __forceinline__ bool locate(uint32 t, uint32& line, uint32& j) const {
        if (by_lines) {
            j = divide(t, args.tile);
            line = t - j * args.tile.size;
        } else {
            line = divide(t, pass.butterflies);
            j = t - line * pass.butterflies.size;
        }
        return line < lines && j < pass.butterflies.size;
    }
    __device__ __forceinline__ complex<T>* at(uint32 line, uint32 k) const {
        return shared + line * args.pitch + FFT_PADDED(k, sizeof(complex<T>));
    }
    template <int R> __device__ __forceinline__ void load(uint32 line, uint32 j,
                                                          complex<T> (&v)[R]) const {
#pragma unroll
        for (int r = 0; r < R; ++r) v[r] = *at(line, j + r * pass.butterflies.size);
    }
    // Points j + r * n / R become results: the first pass has no factors.
    template <int R> __device__ __forceinline__ void compute(uint32 k, complex<T> (&v)[R]) const {
        const complex<T>* roots = global<complex<T>>(args.roots) + k;
        if (!first) {
#pragma unroll
            for (int r = 1; r < R; ++r) v[r] = v[r] * roots[r * pass.done.size - 1];
        }
        butterfly(v);
    }
    template <int R> __device__ __forceinline__ void store(uint32 line, uint32 j, uint32 k,
                                                           const complex<T> (&v)[R]) const {
#pragma unroll
        for (int r = 0; r < R; ++r) *at(line, (j - k) * R + k + r * pass.done.size) = v[r];
    }
    __device__ __forceinline__ uint32 within(uint32 j) const {
        return j - divide(j, pass.done) * pass.done.size;
    }
};

// The points of a butterfly from global memory.
template <bool SIMPLE, int R, class T>
__device__ __forceinline__ void fft_load_points(const FftBlock<T>& block, FftLine line, uint32 j,
                                                complex<T> (&v)[R]) {
    const Fft& args = block.args;
    uint32 step = block.pass.butterflies.size;
    if constexpr (SIMPLE) {
        const complex<T>* in = global<complex<T>>(args.input) + line.from + j * args.from.point;
        int64 stride = step * args.from.point;
#pragma unroll
        for (int r = 0; r < R; ++r) v[r] = in[r * stride];
        if (args.flags & FFT_CONJUGATE_IN) {
#pragma unroll
            for (int r = 0; r < R; ++r) v[r].im = -v[r].im;
        }
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r) v[r] = fft_load<T>(args, line, j + r * step);
    }
}

// The results of a butterfly to global memory.
template <bool SIMPLE, int R, class T>
__device__ __forceinline__ void fft_store_points(const FftBlock<T>& block, FftLine line, uint32 j,
                                                 const complex<T> (&v)[R]) {
    const Fft& args = block.args;
    uint32 step = block.pass.done.size;
    if constexpr (SIMPLE) {
        complex<T>* out = global<complex<T>>(args.out) + line.to + j * args.to.point;
        int64 stride = step * args.to.point;
        T scale = args.scale, imaginary = args.flags & FFT_CONJUGATE_OUT ? -scale : scale;
#pragma unroll
        for (int r = 0; r < R; ++r) out[r * stride] = {v[r].re * scale, v[r].im * imaginary};
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r) fft_store(args, line, j + r * step, v[r]);
    }
}

// The first and the last pass: one of the two sides is global memory.
template <bool SIMPLE, int R, class T>
__device__ __forceinline__ void fft_end(const FftBlock<T>& block) {
    uint32 all = block.args.tile.size * block.pass.butterflies.size;
#pragma unroll 1
    for (uint32 t = threadIdx.x; t < all; t += blockDim.x) {
        uint32 line, j;
        if (!block.locate(t, line, j)) continue;
        uint32 k = block.within(j);
        FftLine points = fft_line(block.args, block.begin + line);
        complex<T> v[R];
        if (block.first) {
            fft_load_points<SIMPLE>(block, points, j, v);
        } else {
            block.load(line, j, v);
        }
        block.compute(k, v);
        if (block.last) {
            fft_store_points<SIMPLE>(block, points, j, v);
        } else {
            block.store(line, j, k, v);
        }
    }
}

// A pass between them. A thread holds its points in registers until all points of the block are read,
// so that one buffer suffices.
template <int R, class T> __device__ __forceinline__ void fft_middle(const FftBlock<T>& block) {
    constexpr int BUTTERFLIES = FFT_ITEMS / R;
    // Values that were not set would be kept in registers from one pass to the next.
    complex<T> v[BUTTERFLIES][R] = {};
    uint32 line, j;
#pragma unroll
    for (int i = 0; i < BUTTERFLIES; ++i) {
        if (block.locate(threadIdx.x + i * blockDim.x, line, j)) block.load(line, j, v[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BUTTERFLIES; ++i) {
        if (block.locate(threadIdx.x + i * blockDim.x, line, j)) {
            uint32 k = block.within(j);
            block.compute(k, v[i]);
            block.store(line, j, k, v[i]);
        }
    }
}

template <bool SIMPLE, int R, class T>
__device__ __forceinline__ void fft_pass(const FftBlock<T>& block) {
    if (block.first || block.last) {
        fft_end<SIMPLE, R>(block);
    } else {
        fft_middle<R>(block);
    }
    if (!block.last) __syncthreads();
}

// The first half of the spectrum of packed lines, from their transforms in shared memory. Results k
// and n - k come from the same two points.
template <class T> __device__ __forceinline__ void fft_unpack(const FftBlock<T>& block) {
    const Fft& args = block.args;
    uint32 pairs = args.n / 2 + 1, all = args.tile.size * pairs;
#pragma unroll 1
    for (uint32 t = threadIdx.x; t < all; t += blockDim.x) {
        uint32 line = args.flags & FFT_LINES_OUT ? t % args.tile.size : t / pairs;
        uint32 k = args.flags & FFT_LINES_OUT ? t / args.tile.size : t - line * pairs;
        if (line >= block.lines) continue;
        FftLine points = fft_line(args, block.begin + line);
        complex<T> a = *block.at(line, k), b = *block.at(line, k == 0 ? 0 : args.n - k);
        complex<T> even = {(a.re + b.re) / 2, (a.im - b.im) / 2};
        complex<T> odd = turned(complex<T>{(a.re - b.re) / 2, (a.im + b.im) / 2});
        odd = odd * global<complex<T>>(args.half)[k];
        complex<T> difference = even - odd;
        fft_store(args, points, k, even + odd);
        if (k != args.n - k) fft_store(args, points, args.n - k, conj(difference));
    }
}

template <class T, bool SIMPLE> __device__ inline void fft(const Fft& args) {
    extern __shared__ __align__(16) unsigned char fft_points[];
    wait_for_dependencies(args);
    launch_dependents();
#pragma unroll 1
    for (uint32 number = 0; number < args.passes; ++number) {
        FftBlock<T> block(args, number, reinterpret_cast<complex<T>*>(fft_points));
        switch (block.pass.radix) {
        case 1:  // a line of one point
            fft_end<SIMPLE, 1>(block);
            __syncthreads();
            break;
        case 2: fft_pass<SIMPLE, 2>(block); break;
        case 3: fft_pass<SIMPLE, 3>(block); break;
        case 4: fft_pass<SIMPLE, 4>(block); break;
        case 5: fft_pass<SIMPLE, 5>(block); break;
        case 7: fft_pass<SIMPLE, 7>(block); break;
        case 8: fft_pass<SIMPLE, 8>(block); break;
        }
    }
    if (!SIMPLE && args.flags & FFT_PACKED_IN) {
        fft_unpack(FftBlock<T>(args, 0, reinterpret_cast<complex<T>*>(fft_points)));
    }
}

}  // namespace cyrt

#define CYRT_FFT_KERNEL(NAME, TYPE, SIMPLE)                       \
    extern "C" __global__ void __launch_bounds__(cyrt::FFT_BLOCK) \
        NAME(const __grid_constant__ cyrt::Fft args) {            \
        cyrt::fft<TYPE, SIMPLE>(args);                            \
    }
#define CYRT_FFT(NAME, SIMPLE_NAME, TYPE) \
    CYRT_FFT_KERNEL(NAME, TYPE, false)    \
    CYRT_FFT_KERNEL(SIMPLE_NAME, TYPE, true)
