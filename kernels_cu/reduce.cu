// Reductions over any dimensions of an array of any strides.
//
// CYRT_REDUCE(name, Operation, element type, output type) makes three kernels, all of parameters
// Reduce:
//   name_rows      threads side by side share a result: they run along the innermost reduced
//                  dimension
//   name_columns   threads side by side have results of their own: they run along the innermost
//                  kept dimension, and the rows of the block share the reduced ones
//   name_parts     columns of states: puts together what blocks of the other two left, where
//                  several parts of a grid shared a result
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "reductions.cuh"
#include "strided.cuh"
#include "params/reduce.h"

namespace cyrt {

// Threads that are resident at least: told, the compiler keeps registers for all loads in flight.
constexpr int RESIDENT = 1024;

// As locate_row, but one dimension alone, or the last one, may be of any size.
__device__ inline void locate(const Outer2& outer, uint32 num_dims, int64 number,
                              int64 (&offsets)[2]) {
    offsets[0] = offsets[1] = 0;
    if (num_dims == 0) return;
    uint32 last = num_dims - 1;
#pragma unroll 1
    for (uint32 d = 0; d < last; ++d) {
        uint32 next = divide(number, outer.dims[d]);
        int64 index = number - int64(next) * outer.dims[d].size;
        number = next;
#pragma unroll
        for (int i = 0; i < 2; ++i) offsets[i] += index * outer.strides[d][i];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) offsets[i] += number * outer.strides[last][i];
}

template <int N, class T> __device__ inline Items<T, N> load_aligned(const T* from) {
    if constexpr (N > 1 || sizeof(T) <= 2) {
        return load_vector<N>(from);
    } else {
        Words<T> words = *reinterpret_cast<const Words<T>*>(from);
        return {{words.value()}};
    }
}

template <class State> __device__ inline void store_state(void* states, int64 i, State state) {
    global<Words<State>>(states)[i] = Words<State>::of(state);
}

// Which rows and units a thread takes.
struct Share {
    int64 row, rows, unit, units;  // the first ones, and where they end
    uint32 row_step;

    // Of thread `thread` of `threads` that share a result.
    __device__ Share(const Reduce& args, uint32 part, uint32 thread, uint32 threads) {
        uint32 row_part = divide(part, args.unit_parts);
        uint32 unit_part = part - row_part * args.unit_parts.size;
        uint32 lane = thread & (args.lanes - 1);
        row_step = threads / args.lanes;
        row = row_part * args.part_rows;
        rows = min(row + args.part_rows, args.rows);
        unit = unit_part * args.part_units;
        units = min(unit + args.part_units, args.units);
        row += (thread - lane) / args.lanes;
        unit += lane;
    }
};

// Loads that a thread has in flight.
template <int N> constexpr int loads_of = N == 1 ? 8 : 4;

template <class Op, class T, int N>
__device__ inline typename Op::State reduce_items(const Items<T, N>& items, int64 place, int64 step,
                                                  bool any) {
    compute_of<T> values[N];
    int64 places[N];
    bool valid[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
        values[k] = widen(items.item[k]);
        places[k] = place + k * step;
        valid[k] = any;
    }
    return Op::of(values, places, valid);
}

// How a thread steps from unit to unit, and how many there are from its first one on, with those
// of the other lanes: its unit j is there where j * lanes < left.
struct Steps {
    int64 left, hop, place_hop;
    uint32 lanes;

    template <bool ALL> __device__ bool has(int j) const { return ALL || j * lanes < left; }
    template <int UNITS, class T> __device__ void advance(const T*& from, int64& place) {
        left -= UNITS * lanes;
        from += UNITS * hop;
        place += UNITS * place_hop;
    }
};

// The next units of a row, of N elements each; all of them are there, or some.
template <bool ALL, class Op, class T, int N>
__device__ inline typename Op::State next_units(const T* from, int64 place, int64 step,
                                                const Steps& steps) {
    constexpr int LOADS = loads_of<N>;
    Items<T, N> items[LOADS] = {};
    typename Op::State states[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        if (steps.has<ALL>(j)) items[j] = load_aligned<N>(from + j * steps.hop);
    }
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        states[j] =
            reduce_items<Op>(items[j], place + j * steps.place_hop, step, steps.has<ALL>(j));
    }
#pragma unroll
    for (int width = LOADS / 2; width; width /= 2) {
#pragma unroll
        for (int j = 0; j < width; ++j) states[j] = Op::combine(states[j], states[j + width]);
    }
    return states[0];
}

template <class Op, class T, int N>
__device__ inline typename Op::State along_rows(const Reduce& args, const T* in,
                                                const Share& share) {
    constexpr int LOADS = loads_of<N>;
    typename Op::State state = Op::identity();
    int64 step = args.row_strides[1];
#pragma unroll 1
    for (int64 row = share.row; row < share.rows; row += share.row_step) {
        int64 offsets[2];
        locate(args.reduced, args.num_reduced, row, offsets);
        const T* from = in + offsets[0] + share.unit * N * args.row_strides[0];
        int64 place = args.place + offsets[1] + share.unit * N * step;
        Steps steps{share.units - share.unit, args.lanes * N * args.row_strides[0],
                    args.lanes * N * step, args.lanes};
        if constexpr (N > 1) {
#pragma unroll 1
            for (; steps.has<false>(LOADS - 1); steps.advance<LOADS>(from, place)) {
                state = Op::combine(state, next_units<true, Op, T, N>(from, place, step, steps));
            }
        }
#pragma unroll 1
        for (; steps.left > 0; steps.advance<LOADS>(from, place)) {
            state = Op::combine(state, next_units<false, Op, T, N>(from, place, step, steps));
        }
    }
    return state;
}

// A block is x threads that share a result, and y results; several of a warp, or one of the block.
template <class Op, class T, class R> __device__ inline void reduce_rows(const Reduce& args) {
    constexpr int N = items_of<T>;
    using State = typename Op::State;
    wait_for_dependencies(args);
    launch_dependents();
    uint32 group = divide(blockIdx.x, args.parts);
    uint32 part = blockIdx.x - group * args.parts.size;
    int64 output = int64(group) * blockDim.y + threadIdx.y;
    State state = Op::identity();
    int64 offsets[2];
    locate(args.kept, args.num_kept, output, offsets);
    if (output < args.outputs) {
        const T* in = global<T>(args.input) + offsets[0];
        Share share(args, part, threadIdx.x, blockDim.x);
        state = args.flags & REDUCE_VECTORS ? along_rows<Op, T, N>(args, in, share)
                                            : along_rows<Op, T, 1>(args, in, share);
        if (part == 0) {
#pragma unroll 1
            for (int64 k = threadIdx.x; k < args.tail; k += blockDim.x) {
                int64 at = args.units * N + k;
                state = Op::combine(state, reduce_items<Op>(load_aligned<1>(in + at),
                                                            args.place + at * args.row_strides[1],
                                                            0, true));
            }
        }
    }
    auto combine = [](State a, State b) { return Op::combine(a, b); };
    state = blockDim.x <= WARP ? warp_reduce(state, combine, blockDim.x)
                               : block_reduce(state, combine, Op::identity());
    if (threadIdx.x != 0 || output >= args.outputs) return;
    if (args.parts.size > 1) {
        store_state(args.out, part * args.outputs + output, state);
    } else {
        global<R>(args.out)[offsets[1]] = Op::finish(state, args.divisor, args.flags & REDUCE_ROOT);
    }
}

// The next units of N columns, an element of each.
template <bool ALL, class Op, class T, int N>
__device__ inline void next_rows(typename Op::State (&states)[N], const T* from, int64 place,
                                 const Steps& steps) {
    constexpr int LOADS = loads_of<N>;
    Items<T, N> items[LOADS] = {};
    int64 places[LOADS];
    bool valid[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        valid[j] = steps.has<ALL>(j);
        places[j] = place + j * steps.place_hop;
        if (valid[j]) items[j] = load_aligned<N>(from + j * steps.hop);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
        compute_of<T> values[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) values[j] = widen(items[j].item[k]);
        states[k] = Op::combine(states[k], Op::of(values, places, valid));
    }
}

// A thread has N columns side by side.
template <class Op, class T, class R, int N>
__device__ inline void down_columns(const Reduce& args, typename Op::State* shared) {
    constexpr int LOADS = loads_of<N>;
    using State = typename Op::State;
    uint32 rest = divide(blockIdx.x, args.parts);
    uint32 part = blockIdx.x - rest * args.parts.size;
    uint32 outer = divide(rest, args.chunks);
    uint32 chunk = rest - outer * args.chunks.size;
    int64 first = (int64(chunk) * blockDim.x + threadIdx.x) * N;
    int64 offsets[2];
    locate(args.kept, args.num_kept, outer, offsets);
    const T* in = global<T>(args.input) + offsets[0] + first * args.kept_strides[0];
    Share share(args, part, threadIdx.y, blockDim.y);
    if (first >= args.kept_inner) share.rows = 0;
    State states[N];
#pragma unroll
    for (int k = 0; k < N; ++k) states[k] = Op::identity();
#pragma unroll 1
    for (int64 row = share.row; row < share.rows; row += share.row_step) {
        int64 at[2];
        locate(args.reduced, args.num_reduced, row, at);
        const T* from = in + at[0] + share.unit * args.row_strides[0];
        int64 place = args.place + at[1] + share.unit * args.row_strides[1];
        Steps steps{share.units - share.unit, args.lanes * args.row_strides[0],
                    args.lanes * args.row_strides[1], args.lanes};
        if constexpr (N > 1) {
#pragma unroll 1
            for (; steps.has<false>(LOADS - 1); steps.advance<LOADS>(from, place)) {
                next_rows<true, Op, T, N>(states, from, place, steps);
            }
        }
#pragma unroll 1
        for (; steps.left > 0; steps.advance<LOADS>(from, place)) {
            next_rows<false, Op, T, N>(states, from, place, steps);
        }
    }
    reduce_columns(states, [](State a, State b) { return Op::combine(a, b); }, shared);
    if (threadIdx.y != 0 || first >= args.kept_inner) return;
    if (args.parts.size > 1) {
        int64 to = part * args.outputs + outer * args.kept_inner + first;
#pragma unroll
        for (int k = 0; k < N; ++k) store_state(args.out, to + k, states[k]);
        return;
    }
    Items<R, N> results;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        results.item[k] = Op::finish(states[k], args.divisor, args.flags & REDUCE_ROOT);
    }
    R* out = global<R>(args.out) + offsets[1] + first * args.kept_strides[1];
    if constexpr (N > 1 && N * sizeof(R) <= VECTOR_BYTES) {
        if (args.flags & REDUCE_VECTORS_OUT) {
            store_vector<N>(out, results);
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) out[k * args.kept_strides[1]] = results.item[k];
}

template <class Op, class T, class R> __device__ inline void reduce_columns(const Reduce& args) {
    constexpr int N = items_of<T>;
    using State = typename Op::State;
    __shared__ alignas(16) unsigned char bytes[COLUMN_THREADS / 2 * N * sizeof(State)];
    State* shared = reinterpret_cast<State*>(bytes);
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & REDUCE_VECTORS) {
        down_columns<Op, T, R, N>(args, shared);
    } else {
        down_columns<Op, T, R, 1>(args, shared);
    }
}

// States are elements of their own type.
template <class Op> struct Merge : Tree<Merge<Op>, typename Op::State> {
    using State = typename Op::State;
    __device__ static State identity() { return Op::identity(); }
    __device__ static State lift(State state, int64) { return state; }
    __device__ static State combine(State a, State b) { return Op::combine(a, b); }
    __device__ static auto finish(State state, double divisor, bool root) {
        return Op::finish(state, divisor, root);
    }
};

template <class Op, class R> __device__ inline void reduce_parts(const Reduce& args) {
    using State = typename Op::State;
    __shared__ alignas(16) unsigned char bytes[COLUMN_THREADS / 2 * sizeof(State)];
    wait_for_dependencies(args);
    launch_dependents();
    down_columns<Merge<Op>, State, R, 1>(args, reinterpret_cast<State*>(bytes));
}

}  // namespace cyrt

#define CYRT_REDUCE_KERNEL(NAME, THREADS, BODY)                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, cyrt::RESIDENT / THREADS) \
        NAME(const __grid_constant__ cyrt::Reduce args) {                           \
        BODY(args);                                                                 \
    }
#define CYRT_REDUCE(NAME, OP, T, R)                                                            \
    CYRT_REDUCE_KERNEL(NAME##_rows, cyrt::ROW_THREADS, (cyrt::reduce_rows<OP, T, R>))          \
    CYRT_REDUCE_KERNEL(NAME##_columns, cyrt::COLUMN_THREADS, (cyrt::reduce_columns<OP, T, R>)) \
    CYRT_REDUCE_KERNEL(NAME##_parts, cyrt::COLUMN_THREADS, (cyrt::reduce_parts<OP, R>))
