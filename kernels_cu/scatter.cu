// Values combined into elements of an array, which are given by keys: out[key] = out[key] op value.
//
// The keys are sorted, by a stable sort before. A run is the values of one key. A block combines the
// runs of one tile, in order; it writes those that begin and end inside, and leaves the results of
// its first and its last run to the next launch, whose values they are.
//
// CYRT_SCATTER(name, type, compute type, Operation) makes
//   name            keys are uint32
//   name_wide       keys are uint64
//   name_partials   the values are the results of an earlier launch
//   name_rows       a key names a row, whose elements are combined with a row of values
//   name_row_partials   the same, of the results of an earlier launch
//
// INVARIANT: the result follows from the keys and the values alone, and never from timing: each sum
// is put together in an order that depends on positions in the sorted keys.
#pragma once

#include "complex_math.cuh"
#include "dependency.cuh"
#include "integer_math.cuh"
#include "memory.cuh"
#include "prefix.cuh"
#include "real_math.cuh"
#include "params/scatter.h"

namespace cyrt {

// What may be added to any number without a change. 0.0 may not: it makes 0.0 of -0.0.
template <class A> struct Zero {
    __device__ static A value() { return A(-0.0); }
};
template <class T> struct Zero<complex<T>> {
    __device__ static complex<T> value() { return {T(-0.0), T(-0.0)}; }
};
struct ScatterAdd {
    template <class A> __device__ A operator()(A a, A b) const { return a + b; }
    template <class A> __device__ static A repeated(A) { return Zero<A>::value(); }
};
struct ScatterMaximum {
    template <class A> __device__ A operator()(A a, A b) const { return maximum(a, b); }
    template <class A> __device__ static A repeated(A a) { return a; }
};
struct ScatterMinimum {
    template <class A> __device__ A operator()(A a, A b) const { return minimum(a, b); }
    template <class A> __device__ static A repeated(A a) { return a; }
};

// The result of the run that is open at the end of some values, and whether it begins among them.
template <class A> struct Open {
    A result;
    bool begins;

    template <class Op> __device__ void follow(const Open& before, Op op) {
        if (!begins) result = op(before.result, result);
        begins = begins || before.begins;
    }
};

// K: keys; V: values in memory; T: elements in memory; A: what is computed in.
template <class K, class V, class T, class A, class Op>
__device__ inline void scatter(const Scatter& args) {
    constexpr int BLOCK = SCATTER_BLOCK, ITEMS = SCATTER_ITEMS, TILE = SCATTER_TILE;
    __shared__ K keys[TILE];
    __shared__ alignas(16) unsigned char bytes[TILE * sizeof(A)];
    __shared__ alignas(16) unsigned char open_bytes[BLOCK / 32 * sizeof(A)];
    __shared__ bool begins[BLOCK / 32];
    A* values = reinterpret_cast<A*>(bytes);
    A* opened = reinterpret_cast<A*>(open_bytes);
    const K* from_keys = global<K>(args.keys);
    const V* from_values = global<V>(args.values);
    T* out = global<T>(args.out);
    int64 begin = int64(blockIdx.x) * TILE, beyond = args.n - begin;
    int count = beyond < TILE ? beyond : TILE;
    wait_for_dependencies(args);
    launch_dependents();
    int64 from[ITEMS];
    K key[ITEMS];
    V value[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        int i = k * BLOCK + threadIdx.x;
        from[k] = i >= count ? 0 : args.order ? args.order[begin + i] : begin + i;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        key[k] = from_keys[from[k]];
        value[k] = from_values[from[k] * args.step];
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        keys[k * BLOCK + threadIdx.x] = key[k];
        values[k * BLOCK + threadIdx.x] = cast<A>(widen(value[k]));
    }
    __syncthreads();

    // A thread has items side by side. What is open at their end is known to those that follow.
    Op op;
    int first = threadIdx.x * ITEMS, end = first + ITEMS < count ? first + ITEMS : count;
    auto starts = [&](int i) { return i == 0 || keys[i] != keys[i - 1]; };
    Open<A> open = {values[first], first < count && starts(first)};
    for (int i = first + 1; i < end; ++i) {
        Open<A> next = {values[i], starts(i)};
        next.follow(open, op);
        open = next;
    }
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        Open<A> before = {shuffle_up(open.result, lanes),
                          bool(__shfl_up_sync(ALL_LANES, int(open.begins), lanes))};
        if (lane >= lanes) open.follow(before, op);
    }
    if (lane == 31) {
        opened[warp] = open.result;
        begins[warp] = open.begins;
    }
    open.result = shuffle_up(open.result, 1);
    open.begins = __shfl_up_sync(ALL_LANES, int(open.begins), 1);
    __syncthreads();
    if (first >= count) return;
    if (warp > 0) {
        Open<A> before = {opened[0], begins[0]};
        for (int w = 1; w < warp; ++w) {
            Open<A> next = {opened[w], begins[w]};
            next.follow(before, op);
            before = next;
        }
        if (lane == 0) {
            open = before;
        } else {
            open.follow(before, op);
        }
    }

    A result = open.result;  // the result of the run that is open before the first item
    A* partials = static_cast<A*>(args.partials);
    for (int i = first; i < end; ++i) {
        result = starts(i) ? values[i] : op(result, values[i]);
        bool last = i == count - 1;
        if (!last && keys[i + 1] == keys[i]) continue;
        bool is_first = keys[i] == keys[0];
        if (args.ends && (last || is_first)) {
            int64 at = 2 * int64(blockIdx.x);
            if (is_first) {
                args.ends[at] = keys[i];
                partials[at] = result;
            }
            if (last) {
                args.ends[at + 1] = keys[i];
                partials[at + 1] = is_first ? Op::repeated(result) : result;
            }
        } else {
            T* element = out + keys[i];
            *element = cast<T>(op(cast<A>(widen(*element)), result));
        }
    }
}

// The same of rows. Each thread combines the elements of one column, row after row.
template <class V, class T, class A, class Op>
__device__ inline void scatter_rows(const Scatter& args) {
    constexpr int AHEAD = 8;  // rows that are loaded before the first of them is needed
    __shared__ uint64 keys[SCATTER_ROWS];
    __shared__ int64 from[SCATTER_ROWS];
    const V* from_values = global<V>(args.values);
    A* partials = static_cast<A*>(args.partials);
    int64 tile = blockIdx.x / args.chunks, begin = tile * SCATTER_ROWS, beyond = args.n - begin;
    int64 column = int64(blockIdx.x % args.chunks) * SCATTER_COLUMNS + threadIdx.x;
    int count = beyond < SCATTER_ROWS ? beyond : SCATTER_ROWS;
    wait_for_dependencies(args);
    launch_dependents();
    if (threadIdx.x < count) {
        int64 row = begin + threadIdx.x;
        if (args.order) row = args.order[row];
        from[threadIdx.x] = row * args.length;
        keys[threadIdx.x] =
            args.wide ? global<uint64>(args.keys)[row] : global<uint32>(args.keys)[row];
    }
    __syncthreads();
    if (column >= args.length) return;
    T* out = global<T>(args.out) + column;
    Op op;
    A result{};
    for (int first = 0; first < count; first += AHEAD) {
        V value[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (first + k < count) value[k] = from_values[(from[first + k] + column) * args.step];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            int i = first + k;
            if (i >= count) break;
            A next = cast<A>(widen(value[k]));
            result = i == 0 || keys[i] != keys[i - 1] ? next : op(result, next);
            bool last = i == count - 1;
            if (!last && keys[i + 1] == keys[i]) continue;
            bool is_first = keys[i] == keys[0];
            if (args.ends && (last || is_first)) {
                int64 at = 2 * tile;
                if (is_first) {
                    args.ends[at] = keys[i];
                    partials[at * args.length + column] = result;
                }
                if (last) {
                    args.ends[at + 1] = keys[i];
                    partials[(at + 1) * args.length + column] =
                        is_first ? Op::repeated(result) : result;
                }
            } else {
                T* element = out + keys[i];
                *element = cast<T>(op(cast<A>(widen(*element)), result));
            }
        }
    }
}

}  // namespace cyrt

#define CYRT_SCATTER_ROWS(NAME, VALUE, TYPE, COMPUTE, OPERATION)        \
    extern "C" __global__ void __launch_bounds__(cyrt::SCATTER_COLUMNS) \
        NAME(const __grid_constant__ cyrt::Scatter args) {              \
        cyrt::scatter_rows<VALUE, TYPE, COMPUTE, OPERATION>(args);      \
    }
#define CYRT_SCATTER_OF(NAME, KEY, VALUE, TYPE, COMPUTE, OPERATION)      \
    extern "C" __global__ void __launch_bounds__(cyrt::SCATTER_BLOCK)    \
        NAME(const __grid_constant__ cyrt::Scatter args) {               \
        cyrt::scatter<cyrt::KEY, VALUE, TYPE, COMPUTE, OPERATION>(args); \
    }
#define CYRT_SCATTER(NAME, TYPE, COMPUTE, OPERATION)                            \
    CYRT_SCATTER_OF(NAME, uint32, TYPE, TYPE, COMPUTE, OPERATION)               \
    CYRT_SCATTER_OF(NAME##_wide, uint64, TYPE, TYPE, COMPUTE, OPERATION)        \
    CYRT_SCATTER_OF(NAME##_partials, uint64, COMPUTE, TYPE, COMPUTE, OPERATION) \
    CYRT_SCATTER_ROWS(NAME##_rows, TYPE, TYPE, COMPUTE, OPERATION)              \
    CYRT_SCATTER_ROWS(NAME##_row_partials, COMPUTE, TYPE, COMPUTE, OPERATION)
