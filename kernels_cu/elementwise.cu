// Element by element: unary, binary and ternary operations, casts, copies and fills.
//
// An operation is a struct with `static R apply(a, ...)`, of arguments in their compute types.
// CYRT_ELEMENTWISE(name, Operation, output type, input types ...) makes its kernels:
//   name          operands contiguous, or one element for all
//   name_strided  any strides, up to MAX_OUTER + 1 dimensions
// CYRT_ALIGNED(...) one more, for small arrays, whose time is what a kernel takes to begin and end:
//   name_aligned  operands contiguous and aligned, whole vectors; of two inputs, one may be a number
// A fill is a copy whose input is a number passed by value.
#pragma once

#include "activations.cuh"
#include "complex_math.cuh"
#include "dependency.cuh"
#include "elementwise_math.cuh"
#include "integer_math.cuh"
#include "memory.cuh"
#include "real_math.cuh"
#include "strided.cuh"
#include "params/elementwise.h"

namespace cyrt {

// Flags of an input.
__device__ constexpr uint32 broadcast_flag(int input) {
    return uint32(ELEMENTWISE_BROADCAST) << 2 * input;
}
__device__ constexpr uint32 value_flag(int input) { return uint32(ELEMENTWISE_VALUE) << 2 * input; }

// The upper bound wins where the bounds cross, as in NumPy.
template <class T> __device__ inline T clip(T a, T low, T high) {
    return minimum(maximum(a, low), high);
}

// The structs of parameters by the number of inputs.
#define CYRT_PARAMETERS_OF(N)          \
    template <> struct Parameters<N> { \
        using Dense = Dense##N;        \
        using Aligned = Aligned##N;    \
        using Strided = Strided##N;    \
    };
template <int INPUTS> struct Parameters;
CYRT_PARAMETERS_OF(1)
CYRT_PARAMETERS_OF(2)
CYRT_PARAMETERS_OF(3)
#undef CYRT_PARAMETERS_OF
template <int INPUTS> using Dense = typename Parameters<INPUTS>::Dense;
template <int INPUTS> using Aligned = typename Parameters<INPUTS>::Aligned;
template <int INPUTS> using Strided = typename Parameters<INPUTS>::Strided;

// The vectors of each input that a thread has loaded, as words: to unpack narrow elements is to wait
// for the loads.
template <int N, class... A> struct Loaded {};
template <int N, class A, class... Rest> struct Loaded<N, A, Rest...> {
    typename Word<sizeof(A) * N>::type word;
    Loaded<N, Rest...> rest;
};

template <int INPUT, int N>
__device__ inline void load_all(Loaded<N>&, const Source*, uint32, const int64*, const int64*,
                                const Span&) {}
template <int INPUT, int N, class A, class... Rest>
__device__ inline void load_all(Loaded<N, A, Rest...>& loaded, const Source* in, uint32 flags,
                                const int64* offsets, const int64* strides, const Span& span) {
    Items<A, N> items = flags & value_flag(INPUT)
                            ? splat<N>(value_of<A>(*in))
                            : load_items<N>(pointer_of<A>(*in) + *offsets, *strides, span);
    memcpy(&loaded.word, &items, sizeof(items));
    load_all<INPUT + 1>(loaded.rest, in + 1, flags, offsets + 1, strides + 1, span);
}

// Goes on to the next vectors; an input that is one element for all stays.
template <int INPUT, int N>
__device__ inline void load_next(Loaded<N>&, const Source*, uint32, int64) {}
template <int INPUT, int N, class A, class... Rest>
__device__ inline void load_next(Loaded<N, A, Rest...>& loaded, const Source* in, uint32 flags,
                                 int64 first) {
    if (!(flags & (value_flag(INPUT) | broadcast_flag(INPUT)))) {
        Items<A, N> items = load_vector<N>(pointer_of<A>(*in) + first);
        memcpy(&loaded.word, &items, sizeof(items));
    }
    load_next<INPUT + 1>(loaded.rest, in + 1, flags, first);
}

template <class Op, int N, class... Done>
__device__ inline auto apply(const Loaded<N>&, int, Done... done) {
    return Op::apply(done...);
}
template <class Op, int N, class A, class... Rest, class... Done>
__device__ inline auto apply(const Loaded<N, A, Rest...>& loaded, int k, Done... done) {
    Items<A, N> items;
    memcpy(&items, &loaded.word, sizeof(items));
    return apply<Op>(loaded.rest, k, done..., widen(items.item[k]));
}

template <class Op, class R, int N, class... A>
__device__ inline void store_all(const Loaded<N, A...>& loaded, R* out, int64 stride,
                                 const Span& span) {
    __builtin_assume(__isGlobal(out));
    Items<R, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.item[k] = cast<R>(apply<Op>(loaded, k));
    store_items<N>(out, stride, span, result);
}

// The items of this thread, of those of a block that begin at `begin`.
template <int N> __device__ inline Span span_of(uint32 begin, uint32 limit, uint32 flags) {
    Span span;
    span.first = begin + threadIdx.x * (flags & ELEMENTWISE_VECTOR ? N : 1);
    span.spacing = flags & ELEMENTWISE_VECTOR ? 1 : blockDim.x;
    span.limit = limit;
    span.vector = (flags & ELEMENTWISE_VECTOR) && span.first + N <= limit;
    return span;
}

template <class Op, class R, class... A>
__device__ inline void dense(const Dense<sizeof...(A)>& args) {
    constexpr int N = items_of<R, A...>, INPUTS = sizeof...(A);
    uint32 step = blockDim.x * N, all = step * args.steps;
    int64 begin = int64(blockIdx.x) * all, rest = args.n - begin;
    uint32 count = rest <= 0 ? 0 : rest < all ? uint32(rest) : all;
    int64 offsets[INPUTS], strides[INPUTS];
#pragma unroll
    for (int i = 0; i < INPUTS; ++i) {
        strides[i] = args.flags & broadcast_flag(i) ? 0 : 1;
        offsets[i] = strides[i] * begin;
        compute_now(offsets[i]);
    }
    compute_now(count);
    Span span = span_of<N>(0, count, args.flags);
    wait_for_dependencies(args);
    launch_dependents();
    if (span.first >= span.limit) return;
    R* out = static_cast<R*>(args.out) + begin;
    Loaded<N, A...> loaded;
    bool ready = false;
#pragma unroll 1
    for (uint32 left = args.steps;;) {
        // Addresses are computed from it in every step: one for each item would fill the registers.
        asm("" : "+r"(span.first));
        if (!ready) load_all<0>(loaded, args.inputs, args.flags, offsets, strides, span);
        Span next = span;
        next.first += step;
        next.vector = span.vector && next.first + N <= next.limit;
        bool more = --left && next.first < next.limit;
        Loaded<N, A...> ahead = loaded;
        ready = more && next.vector;  // loads run one step ahead
        if (ready) load_next<0>(ahead, args.inputs, args.flags, begin + next.first);
        store_all<Op>(loaded, out, 1, span);
        if (!more) return;
        loaded = ahead;
        span = next;
    }
}

template <uint32 FLAGS, int INPUT, int N>
__device__ inline void load_aligned(Loaded<N>&, const uint64*, uint32) {}
template <uint32 FLAGS, int INPUT, int N, class A, class... Rest>
__device__ inline void load_aligned(Loaded<N, A, Rest...>& loaded, const uint64* in,
                                    uint32 vector) {
    if (FLAGS & value_flag(INPUT)) {
        A value;
        memcpy(&value, in, sizeof(A) <= 8 ? sizeof(A) : 0);
        Items<A, N> items = splat<N>(value);
        memcpy(&loaded.word, &items, sizeof(items));
    } else {
        using Vector = typename Word<sizeof(A) * N>::type;
        const Vector* from = reinterpret_cast<const Vector*>(*in) + vector;
        __builtin_assume(__isGlobal(from));
        loaded.word = *from;
    }
    load_aligned<FLAGS, INPUT + 1>(loaded.rest, in + 1, vector);
}

template <uint32 FLAGS, class Op, class R, class... A>
__device__ inline void aligned_of(const Aligned<sizeof...(A)>& args) {
    constexpr int N = items_of<R, A...>;
    uint32 vector = blockIdx.x * blockDim.x + threadIdx.x;
    wait_for_dependencies(args);
    launch_dependents();
    if (vector >= args.vectors) return;
    Loaded<N, A...> loaded;
    load_aligned<FLAGS, 0>(loaded, args.inputs, vector);
    R* out = static_cast<R*>(args.out) + int64(vector) * N;
    __builtin_assume(__isGlobal(out));
    Items<R, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.item[k] = cast<R>(apply<Op>(loaded, k));
    store_vector<N>(out, result);
}

// Everything that does not depend on memory is decided before the wait, while it costs no time.
template <class Op, class R, class... A>
__device__ inline void aligned(const Aligned<sizeof...(A)>& args) {
    if (sizeof...(A) == 2 && args.flags == value_flag(0)) {
        aligned_of<value_flag(0), Op, R, A...>(args);
    } else if (sizeof...(A) == 2 && args.flags == value_flag(1)) {
        aligned_of<value_flag(1), Op, R, A...>(args);
    } else {
        aligned_of<0, Op, R, A...>(args);
    }
}

// A block is x threads along rows and y rows; blockIdx.x counts row blocks, and within them the
// chunks of a row.
template <class Op, class R, class... A>
__device__ inline void strided(const Strided<sizeof...(A)>& args) {
    constexpr int N = items_of<R, A...>, INPUTS = sizeof...(A);
    uint32 row_block = divide(blockIdx.x, args.chunks);
    uint32 chunk = blockIdx.x - row_block * args.chunks.size;
    uint32 row = row_block * blockDim.y + threadIdx.y;
    Span span = span_of<N>(chunk * blockDim.x * N, args.inner, args.flags);
    int64 offsets[1 + INPUTS];
    locate_row(args.outer, row, args.num_outer, offsets);
#pragma unroll
    for (int i = 0; i <= INPUTS; ++i) {  // spans begin at the thread's first item
        offsets[i] += span.first * args.inner_strides[i];
        compute_now(offsets[i]);
    }
    uint32 left = row < args.rows && span.first < span.limit ? span.limit - span.first : 0;
    compute_now(left);
    wait_for_dependencies(args);
    launch_dependents();
    if (left == 0) return;
    span.first = 0;
    span.limit = left;
    Loaded<N, A...> loaded;
    load_all<0>(loaded, args.inputs, args.flags, offsets + 1, args.inner_strides + 1, span);
    store_all<Op>(loaded, static_cast<R*>(args.out) + offsets[0], args.inner_strides[0], span);
}

}  // namespace cyrt

#define CYRT_COUNT(A, B, C, N, ...) N
#define CYRT_INPUTS(...) CYRT_COUNT(__VA_ARGS__, 3, 2, 1)
#define CYRT_ELEMENTWISE(NAME, OP, OUTPUT, ...)                                 \
    extern "C" __global__ void NAME(                                            \
        const __grid_constant__ cyrt::Dense<CYRT_INPUTS(__VA_ARGS__)> args) {   \
        cyrt::dense<OP, OUTPUT, __VA_ARGS__>(args);                             \
    }                                                                           \
    extern "C" __global__ void NAME##_strided(                                  \
        const __grid_constant__ cyrt::Strided<CYRT_INPUTS(__VA_ARGS__)> args) { \
        cyrt::strided<OP, OUTPUT, __VA_ARGS__>(args);                           \
    }
#define CYRT_ALIGNED(NAME, OP, OUTPUT, ...)                                     \
    extern "C" __global__ void NAME##_aligned(                                  \
        const __grid_constant__ cyrt::Aligned<CYRT_INPUTS(__VA_ARGS__)> args) { \
        cyrt::aligned<OP, OUTPUT, __VA_ARGS__>(args);                           \
    }
