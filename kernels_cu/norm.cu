// Normalisation of rows, by mean and variance (layer_norm) or by the mean square (rms_norm), and the
// gradients of both.
//
// All kernels have parameters Norm.
// CYRT_NORM(name, type, centered) makes
//   name, name_w       rows that threads hold in registers; with weight
//   name_unaligned     the same of rows that are not aligned to vectors, with and without parameters
//   name_parts         long rows: the moments of each part of a row, and then
//   name_long          the result
// CYRT_NORM_VJP(name, type, centered) makes the same for the gradients, of x and, as sums over the
// rows of each block, of the parameters, its partials; and
//   name_columns       which adds the partials
// CYRT_NORM_BIAS(name, type) and CYRT_NORM_VJP_BIAS(name, type) add to the centered ones
//   name_b, name_wb    with bias, with weight and bias
#pragma once

#include "dependency.cuh"
#include "norm_full.cuh"
#include "norm_math.cuh"
#include "norm_stream.cuh"
#include "row.cuh"
#include "shared_sums.cuh"
#include "params/norm.h"

namespace cyrt {

// The moments of some elements of a row: their number, mean and sum of squares about the mean. Joint
// ones have the mean of their slopes, too, which are the result's gradient times the weight, and the
// sum of products of both distances from the mean. Without centering, means are 0.
template <class V> struct RowMoments {
    V count, mean, squares;

    __device__ static RowMoments combine(const RowMoments& a, const RowMoments& b) {
        V count = a.count + b.count, share = count > V(0) ? b.count / count : V(0);
        V distance = b.mean - a.mean;
        return {count, a.mean + distance * share,
                a.squares + b.squares + distance * distance * (a.count * share)};
    }
};
template <class V> struct JointMoments {
    V count, mean, squares, slope, products;

    __device__ static JointMoments combine(const JointMoments& a, const JointMoments& b) {
        V count = a.count + b.count, share = count > V(0) ? b.count / count : V(0);
        V distance = b.mean - a.mean, rise = b.slope - a.slope, both = a.count * share;
        return {count, a.mean + distance * share,
                a.squares + b.squares + distance * distance * both, a.slope + rise * share,
                a.products + b.products + distance * rise * both};
    }
};
// The moments of a part of a row, from whose elements a pivot was subtracted.
template <class V, class State> struct PartState {
    State state;
    V pivot;
};

template <class State>
__device__ inline State reduce_moments(const State& state, uint32 turn = 0) {
    auto combine = [](const State& a, const State& b) { return State::combine(a, b); };
    return row_reduce<false, false>(state, combine, turn);
}

// -- rows in registers ----------------------------------------------------------------------------

// Distances from the row's mean, rounded, are exact where the elements are close to one another, and
// few digits are lost where one of them is far from the others. What rounding has left of the mean is
// that of the distances. The mean is found from distances to the first element, so that nothing is
// left of equal elements. Sums of as many numbers of 16 bits as registers hold have room in a float:
// they need neither.
template <class T, bool CENTERED> constexpr bool pivots = CENTERED && sizeof(T) > 2;

template <class T, bool CENTERED>
__device__ inline compute_of<T> first_of(const T* row, bool any) {
    return pivots<T, CENTERED> && any ? widen(row[0]) : compute_of<T>(0);
}

// Sums over a row, added at once.
template <class V, int COUNT> struct JointSums {
    V of[COUNT];

    __device__ static JointSums add(const JointSums& a, const JointSums& b) {
        JointSums sums;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) sums.of[i] = a.of[i] + b.of[i];
        return sums;
    }
};

// A thread holds few elements where more threads of a row pay. No other rows hide the latency of
// weight and bias then, so they are loaded at once.
template <class T> constexpr int few_chunks = FEW_ITEMS / items_of<T>;

// `weight` and `bias` tell whether there is one. Where they are constants, no branch is compiled.
template <class T, bool CENTERED, int CHUNKS, bool VECTOR>
__device__ __forceinline__ void normalize_row(const Norm& args, bool weight, bool bias) {
    using V = compute_of<T>;
    constexpr int N = items_of<T>;
    int64 row = int64(blockIdx.x) * blockDim.y + threadIdx.y;
    bool any = row < args.rows;
    const T* in = global<T>(args.x) + row * args.x_step;
    ThreadElements<T, CHUNKS, VECTOR> elements(any ? args.n : 0);
    Packed<T> packed[CHUNKS];
    elements.load(in, packed);
    constexpr bool EARLY = VECTOR && CHUNKS < row_chunks<T>;
    Packed<T> early_weights[CHUNKS], early_biases[CHUNKS];
    if (EARLY && weight) elements.load(global<T>(args.weight), early_weights);
    if (EARLY && bias) elements.load(global<T>(args.bias), early_biases);
    constexpr bool PIVOT = pivots<T, CENTERED>;
    V origin = first_of<T, CENTERED>(in, any), share = number<V>(args.share), n = V(int(args.n));
    V x[CHUNKS][N];
    V sum = V(0), mean = V(0), rest = V(0);
    widen(packed, x);
    if constexpr (CENTERED) {
        elements.each([&](int chunk, int k) { sum += PIVOT ? x[chunk][k] - origin : x[chunk][k]; });
        mean = origin + mean_of(row_sum(sum, 0), n, share);
    }
    JointSums<V, PIVOT ? 2 : 1> all = {};  // sums of squared distances, and of distances
    elements.each([&](int chunk, int k) {
        x[chunk][k] -= mean;
        all.of[0] += x[chunk][k] * x[chunk][k];
        if constexpr (PIVOT) all.of[1] += x[chunk][k];
    });
    all = row_reduce(all, JointSums < V, PIVOT ? 2 : 1 > ::add, 1);
    if constexpr (PIVOT) {
        rest = mean_of(all.of[1], n, share);
        all.of[0] = maximum(fma(-rest, all.of[1], all.of[0]), V(0));
    }
    V scale = rsqrt(all.of[0] * share + number<V>(args.eps)), shift = -rest * scale;
    if (!any) return;
    T* out = global<T>(args.out) + row * args.out_step;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        Items<T, N> results;
        V weights[N], biases[N];
        if (weight) {
            widen(EARLY ? early_weights[chunk] : elements.load(global<T>(args.weight), chunk),
                  weights);
        }
        if (bias) {
            widen(EARLY ? early_biases[chunk] : elements.load(global<T>(args.bias), chunk), biases);
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            V y = PIVOT ? fma(x[chunk][k], scale, shift) : x[chunk][k] * scale;
            if (weight) y *= weights[k];
            if (bias) y += biases[k];
            results.item[k] = cast<T>(y);
        }
        elements.store(out, chunk, results);
    }
}

template <class T, bool CENTERED, bool WEIGHT, bool BIAS>
__device__ inline void norm_rows(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if constexpr (sizeof(T) == 2) {
        if (args.flags & NORM_FULL) {
            normalize_full_rows<T, CENTERED, WEIGHT, BIAS>(args);
            return;
        }
    }
    constexpr int FEW = few_chunks<T>;
    if (FEW < row_chunks<T> && args.n <= blockDim.x * items_of<T> * FEW) {
        normalize_row<T, CENTERED, FEW, true>(args, WEIGHT, BIAS);
    } else {
        normalize_row<T, CENTERED, row_chunks<T>, true>(args, WEIGHT, BIAS);
    }
}

template <class T, bool CENTERED> __device__ inline void norm_unaligned(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    normalize_row<T, CENTERED, row_chunks<T> / 2, false>(args, args.weight, args.bias);
}

// -- long rows ------------------------------------------------------------------------------------

// The mean, rounded, of the elements x that a block has, of which `first` is one: what is far from the
// others weighs little in it.
template <bool CENTERED, class ThreadElements, class V, int CHUNKS, int N>
__device__ inline V mean_of_block(const ThreadElements& elements, const V (&x)[CHUNKS][N],
                                  V first) {
    if (!CENTERED) return V(0);
    JointSums<V, 2> all = {};
    elements.each([&](int chunk, int k) {
        all.of[0] += x[chunk][k] - first;
        all.of[1] += V(1);
    });
    all = row_reduce<false, false>(all, JointSums<V, 2>::add, 0);
    return first + all.of[0] / all.of[1];
}

// The moments of the elements x that a thread has of a row, from which `pivot` is subtracted. Then
// x is centered.
template <bool CENTERED, class ThreadElements, class V, int CHUNKS, int N>
__device__ inline RowMoments<V> center(const ThreadElements& elements, V (&x)[CHUNKS][N], V pivot) {
    RowMoments<V> found = {};
    elements.each([&](int chunk, int k) {
        x[chunk][k] -= pivot;
        found.count += V(1);
        found.mean += x[chunk][k];
    });
    found.mean = CENTERED && found.count > V(0) ? found.mean / found.count : V(0);
    elements.each([&](int chunk, int k) {
        x[chunk][k] -= found.mean;
        found.squares += x[chunk][k] * x[chunk][k];
    });
    return found;
}

// Stores the moments of all elements of a block, from which `pivot` was subtracted.
template <class State, class V>
__device__ inline void store_part(const Norm& args, State state, V pivot) {
    state = reduce_moments(state);
    if (threadIdx.x == 0) global<PartState<V, State>>(args.states)[blockIdx.x] = {state, pivot};
}

template <class T, bool CENTERED, bool VECTOR>
__device__ inline void measure_part(const Norm& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    const T* row = global<T>(args.x) + part.row * args.x_step;
    V pivot = V(0);
    RowMoments<V> state = {};
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        Elements elements(part.end - at);
        Packed<T> packed[CHUNKS];
        V x[CHUNKS][N];
        elements.load(row + at, packed);
        widen(packed, x);
        if (at == part.begin) pivot = mean_of_block<CENTERED>(elements, x, widen(row[at]));
        state = RowMoments<V>::combine(state, center<CENTERED>(elements, x, pivot));
    }
    store_part(args, state, pivot);
}

template <class T, bool CENTERED> __device__ inline void norm_parts(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        measure_part<T, CENTERED, true>(args);
    } else {
        measure_part<T, CENTERED, false>(args);
    }
}

// The state of a whole row, which every thread gets. The pivot is the row's mean, rounded.
template <class State, class V>
__device__ inline PartState<V, State> state_of_row(const Norm& args, int64 row, uint32 turn) {
    auto parts = global<PartState<V, State>>(args.states) + row * args.parts.size;
    State state = {};
    if (threadIdx.x < args.parts.size) {
        state = parts[threadIdx.x].state;
        state.mean += parts[threadIdx.x].pivot - parts[0].pivot;
    }
    state = reduce_moments(state, turn);
    V pivot = parts[0].pivot, mean = pivot + state.mean;
    state.mean -= mean - pivot;
    return {state, mean};
}

template <class T, bool VECTOR> __device__ inline void normalize_part(const Norm& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    auto whole = state_of_row<RowMoments<V>, V>(args, part.row, 0);
    V pivot = whole.pivot, mean = whole.state.mean;
    V scale = rsqrt(whole.state.squares * number<V>(args.share) + number<V>(args.eps));
    const T* in = global<T>(args.x) + part.row * args.x_step;
    T* out = global<T>(args.out) + part.row * args.out_step;
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        Elements elements(part.end - at);
        Packed<T> packed[CHUNKS];
        elements.load(in + at, packed);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
            V x[N], weights[N], biases[N];
            widen(packed[chunk], x);
            if (args.weight) widen(elements.load(global<T>(args.weight) + at, chunk), weights);
            if (args.bias) widen(elements.load(global<T>(args.bias) + at, chunk), biases);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                V y = (x[k] - pivot - mean) * scale;
                if (args.weight) y *= weights[k];
                if (args.bias) y += biases[k];
                results.item[k] = cast<T>(y);
            }
            elements.store(out + at, chunk, results);
        }
    }
}

template <class T> __device__ inline void norm_long(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        normalize_part<T, true>(args);
    } else {
        normalize_part<T, false>(args);
    }
}

// -- the gradients of rows in registers -----------------------------------------------------------

// Threads of a block of the gradients, at most, and the vectors of x that one holds.
template <class T> constexpr int vjp_block = sizeof(T) <= 4 ? STREAM_BLOCK : ROW_BLOCK;
template <class T> constexpr int vjp_chunks = VJP_CHUNKS(items_of<T>);

// A block takes rows until there are none. In shared memory are the weight and, for each of its rows
// of threads, the sums for the gradients of weight and bias. `weight` and `bias` say which there are.
template <class T, bool CENTERED, int CHUNKS, bool VECTOR>
__device__ __forceinline__ void differentiate_rows(const Norm& args, bool weight, bool bias) {
    using V = compute_of<T>;
    constexpr int N = items_of<T>;
    constexpr bool PIVOT = pivots<T, CENTERED>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    // Of squared distances from the mean, of products of slopes with distances, of slopes, and of
    // distances.
    using AllSums = JointSums<V, PIVOT ? 4 : CENTERED ? 3 : 2>;
    extern __shared__ uint4 vectors[];
    auto shared = reinterpret_cast<Packed<T>*>(vectors);
    uint32 row_vectors = blockDim.x * CHUNKS;
    uint32 sums = Elements::capacity() * sizeof(V) / VECTOR_BYTES;  // vectors, too
    uint32 region = (weight ? sums : 0) + (bias ? sums : 0);
    uint32 begin = (weight ? row_vectors : 0) + threadIdx.y * region;
    Packed<T>* held;
    SharedSums<V, N> of_weight, of_bias;
    auto set_pointers = [&](uint32 thread) {
        held = shared + thread;
        of_weight.first = reinterpret_cast<V*>(held + begin);
        of_bias.first = reinterpret_cast<V*>(held + begin + (weight ? sums : 0));
    };
    set_pointers(threadIdx.x);
    const Elements whole(args.n);
    V share = number<V>(args.share), n = V(int(args.n));
    if (weight) {
#pragma unroll 1
        for (int chunk = threadIdx.y; chunk < CHUNKS; chunk += blockDim.y) {
            held[chunk * blockDim.x] = whole.load(global<T>(args.weight), chunk);
        }
    }
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        if (weight) of_weight.clear(chunk);
        if (bias) of_bias.clear(chunk);
    }
    __syncthreads();
    uint32 turn = 0;
#pragma unroll 1
    for (int64 first = int64(blockIdx.x) * blockDim.y; first < args.rows;
         first += gridDim.x * blockDim.y, turn ^= 1) {
        int64 row = first + threadIdx.y;
        bool any = row < args.rows;
        Elements elements = whole;
        if (!any) elements.held = 0;
        Packed<T> packed[CHUNKS], g[CHUNKS];
        V x[CHUNKS][N], mean = V(0);
        set_pointers(thread_of_row());  // or registers would not suffice
        const T* now = global<T>(args.x) + row * args.x_step;
        elements.load(now, packed);
        elements.load(global<T>(args.gradient) + row * args.gradient_step, g);
        V origin = first_of<T, CENTERED>(now, any);
        widen(packed, x);
        if constexpr (CENTERED) {
            elements.each(
                [&](int chunk, int k) { mean += PIVOT ? x[chunk][k] - origin : x[chunk][k]; });
            mean = origin + mean_of(row_sum<true>(mean, 0), n, share);
        }
        AllSums all = {};
        elements.each([&](int chunk, int k) {
            x[chunk][k] -= mean;
            all.of[0] += x[chunk][k] * x[chunk][k];
            if constexpr (PIVOT) all.of[3] += x[chunk][k];
        });
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            V slopes[N], weights[N];
            widen(g[chunk], slopes);  // 0 where there is no element
            if (weight) widen(held[chunk * blockDim.x], weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (weight) slopes[k] *= weights[k];
                all.of[1] += slopes[k] * x[chunk][k];
                if constexpr (CENTERED) all.of[2] += slopes[k];
            }
        }
        all = row_reduce<true>(all, AllSums::add, CENTERED ? 0 : turn);
        if (!any) continue;
        V rest = V(0), mean_slope = V(0);
        if constexpr (PIVOT) {
            rest = mean_of(all.of[3], n, share);
            all.of[0] = maximum(fma(-rest, all.of[3], all.of[0]), V(0));
            all.of[1] = fma(-rest, all.of[2], all.of[1]);
        }
        V scale = rsqrt(all.of[0] * share + number<V>(args.eps)), shift = -rest * scale;
        V mean_product = all.of[1] * share * scale;
        if constexpr (CENTERED) mean_slope = mean_of(all.of[2], n, share);
        T* out = global<T>(args.out) + row * args.out_step;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
            V gradients[N], weights[N], products[N], levels[N];
            if (weight) of_weight.read(chunk, products);  // the products of earlier rows
            if (bias) of_bias.read(chunk, levels);
            widen(g[chunk], gradients);
            if (weight) widen(held[chunk * blockDim.x], weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                V normalized = PIVOT ? fma(x[chunk][k], scale, shift) : x[chunk][k] * scale;
                V slope = weight ? gradients[k] * weights[k] : gradients[k];
                results.item[k] = cast<T>((slope - mean_slope - normalized * mean_product) * scale);
                products[k] += gradients[k] * normalized;
                levels[k] += gradients[k];
            }
            if (weight) of_weight.write(chunk, products);
            if (bias) of_bias.write(chunk, levels);
            elements.store(out, chunk, results);
        }
    }
    V* partials = global<V>(args.partials) + blockIdx.x * args.n;
    region *= VECTOR_BYTES / sizeof(V);
    if (weight) write_partials<Elements, V, CHUNKS, N>(whole, of_weight, region, partials);
    if (weight) partials += args.groups * args.n;
    if (bias) write_partials<Elements, V, CHUNKS, N>(whole, of_bias, region, partials);
}

template <class T, bool CENTERED, bool WEIGHT, bool BIAS>
__device__ inline void norm_vjp_rows(const Norm& args) {
    wait_for_dependencies(args);
    if constexpr (sizeof(T) > 2) {
        if (sizeof(T) > 4 || !(args.flags & NORM_STREAM)) {
            launch_dependents();
            differentiate_rows<T, CENTERED, vjp_chunks<T>, true>(args, WEIGHT, BIAS);
            return;
        }
    }
    if constexpr (sizeof(T) == 2) {
        if (args.n > blockDim.x * VJP_HELD) {
            norm_vjp_stream<T, CENTERED, WEIGHT, BIAS, vjp_chunks<T>>(args);
            return;
        }
    }
    if constexpr (sizeof(T) <= 4) {
        norm_vjp_stream<T, CENTERED, WEIGHT, BIAS, VJP_HELD / items_of<T>>(args);
    }
}

template <class T, bool CENTERED> __device__ inline void norm_vjp_unaligned(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    differentiate_rows<T, CENTERED, row_chunks<T> / 4, false>(args, args.weight,
                                                              args.bias_gradient);
}

// -- the gradients of long rows -------------------------------------------------------------------

template <class T, bool CENTERED, bool VECTOR>
__device__ inline void measure_slopes(const Norm& args) {
    using V = compute_of<T>;
    using State = JointMoments<V>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    const T* row = global<T>(args.x) + part.row * args.x_step;
    const T* gradient = global<T>(args.gradient) + part.row * args.gradient_step;
    V pivot = V(0);
    State state = {};
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        const Elements elements(part.end - at);
        Packed<T> packed[CHUNKS], g[CHUNKS];
        V x[CHUNKS][N], slopes[CHUNKS][N];
        elements.load(row + at, packed);
        elements.load(gradient + at, g);
        widen(packed, x);
        if (at == part.begin) pivot = mean_of_block<CENTERED>(elements, x, widen(row[at]));
        RowMoments<V> moments = center<CENTERED>(elements, x, pivot);
        State found = {moments.count, moments.mean, moments.squares, V(0), V(0)};
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            V weights[N];
            widen(g[chunk], slopes[chunk]);  // 0 where there is no element
            if (args.weight) widen(elements.load(global<T>(args.weight) + at, chunk), weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (args.weight) slopes[chunk][k] *= weights[k];
                found.slope += slopes[chunk][k];
            }
        }
        found.slope = CENTERED && found.count > V(0) ? found.slope / found.count : V(0);
        elements.each([&](int chunk, int k) {
            found.products += (slopes[chunk][k] - found.slope) * x[chunk][k];
        });
        state = State::combine(state, found);
    }
    store_part(args, state, pivot);
}

template <class T, bool CENTERED> __device__ inline void norm_vjp_parts(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        measure_slopes<T, CENTERED, true>(args);
    } else {
        measure_slopes<T, CENTERED, false>(args);
    }
}

// A block has a strip of columns, and takes every so many rows of it.
template <class T, bool VECTOR> __device__ inline void differentiate_strip(const Norm& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    uint32 group = divide(blockIdx.x, args.strips);
    int64 at = int64(blockIdx.x - group * args.strips.size) * Elements::capacity();
    const Elements elements(args.n - at);
    V of_weight[CHUNKS][N] = {}, of_bias[CHUNKS][N] = {}, share = number<V>(args.share);
    uint32 turn = 0;
#pragma unroll 1
    for (int64 row = group; row < args.rows; row += args.groups, turn ^= 1) {
        Packed<T> x[CHUNKS], g[CHUNKS];
        elements.load(global<T>(args.x) + row * args.x_step + at, x);
        elements.load(global<T>(args.gradient) + row * args.gradient_step + at, g);
        auto whole = state_of_row<JointMoments<V>, V>(args, row, turn);
        V pivot = whole.pivot, mean = whole.state.mean, mean_slope = whole.state.slope;
        V scale = rsqrt(whole.state.squares * share + number<V>(args.eps));
        V mean_product = whole.state.products * share * scale;
        T* out = global<T>(args.out) + row * args.out_step + at;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
            V distances[N], gradients[N], weights[N];
            widen(x[chunk], distances);
            widen(g[chunk], gradients);
            if (args.weight) widen(elements.load(global<T>(args.weight) + at, chunk), weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                V normalized = (distances[k] - pivot - mean) * scale;
                V slope = args.weight ? gradients[k] * weights[k] : gradients[k];
                results.item[k] = cast<T>((slope - mean_slope - normalized * mean_product) * scale);
                of_weight[chunk][k] += gradients[k] * normalized;
                of_bias[chunk][k] += gradients[k];
            }
            elements.store(out, chunk, results);
        }
    }
    V* partials = global<V>(args.partials) + group * args.n + at;
    elements.each([&](int chunk, int k) {
        V* to = partials + elements.index(chunk, k);
        if (args.weight) *to = of_weight[chunk][k];
        if (args.bias_gradient) to[args.weight ? args.groups * args.n : 0] = of_bias[chunk][k];
    });
}

template <class T> __device__ inline void norm_vjp_long(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    if (args.flags & ROW_VECTORS) {
        differentiate_strip<T, true>(args);
    } else {
        differentiate_strip<T, false>(args);
    }
}

// The sums of columns of partials: of the weight's, in args.strips blocks, and then of the bias's.
// Loads of a thread are under way together.
template <class T> __device__ inline void norm_vjp_columns(const Norm& args) {
    using V = compute_of<T>;
    __shared__ V shared[ROW_BLOCK];
    wait_for_dependencies(args);
    launch_dependents();
    bool second = blockIdx.x >= args.strips.size, weight = args.weight && !second;
    int64 column = int64(blockIdx.x - (second ? args.strips.size : 0)) * blockDim.x + threadIdx.x;
    const V* from = global<V>(args.partials) + (second ? args.groups * args.n : 0) + column;
    bool any = column < args.n;
    V sum = V(0);
#pragma unroll 1
    for (uint32 first = threadIdx.y; first < args.groups; first += VJP_ADDENDS * blockDim.y) {
        V addends[VJP_ADDENDS];
#pragma unroll
        for (int i = 0; i < VJP_ADDENDS; ++i) {
            uint32 group = first + i * blockDim.y;
            addends[i] = any && group < args.groups ? from[group * args.n] : V(0);
        }
#pragma unroll
        for (int i = 0; i < VJP_ADDENDS; ++i) sum += addends[i];
    }
    shared[threadIdx.y * blockDim.x + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || !any) return;
#pragma unroll 8
    for (uint32 y = 1; y < blockDim.y; ++y) sum += shared[y * blockDim.x + threadIdx.x];
    global<T>(weight ? args.weight_gradient : args.bias_gradient)[column] = cast<T>(sum);
}

}  // namespace cyrt

#define CYRT_NORM_KERNEL(NAME, THREADS, BLOCKS, ...)              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) \
        NAME(const __grid_constant__ cyrt::Norm args) {           \
        __VA_ARGS__(args);                                        \
    }
#define CYRT_NORM_ROWS(NAME, TEMPLATE, T, CENTERED, THREADS)                \
    CYRT_NORM_KERNEL(NAME, THREADS, 1, TEMPLATE<T, CENTERED, false, false>) \
    CYRT_NORM_KERNEL(NAME##_w, THREADS, 1, TEMPLATE<T, CENTERED, true, false>)
#define CYRT_NORM_ROWS_BIAS(NAME, TEMPLATE, T, THREADS)                    \
    CYRT_NORM_KERNEL(NAME##_b, THREADS, 1, TEMPLATE<T, true, false, true>) \
    CYRT_NORM_KERNEL(NAME##_wb, THREADS, 1, TEMPLATE<T, true, true, true>)
#define CYRT_NORM(NAME, T, CENTERED)                                                          \
    CYRT_NORM_ROWS(NAME, cyrt::norm_rows, T, CENTERED, cyrt::ROW_BLOCK)                       \
    CYRT_NORM_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1, cyrt::norm_unaligned<T, CENTERED>) \
    CYRT_NORM_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 4, cyrt::norm_parts<T, CENTERED>)        \
    CYRT_NORM_KERNEL(NAME##_long, cyrt::PART_BLOCK, 3, cyrt::norm_long<T>)
#define CYRT_NORM_BIAS(NAME, T) CYRT_NORM_ROWS_BIAS(NAME, cyrt::norm_rows, T, cyrt::ROW_BLOCK)
#define CYRT_NORM_VJP(NAME, T, CENTERED)                                                          \
    CYRT_NORM_ROWS(NAME, cyrt::norm_vjp_rows, T, CENTERED, cyrt::vjp_block<T>)                    \
    CYRT_NORM_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1, cyrt::norm_vjp_unaligned<T, CENTERED>) \
    CYRT_NORM_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 2, cyrt::norm_vjp_parts<T, CENTERED>)        \
    CYRT_NORM_KERNEL(NAME##_long, cyrt::PART_BLOCK, 2, cyrt::norm_vjp_long<T>)                    \
    CYRT_NORM_KERNEL(NAME##_columns, cyrt::ROW_BLOCK, 1, cyrt::norm_vjp_columns<T>)
#define CYRT_NORM_VJP_BIAS(NAME, T) \
    CYRT_NORM_ROWS_BIAS(NAME, cyrt::norm_vjp_rows, T, cyrt::vjp_block<T>)
