// Softmax of rows, its logarithm, the cross entropy with a target a row, and the gradients.
//
// All kernels have parameters Softmax.
// CYRT_SOFTMAX(name, type, result) makes
//   name, name_unaligned    rows that threads hold in registers
//   name_long               long rows, from the states of their parts
// CYRT_SOFTMAX_STREAM(name, type, result) makes, for 16-bit types,
//   name_stream             many rows
// CYRT_SOFTMAX_PARTS(name, type) makes
//   name_parts              these states, for all results
// CYRT_SOFTMAX_VJP(name, type) makes the four for the gradient of softmax.
//
// Exponentials are of distances from a row's largest element: nothing overflows. A row that has NaN
// or infinity, or nothing but -infinity, is NaN.
#pragma once

#include "dependency.cuh"
#include "real_math.cuh"
#include "row.cuh"
#include "row_stream.cuh"
#include "params/softmax.h"

namespace cyrt {

enum Result { PROBABILITY, LOGARITHM, LOSS, LOSS_VJP };

// The larger number. If one is NaN, the other is returned: the sums become NaN instead.
__device__ inline float larger_number(float a, float b) { return ::fmaxf(a, b); }
__device__ inline double larger_number(double a, double b) { return ::fmax(a, b); }

// exp of a number of 0 or less; of float in two instructions, with an error of 1e-7 (1 + |a|).
__device__ inline float exp_negative(float a) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a * float(LOG2_E)));
    return result;
}
__device__ inline double exp_negative(double a) { return exp(a); }

// The largest of some elements of a row, and the sum of exp of their distances from it.
template <class V> struct ExpSum {
    V most, sum;

    // -infinity contributes nothing, also where it is the largest so far.
    __device__ static V weight(V a, V most) {
        return a == -infinity<V>() ? V(0) : exp_negative(a - most);
    }
    __device__ static ExpSum combine(const ExpSum& a, const ExpSum& b) {
        V most = larger_number(a.most, b.most);
        return {most, a.sum * weight(a.most, most) + b.sum * weight(b.most, most)};
    }
    __device__ static ExpSum none() { return {-infinity<V>(), V(0)}; }
};

enum { NO_COLUMN = -1, IGNORED = -2 };

// The target of a row, and its column; NO_COLUMN, or IGNORED, where it has none.
__device__ inline int64 load_target(const Softmax& args, int64 row) {
    return args.flags & SOFTMAX_WIDE_TARGETS ? global<int64>(args.targets)[row]
                                             : global<int32>(args.targets)[row];
}
__device__ inline int64 column_of(const Softmax& args, int64 target) {
    if (target == args.ignored) return IGNORED;
    if (target >= 0 && target < args.n) return target;
    // The label is in the emulated device's report.
    if (args.flags & SOFTMAX_TRAP) asm volatile("{\n\ttarget_out_of_range: trap;\n\t}");
    return NO_COLUMN;
}

// The loss, or the gradient, of a row whose target has no column.
template <class V> __device__ inline V without_column(int64 column) {
    return column == IGNORED ? V(0) : not_a_number<V>();
}

template <class T>
__device__ inline T loss_of(const Softmax& args, int64 row, ExpSum<compute_of<T>> all) {
    using V = compute_of<T>;
    int64 target = column_of(args, load_target(args, row));
    if (target < 0) return cast<T>(without_column<V>(target));
    return cast<T>(log(all.sum) -
                   (widen(global<T>(args.x)[row * args.x_step + target]) - all.most));
}

// The target and the gradient of a row, which its result needs beside its elements. They are loaded
// without a conversion: nothing waits for them before they are used.
template <class T, Result RESULT> struct RowTarget {
    int64 target = -1;
    T gradient = {};

    __device__ RowTarget(const Softmax& args, int64 row) {
        if constexpr (RESULT == LOSS || RESULT == LOSS_VJP) target = load_target(args, row);
        if constexpr (RESULT == LOSS_VJP) gradient = global<T>(args.gradient)[row];
    }
};

// The last step: from the distances of a row's elements to their results.
template <class T, Result RESULT> struct Epilogue {
    using V = compute_of<T>;
    V most, factor, gradient;
    int64 target;

    __device__ Epilogue(const Softmax& args, const RowTarget<T, RESULT>& row, ExpSum<V> all)
        : most(all.most), factor(RESULT == LOGARITHM ? log(all.sum) : V(1) / all.sum), target(-1) {
        if constexpr (RESULT == LOSS_VJP) {
            target = column_of(args, row.target);
            gradient = target < 0 ? without_column<V>(target) : widen(row.gradient);
        }
    }
    // The target's index from `first` on; if the target is elsewhere, an index that no element has.
    __device__ uint32 target_from(int64 first) const {
        int64 column = target - first;
        return column >= 0 && column < 0x7fffffff ? column : 0xffffffff;
    }
    // The result of an element; `distance` is its distance from the largest, `power` exp of it.
    __device__ T of(V distance, V power, bool is_target) const {
        if constexpr (RESULT == LOGARITHM) return cast<T>(distance - factor);
        V y = power * factor;
        if constexpr (RESULT == LOSS_VJP)
            y = target == IGNORED ? V(0) : gradient * (is_target ? y - V(1) : y);
        return cast<T>(y);
    }
};

// -- rows in registers ----------------------------------------------------------------------------

template <class T, Result RESULT, int CHUNKS, bool VECTOR>
__device__ inline void softmax_row(const Softmax& args) {
    using V = compute_of<T>;
    constexpr int N = items_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool any = row < args.rows;
    ThreadElements<T, CHUNKS, VECTOR> elements(any ? args.n : 0);
    Packed<T> packed[CHUNKS];
    elements.load(global<T>(args.x) + row * args.x_step, packed);
    V x[CHUNKS][N], most = -infinity<V>(), sum = V(0);
    widen(packed, x);
    elements.each([&](int chunk, int k) { most = larger_number(most, x[chunk][k]); });
    most = row_reduce(most, [](V a, V b) { return larger_number(a, b); }, 0);
    elements.each([&](int chunk, int k) {
        V power = exp_negative(x[chunk][k] - most);
        sum += power;
        x[chunk][k] = RESULT == LOGARITHM ? x[chunk][k] - most : power;
    });
    ExpSum<V> all = {most, row_sum(sum, 1)};
    if (!any) return;
    if constexpr (RESULT == LOSS) {
        if (threadIdx.x == 0) global<T>(args.out)[row] = loss_of<T>(args, row, all);
    } else {
        Epilogue<T, RESULT> epilogue(args, RowTarget<T, RESULT>(args, row), all);
        T* out = global<T>(args.out) + row * args.out_step;
        uint32 target = epilogue.target_from(0);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                bool is_target = elements.index(chunk, k) == target;
                results.item[k] = epilogue.of(x[chunk][k], x[chunk][k], is_target);
            }
            elements.store(out, chunk, results);
        }
    }
}

// -- many rows ------------------------------------------------------------------------------------

// Persistent blocks: the rows that follow arrive in shared memory while a block works on one. A row has
// one barrier: each warp takes exponentials of distances from its own largest element, and their sums
// are combined as those of the parts of long rows are.
template <class T, Result RESULT> __device__ inline void softmax_stream(const Softmax& args) {
    constexpr int CHUNKS = row_chunks<T>, N = items_of<T>, STAGES = SOFTMAX_STAGES;
    extern __shared__ uint4 vectors[];
    __shared__ ExpSum<float> found[STAGES][WARP];
    wait_for_dependencies(args);
    const ThreadElements<T, CHUNKS, true> elements(args.n);
    const RowTurns turns(args.rows);
    const uint32 row_vectors = blockDim.x * CHUNKS;
    RowStream<T, CHUNKS, STAGES> rows(reinterpret_cast<Packed<T>*>(vectors) + threadIdx.x, args.x,
                                      args.x_step, turns);
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage) {
        rows.fetch(rows.at(stage, row_vectors), elements, stage < turns.count);
        end_group();
    }
    const uint32 lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    auto larger = [](float a, float b) { return larger_number(a, b); };
    int64 row = turns.first;
    RowTarget<T, RESULT> next(args, row);
    T* out = global<T>(args.out) + row * args.out_step;
    uint32 stage = 0;
#pragma unroll 1
    for (int left = turns.count; left > 0; --left, row += turns.step) {
        if (left == 1) launch_dependents<ANY_GRID>();
        const RowTarget<T, RESULT> now = next;
        if (left > 1) next = RowTarget<T, RESULT>(args, row + turns.step);
        await_groups<STAGES - 1>();
        const Arriving<T, CHUNKS> arrived = rows.at(stage, row_vectors);
        Packed<T> packed[CHUNKS];
        arrived.take(packed);
        float x[CHUNKS][N];
        widen(packed, x);
        float most[2] = {-infinity<float>(), -infinity<float>()}, sums[2] = {}, at_target = 0;
        elements.each([&](int chunk, int k) { most[k % 2] = larger(most[k % 2], x[chunk][k]); });
        bool has_target = false;
        int64 column = 0;
        if constexpr (RESULT == LOSS) {
            column = column_of(args, now.target);
            has_target = column >= 0 ? column / N % blockDim.x == threadIdx.x : threadIdx.x == 0;
            if (has_target && column >= 0) {
                auto vector = reinterpret_cast<const T*>(arrived.first) - threadIdx.x * N;
                at_target = widen(vector[column]);
            }
        }
        rows.fetch(arrived, elements, left > STAGES);
        end_group();
        const float own = unrolled_reduce(larger(most[0], most[1]), larger);
        // Where a warp has nothing but -infinity, its powers are 0, not NaN.
        const float base = own == -infinity<float>() ? 0 : own;
        elements.each([&](int chunk, int k) {
            float power = exp_negative(x[chunk][k] - base);
            sums[k % 2] += power;
            if (RESULT != LOGARITHM) x[chunk][k] = power;
        });
        ExpSum<float> all = {own, warp_sum(sums[0] + sums[1])};
        if (warps > 1) {
            if (lane == 0) found[stage][threadIdx.x / WARP] = all;
            __syncthreads();
            all = found[stage][lane & (warps - 1)];
            float largest = reduce_lanes(all.most, warps, larger);
            all = {largest, sum_lanes(all.sum * ExpSum<float>::weight(all.most, largest), warps)};
        }
        if constexpr (RESULT == LOSS) {
            if (has_target)
                global<T>(args.out)[row] =
                    cast<T>(column < 0 ? without_column<float>(column)
                                       : log(all.sum) - (at_target - all.most));
        } else {
            Epilogue<T, RESULT> epilogue(args, now, all);
            if (RESULT != LOGARITHM) epilogue.factor *= ExpSum<float>::weight(own, all.most);
            const uint32 target = epilogue.target_from(0);
#pragma unroll
            for (int chunk = 0; chunk < CHUNKS; ++chunk) {
                Items<T, N> results;
#pragma unroll
                for (int k = 0; k < N; ++k) {
                    bool is_target = elements.index(chunk, k) == target;
                    results.item[k] = epilogue.of(x[chunk][k] - all.most, x[chunk][k], is_target);
                }
                elements.store(out, chunk, results);
            }
            out += turns.step * args.out_step;
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
}

// -- long rows ------------------------------------------------------------------------------------

template <class T, bool VECTOR> __device__ inline void sum_part(const Softmax& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    const T* in = global<T>(args.x) + part.row * args.x_step;
    ExpSum<V> state = ExpSum<V>::none();
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        const Elements elements(part.end - at);
        Packed<T> packed[CHUNKS];
        V x[CHUNKS][N], most = state.most, sum = V(0);
        elements.load(in + at, packed);
        widen(packed, x);
        elements.each([&](int chunk, int k) { most = larger_number(most, x[chunk][k]); });
        elements.each([&](int chunk, int k) { sum += ExpSum<V>::weight(x[chunk][k], most); });
        state = {most, sum + state.sum * ExpSum<V>::weight(state.most, most)};
    }
    state = row_reduce<false, false>(state, ExpSum<V>::combine, 0);
    if (threadIdx.x == 0) global<ExpSum<V>>(args.states)[blockIdx.x] = state;
}

template <class T> __device__ inline void softmax_parts(const Softmax& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        sum_part<T, true>(args);
    } else {
        sum_part<T, false>(args);
    }
}

template <class T, Result RESULT, bool VECTOR>
__device__ inline void write_part(const Softmax& args, const RowPart& part,
                                  const Epilogue<T, RESULT>& epilogue) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const T* in = global<T>(args.x) + part.row * args.x_step;
    T* out = global<T>(args.out) + part.row * args.out_step;
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        const Elements elements(part.end - at);
        uint32 target = epilogue.target_from(at);
        Packed<T> packed[CHUNKS];
        elements.load(in + at, packed);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
            V x[N];
            widen(packed[chunk], x);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                V distance = x[k] - epilogue.most;
                bool is_target = elements.index(chunk, k) == target;
                results.item[k] = epilogue.of(distance, exp_negative(distance), is_target);
            }
            elements.store(out + at, chunk, results);
        }
    }
}

// A block computes the loss of a row, or the results of a part of a row.
template <class T, Result RESULT> __device__ inline void softmax_long(const Softmax& args) {
    using V = compute_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    const RowPart part(args.parts, args.part, args.n);
    int64 row = RESULT == LOSS ? blockIdx.x : part.row;
    auto states = global<ExpSum<V>>(args.states) + row * args.parts.size;
    ExpSum<V> all = combine_parts(states, args.parts.size, ExpSum<V>::combine, ExpSum<V>::none());
    if constexpr (RESULT == LOSS) {
        if (threadIdx.x == 0) global<T>(args.out)[row] = loss_of<T>(args, row, all);
    } else {
        Epilogue<T, RESULT> epilogue(args, RowTarget<T, RESULT>(args, row), all);
        if (args.flags & ROW_VECTORS) {
            write_part<T, RESULT, true>(args, part, epilogue);
        } else {
            write_part<T, RESULT, false>(args, part, epilogue);
        }
    }
}

// -- the gradient of softmax ----------------------------------------------------------------------

// The sum of y * g; elements that there are not are 0.
template <class T> __device__ inline compute_of<T> dot(const Packed<T>& y, const Packed<T>& g) {
    constexpr int N = items_of<T>;
    compute_of<T> values[N], slopes[N], sum = compute_of<T>(0);
    widen(y, values);
    widen(g, slopes);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += values[k] * slopes[k];
    return sum;
}

// y * (g - the sum of a row's y * g).
template <class T>
__device__ inline Items<T, items_of<T>> gradient_of(const Packed<T>& y, const Packed<T>& g,
                                                    compute_of<T> sum) {
    constexpr int N = items_of<T>;
    compute_of<T> values[N], slopes[N];
    Items<T, N> results;
    widen(y, values);
    widen(g, slopes);
#pragma unroll
    for (int k = 0; k < N; ++k) results.item[k] = cast<T>(values[k] * (slopes[k] - sum));
    return results;
}

template <class T, int CHUNKS, bool VECTOR>
__device__ inline void differentiate_softmax(const Softmax& args) {
    using V = compute_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool any = row < args.rows;
    ThreadElements<T, CHUNKS, VECTOR> elements(any ? args.n : 0);
    Packed<T> y[CHUNKS], g[CHUNKS];
    elements.load(global<T>(args.x) + row * args.x_step, y);
    elements.load(global<T>(args.gradient) + row * args.gradient_step, g);
    V sum = V(0);
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) sum += dot<T>(y[chunk], g[chunk]);
    sum = row_sum(sum, 0);
    if (!any) return;
    T* out = global<T>(args.out) + row * args.out_step;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        elements.store(out, chunk, gradient_of<T>(y[chunk], g[chunk], sum));
    }
}

// A part of a long row: its share of the sum, or the result from all shares.
template <class T, bool LAST, bool VECTOR>
__device__ inline void differentiate_part(const Softmax& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    const T* in = global<T>(args.x) + part.row * args.x_step;
    const T* gradient = global<T>(args.gradient) + part.row * args.gradient_step;
    T* out = global<T>(args.out) + part.row * args.out_step;
    auto add = [](V a, V b) { return a + b; };
    V sum = V(0);
    if (LAST) {
        sum = combine_parts(global<V>(args.states) + part.row * args.parts.size, args.parts.size,
                            add, V(0));
    }
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        const Elements elements(part.end - at);
        Packed<T> y[CHUNKS], g[CHUNKS];
        elements.load(in + at, y);
        elements.load(gradient + at, g);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            if constexpr (LAST) {
                elements.store(out + at, chunk, gradient_of<T>(y[chunk], g[chunk], sum));
            } else {
                sum += dot<T>(y[chunk], g[chunk]);
            }
        }
    }
    if (LAST) return;
    sum = row_sum(sum, 0);
    if (threadIdx.x == 0) global<V>(args.states)[blockIdx.x] = sum;
}

template <class T, bool LAST> __device__ inline void softmax_vjp_part(const Softmax& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        differentiate_part<T, LAST, true>(args);
    } else {
        differentiate_part<T, LAST, false>(args);
    }
}

}  // namespace cyrt

#define CYRT_SOFTMAX_KERNEL(NAME, THREADS, BLOCKS, ...)           \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) \
        NAME(const __grid_constant__ cyrt::Softmax args) {        \
        __VA_ARGS__(args);                                        \
    }
#define CYRT_SOFTMAX(NAME, T, RESULT)                                                 \
    CYRT_SOFTMAX_KERNEL(NAME, cyrt::ROW_BLOCK, 1,                                     \
                        cyrt::softmax_row<T, RESULT, cyrt::row_chunks<T>, true>)      \
    CYRT_SOFTMAX_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1,                         \
                        cyrt::softmax_row<T, RESULT, cyrt::row_chunks<T> / 2, false>) \
    CYRT_SOFTMAX_KERNEL(NAME##_long, cyrt::PART_BLOCK, 4, cyrt::softmax_long<T, RESULT>)
#define CYRT_SOFTMAX_STREAM(NAME, T, RESULT) \
    CYRT_SOFTMAX_KERNEL(NAME##_stream, cyrt::STREAM_BLOCK, 1, cyrt::softmax_stream<T, RESULT>)
#define CYRT_SOFTMAX_PARTS(NAME, T) \
    CYRT_SOFTMAX_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 4, cyrt::softmax_parts<T>)
#define CYRT_SOFTMAX_VJP(NAME, T)                                                          \
    CYRT_SOFTMAX_KERNEL(NAME, cyrt::ROW_BLOCK, 1,                                          \
                        cyrt::differentiate_softmax<T, cyrt::row_chunks<T> / 2, true>)     \
    CYRT_SOFTMAX_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1,                              \
                        cyrt::differentiate_softmax<T, cyrt::row_chunks<T> / 4, false>)    \
    CYRT_SOFTMAX_KERNEL(NAME##_long, cyrt::PART_BLOCK, 3, cyrt::softmax_vjp_part<T, true>) \
    CYRT_SOFTMAX_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 3, cyrt::softmax_vjp_part<T, false>)
