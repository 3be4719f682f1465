// Reductions over any dimensions of an array of any strides.
//
// CYRT_REDUCE(name, Operation, element type, output type) makes three kernels, all of parameters
// Reduce:
//   name_rows      threads side by side share a result: they run along the innermost reduced
//                  dimension
//   name_columns   threads side by side have results of their own: they run along the innermost
//                  kept dimension, and the rows of the block share the reduced ones
//   name_parts     columns of states: combines the states that blocks of the other two wrote
//                  where several parts of a grid shared a result
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "reductions.cuh"
#include "strided.cuh"
#include "params/reduce.h"

namespace cyrt {

// The least number of resident threads: it lets the compiler keep registers for all loads in flight.
constexpr int RESIDENT = 1024;

// Like locate_row, but one dimension alone, or the last one, may be of any size.
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
struct ThreadShare {
    int64 row, rows, unit, units;  // the first ones, and where they end
    uint32 row_step;

    // The share of thread `thread` of the `threads` that compute one result.
    __device__ ThreadShare(const Reduce& args, uint32 part, uint32 thread, uint32 threads) {
        uint32 row_part = divide(part, args.unit_parts);
        uint32 unit_part = part - row_part * args.unit_parts.size;
        uint32 lane = thread & (args.lanes - 1), shift = 31 - __clz(args.lanes);
        row_step = threads >> shift;
        row = row_part * args.part_rows;
        rows = min(row + args.part_rows, args.rows);
        unit = unit_part * args.part_units;
        units = min(unit + args.part_units, args.units);
        row += thread >> shift;
        unit += lane;
    }
};

__device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }

// The loads that a thread has in flight, each of one element of COLUMNS columns, or of ITEMS elements of
// one column; and those of a batch, whose elements are in registers in their compute type. The others
// are there in their type in memory.
template <class T, int COLUMNS, int ITEMS>
constexpr int loads_of =
    COLUMNS * ITEMS > 1 && (COLUMNS > 4 || COLUMNS * ITEMS * sizeof(T) > 8) ? 4 : 8;
template <class T, int COLUMNS, int ITEMS>
constexpr int batch_loads_of = smaller(loads_of<T, COLUMNS, ITEMS>, 16 / (COLUMNS * ITEMS));

// A thread's elements of one run: units a hop apart, of ITEMS elements side by side each. Their
// logical indices increase.
template <class T, int COLUMNS, int ITEMS> struct Elements {
    static constexpr uint32 BATCH = batch_loads_of<T, COLUMNS, ITEMS> * ITEMS;
    const T* from;
    int64 hop, index, index_hop, index_step;
    uint32 count;

    __device__ compute_of<T> value(uint32 number) const {
        return widen(from[number / ITEMS * hop + number % ITEMS]);
    }
    __device__ int64 index_of(uint32 number) const {
        return index + number / ITEMS * index_hop + number % ITEMS * index_step;
    }
};

// The next LOADS loads of each column; all of them are there, or those where j * lanes < left.
template <bool ALL, int LOADS, class Op, class T, int COLUMNS, int ITEMS>
__device__ inline void take_loads(typename Op::Run (&runs)[COLUMNS],
                                  Elements<T, COLUMNS, ITEMS>& elements, int64 left, uint32 lanes) {
    constexpr int N = COLUMNS * ITEMS;
    constexpr int BATCH_LOADS = smaller(LOADS, batch_loads_of<T, COLUMNS, ITEMS>);
    static_assert(COLUMNS == 1 || ITEMS == 1, "a vector is of one column, or of one row");
    const T* from = elements.from + elements.count / ITEMS * elements.hop;
    Items<T, N> items[LOADS] = {};
    bool valid[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        valid[j] = ALL || j * lanes < left;
        if (valid[j]) items[j] = load_aligned<N>(from + j * elements.hop);
    }
#pragma unroll
    for (int first = 0; first < LOADS; first += BATCH_LOADS) {
        if (!valid[first]) return;
        compute_of<T> values[BATCH_LOADS][N];
#pragma unroll
        for (int j = 0; j < BATCH_LOADS; ++j) widen(items[first + j], values[j]);
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            Batch<compute_of<T>, BATCH_LOADS, ITEMS> batch;
            batch.number = elements.count;
#pragma unroll
            for (int j = 0; j < BATCH_LOADS; ++j) {
                batch.valid[j] = valid[first + j];
#pragma unroll
                for (int k = 0; k < ITEMS; ++k) batch.value[j][k] = values[j][column + k];
            }
            Op::take(runs[column], batch);
        }
#pragma unroll
        for (int j = 0; j < BATCH_LOADS; ++j) elements.count += valid[first + j] ? ITEMS : 0;
    }
}

// Calls add(column, state) with the state of each run of a thread's share of the rows.
template <class Op, int COLUMNS, int ITEMS, class T, class Add>
__device__ inline void take_share(const Reduce& args, const T* in, int64 index,
                                  const ThreadShare& share, const Add& add) {
    constexpr int N = COLUMNS * ITEMS, LOADS = loads_of<T, COLUMNS, ITEMS>;
    constexpr uint32 RUN = RUN_BATCHES * Elements<T, COLUMNS, ITEMS>::BATCH;
    int64 taken = LOADS * args.lanes, step = args.row_strides[1];
#pragma unroll 1
    for (int64 row = share.row; row < share.rows; row += share.row_step) {
        int64 offsets[2];
        locate(args.reduced, args.num_reduced, row, offsets);
        Elements<T, COLUMNS, ITEMS> elements;
        elements.from = in + offsets[0] + share.unit * ITEMS * args.row_strides[0];
        elements.hop = args.lanes * ITEMS * args.row_strides[0];
        elements.index = index + offsets[1] + share.unit * ITEMS * step;
        elements.index_hop = args.lanes * ITEMS * step;
        elements.index_step = step;
#pragma unroll 1
        for (int64 left = share.units - share.unit; left > 0;) {
            typename Op::Run runs[COLUMNS];
#pragma unroll
            for (auto& run : runs) run = Op::start();
            elements.count = 0;
            if constexpr (N > 1) {
#pragma unroll 1
                for (; (LOADS - 1) * args.lanes < left && elements.count < RUN; left -= taken) {
                    take_loads<true, LOADS, Op>(runs, elements, left, args.lanes);
                }
            }
#pragma unroll 1
            for (; left > 0 && elements.count < RUN; left -= taken) {
                take_loads<false, LOADS, Op>(runs, elements, left, args.lanes);
            }
            Elements<T, COLUMNS, ITEMS> column = elements;
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k, ++column.from) {
                add(k, Op::close(runs[k], column));
            }
            elements.from += RUN / ITEMS * elements.hop;
            elements.index += RUN / ITEMS * elements.index_hop;
        }
    }
}

// Combines the states of neighbouring threads that share a result; the first one gets it. They are
// those of a warp, or of the whole block.
template <class Op> __device__ inline typename Op::State reduce_threads(typename Op::State state) {
    using State = typename Op::State;
    __shared__ alignas(16) unsigned char bytes[ROW_THREADS / WARP * sizeof(State)];
    State* partial = reinterpret_cast<State*>(bytes);
    auto combine = [](State a, State b) { return Op::combine(a, b); };
    state = warp_reduce(state, combine, min(blockDim.x, WARP));
    if (blockDim.x <= WARP) return state;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    if (lane == 0) partial[warp] = state;
    __syncthreads();
    if (warp > 0) return state;
    return warp_reduce(lane < warps ? partial[lane] : Op::identity(), combine, warps);
}

// A block is x threads that share a result, and y results; several of a warp, or one of the block.
template <class Op, class T, class R> __device__ inline void reduce_rows(const Reduce& args) {
    constexpr int N = items_of<T>;
    using State = typename Op::State;
    uint32 group = divide(blockIdx.x, args.parts);
    uint32 part = blockIdx.x - group * args.parts.size;
    int64 output = int64(group) * blockDim.y + threadIdx.y;
    State state = Op::identity();
    int64 offsets[2];
    locate(args.kept, args.num_kept, output, offsets);
    compute_now(part, output, offsets[0], offsets[1]);
    wait_for_dependencies(args);
    launch_dependents();
    if (output < args.outputs) {
        const T* in = global<T>(args.input) + offsets[0];
        int64 index = args.first_index;
        bool vectors = args.flags & REDUCE_VECTORS;
        ThreadShare share(args, part, threadIdx.x, blockDim.x);
        auto add = [&](int, State other) { state = Op::combine(state, other); };
        if (vectors) {
            take_share<Op, 1, N>(args, in, index, share, add);
            in += args.units * N;
            index += args.units * N * args.row_strides[1];
            share.unit = threadIdx.x;
            share.units = args.tail;
        }
        if (!vectors || (part == 0 && args.tail > 0)) {
            take_share<Op, 1, 1>(args, in, index, share, add);
        }
    }
    state = reduce_threads<Op>(state);
    if (threadIdx.x != 0 || output >= args.outputs) return;
    if (args.parts.size > 1) {
        store_state(args.out, part * args.outputs + output, state);
    } else {
        global<R>(args.out)[offsets[1]] = Op::finish(state, args.divisor, args.flags & REDUCE_ROOT);
    }
}

// The loads of a whole run, in groups that become smaller: each is of as many as there are.
template <int LOADS, class Op, class T, int COLUMNS>
__device__ inline void take_run(typename Op::Run (&runs)[COLUMNS],
                                Elements<T, COLUMNS, 1>& elements, int left) {
#pragma unroll 1
    for (; left >= LOADS; left -= LOADS) take_loads<true, LOADS, Op>(runs, elements, left, 1);
    if constexpr (LOADS > 1) take_run<LOADS / 2, Op>(runs, elements, left);
}

// The states of N columns that are one run each, of one thread: they never leave its registers.
template <class Op, class T, int N>
__device__ inline void run_down(const Reduce& args, const T* in, typename Op::State (&states)[N]) {
    int64 hop = args.row_strides[0], step = args.row_strides[1];
    Elements<T, N, 1> elements{in, hop, args.first_index, step, step, 0};
    typename Op::Run runs[N];
#pragma unroll
    for (auto& run : runs) run = Op::start();
    take_run<loads_of<T, N, 1>, Op>(runs, elements, args.units);
#pragma unroll
    for (int k = 0; k < N; ++k, ++elements.from) states[k] = Op::close(runs[k], elements);
}

// The same of any columns, in the threads of the block's first row. They are in shared memory
// until the end: with them, the runs and the loads in flight would not fit in registers.
template <class Op, class T, int N>
__device__ inline void share_down(const Reduce& args, const T* in, const ThreadShare& share,
                                  typename Op::State* shared, typename Op::State (&states)[N]) {
    using State = typename Op::State;
    // Neighbouring threads have neighbouring states.
    int columns = blockDim.x * N, thread = threadIdx.y * blockDim.x + threadIdx.x;
    State* own = shared + threadIdx.y * columns + threadIdx.x;
#pragma unroll
    for (int k = 0; k < N; ++k) own[k * blockDim.x] = Op::identity();
    take_share<Op, N, 1>(args, in, args.first_index, share, [&](int k, State state) {
        own[k * blockDim.x] = Op::combine(own[k * blockDim.x], state);
    });
    __syncthreads();
#pragma unroll 1
    for (int half = blockDim.y / 2 * columns; half >= columns; half /= 2) {
#pragma unroll 1
        for (int i = thread; i < half; i += blockDim.x * blockDim.y) {
            shared[i] = Op::combine(shared[i], shared[i + half]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < N; ++k) states[k] = own[k * blockDim.x];
}

// Results side by side along the innermost kept dimension, in vectors of up to VECTOR_BYTES.
template <class Op, class R, int N>
__device__ inline void store_results(const Reduce& args, R* out,
                                     const typename Op::State (&states)[N]) {
    constexpr int WIDTH = smaller(N, VECTOR_BYTES / sizeof(R));
    bool vectors = N > 1 && args.flags & REDUCE_VECTORS_OUT;
#pragma unroll
    for (int k = 0; k < N; k += WIDTH) {
        Items<R, WIDTH> items;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            items.item[i] = Op::finish(states[k + i], args.divisor, args.flags & REDUCE_ROOT);
        }
        if (vectors) {
            store_vector<WIDTH>(out + k, items);
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) out[(k + i) * args.kept_strides[1]] = items.item[i];
        }
    }
}

// A thread has N columns side by side.
template <class Op, class T, class R, int N>
__device__ inline void down_columns(const Reduce& args, typename Op::State* shared) {
    uint32 rest = divide(blockIdx.x, args.parts);
    uint32 part = blockIdx.x - rest * args.parts.size;
    uint32 outer = divide(rest, args.chunks);
    uint32 chunk = rest - outer * args.chunks.size;
    int64 column = (int64(chunk) * blockDim.x + threadIdx.x) * N;
    bool any = column < args.kept_inner;
    int64 offsets[2];
    locate(args.kept, args.num_kept, outer, offsets);
    offsets[0] += column * args.kept_strides[0];
    compute_now(part, offsets[0], offsets[1]);
    wait_for_dependencies(args);
    launch_dependents();
    const T* in = global<T>(args.input) + offsets[0];
    typename Op::State states[N];
    if (args.flags & REDUCE_ALONE && args.units <= RUN_BATCHES * Elements<T, N, 1>::BATCH) {
        if (!any) return;
        run_down<Op>(args, in, states);
    } else {
        ThreadShare share(args, part, threadIdx.y, blockDim.y);
        if (!any) share.rows = 0;
        share_down<Op>(args, in, share, shared, states);
        if (threadIdx.y != 0 || !any) return;
    }
    if (args.parts.size > 1) {
        int64 to = part * args.outputs + outer * args.kept_inner + column;
#pragma unroll
        for (int k = 0; k < N; ++k) store_state(args.out, to + k, states[k]);
    } else {
        store_results<Op>(args, global<R>(args.out) + offsets[1] + column * args.kept_strides[1],
                          states);
    }
}

template <class Op, class T, class R> __device__ inline void reduce_columns(const Reduce& args) {
    using State = typename Op::State;
    constexpr int N =
        sizeof(State) <= REDUCE_SHORT ? items_of<T> : smaller(items_of<T>, REDUCE_COLUMNS);
    __shared__ alignas(16) unsigned char bytes[COLUMN_THREADS * N * sizeof(State)];
    State* shared = reinterpret_cast<State*>(bytes);
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
    __device__ static State lift(State state) { return state; }
    __device__ static State combine(State a, State b) { return Op::combine(a, b); }
    __device__ static auto finish(State state, double divisor, bool root) {
        return Op::finish(state, divisor, root);
    }
};

template <class Op, class R> __device__ inline void reduce_parts(const Reduce& args) {
    using State = typename Op::State;
    __shared__ alignas(16) unsigned char bytes[COLUMN_THREADS * sizeof(State)];
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
