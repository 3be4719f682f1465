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
#include "real_math.cuh"
#include "row.cuh"
#include "params/norm.h"

namespace cyrt {

// The moments of some elements of a row: their number, mean and sum of squares about the mean. Joint
// ones have the mean of their slopes, too, which are the result's gradient times the weight, and the
// sum of products of both distances from the mean. Without centering, means are 0.
template <class V> struct Moments {
    V count, mean, squares;

    __device__ static Moments combine(const Moments& a, const Moments& b) {
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
// The moments of a part of a row, whose first element was subtracted from all elements.
template <class V, class State> struct PartState {
    State state;
    V pivot;
};

template <class State> __device__ inline State reduce_moments(const State& state) {
    auto combine = [](const State& a, const State& b) { return State::combine(a, b); };
    return row_reduce<false, false>(state, combine);
}

// Distances from a row's first element are exact where the elements are close to one another:
// nothing is lost where the mean is large.
template <class T, bool CENTERED>
__device__ inline compute_of<T> pivot_of(const T* row, bool any) {
    return CENTERED && any ? widen(row[0]) : compute_of<T>(0);
}

// -- rows in registers ----------------------------------------------------------------------------

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
    V pivot = pivot_of<T, CENTERED>(in, any), n = V(args.n), x[CHUNKS][N];
    V sum = V(0), squares = V(0);
    widen(packed, x);
    elements.each([&](int chunk, int k) {
        x[chunk][k] -= pivot;
        sum += x[chunk][k];
    });
    V mean = CENTERED ? row_sum(sum) / n : V(0);
    elements.each([&](int chunk, int k) {
        x[chunk][k] -= mean;
        squares += x[chunk][k] * x[chunk][k];
    });
    V scale = rsqrt(row_sum(squares) / n + V(args.eps));
    if (!any) return;
    T* out = global<T>(args.out) + row * args.out_step;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        Items<T, N> results;
        V weights[N], biases[N];
        if (weight) widen(elements.load(global<T>(args.weight), chunk), weights);
        if (bias) widen(elements.load(global<T>(args.bias), chunk), biases);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            V y = x[chunk][k] * scale;
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
    normalize_row<T, CENTERED, row_chunks<T>, true>(args, WEIGHT, BIAS);
}

template <class T, bool CENTERED> __device__ inline void norm_unaligned(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    normalize_row<T, CENTERED, row_chunks<T> / 2, false>(args, args.weight, args.bias);
}

// -- long rows ------------------------------------------------------------------------------------

// The moments of the elements x that a thread has of a row, from which `pivot` is subtracted. Then
// x is centered.
template <bool CENTERED, class ThreadElements, class V, int CHUNKS, int N>
__device__ inline Moments<V> center(const ThreadElements& elements, V (&x)[CHUNKS][N], V pivot) {
    Moments<V> found = {};
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

template <class T, bool CENTERED, bool VECTOR>
__device__ inline void measure_part(const Norm& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    const T* row = global<T>(args.x) + part.row * args.x_step;
    V pivot = pivot_of<T, CENTERED>(row, true);
    Moments<V> state = {};
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        Elements elements(part.end - at);
        Packed<T> packed[CHUNKS];
        V x[CHUNKS][N];
        elements.load(row + at, packed);
        widen(packed, x);
        state = Moments<V>::combine(state, center<CENTERED>(elements, x, pivot));
    }
    state = reduce_moments(state);
    if (threadIdx.x == 0) {
        global<PartState<V, Moments<V>>>(args.states)[blockIdx.x] = {state, pivot};
    }
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

// The state of a whole row, which every thread gets, and the pivot of its mean.
template <class State, class V>
__device__ inline PartState<V, State> state_of_row(const Norm& args, int64 row) {
    auto states = global<PartState<V, State>>(args.states) + row * args.parts.size;
    State state = threadIdx.x < args.parts.size ? states[threadIdx.x].state : State{};
    return {reduce_moments(state), states[0].pivot};
}

template <class T, bool VECTOR> __device__ inline void normalize_part(const Norm& args) {
    using V = compute_of<T>;
    constexpr int CHUNKS = row_chunks<T> / 2, N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    const RowPart part(args.parts, args.part, args.n);
    auto whole = state_of_row<Moments<V>, V>(args, part.row);
    V pivot = whole.pivot, mean = whole.state.mean;
    V scale = rsqrt(whole.state.squares / V(args.n) + V(args.eps));
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

// Sums that a thread keeps in shared memory, one for each of its elements: vectors, those of
// neighbouring threads side by side.
template <class V, int N> struct SharedSums {
    static constexpr int WIDTH = VECTOR_BYTES / sizeof(V), VECTORS = N / WIDTH;
    V* first;  // of the thread

    __device__ V* at(int chunk, int vector) const {
        return first + (chunk * VECTORS + vector) * WIDTH * blockDim.x;
    }
    __device__ void clear(int chunk) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) store_vector<WIDTH>(at(chunk, v), splat<WIDTH>(V(0)));
    }
    __device__ void add(int chunk, const V (&terms)[N]) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Items<V, WIDTH> sums = load_vector<WIDTH>(at(chunk, v));
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) sums.item[k] += terms[v * WIDTH + k];
            store_vector<WIDTH>(at(chunk, v), sums);
        }
    }
    __device__ void read(int chunk, V (&terms)[N]) const {
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            Items<V, WIDTH> sums = load_vector<WIDTH>(at(chunk, v));
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) terms[v * WIDTH + k] = sums.item[k];
        }
    }
};

// Adds up what the rows of threads of a block have, and writes it to a row of partials.
template <class ThreadElements, class V, int CHUNKS, int N>
__device__ inline void write_partials(const ThreadElements& elements, SharedSums<V, N> sums,
                                      uint32 slots, V* partials) {
    V terms[N];
#pragma unroll 1
    for (uint32 half = blockDim.y / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.y >= half) continue;
        SharedSums<V, N> others{sums.first + half * slots};
#pragma unroll 1
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            others.read(chunk, terms);
            sums.add(chunk, terms);
        }
    }
    if (threadIdx.y > 0) return;
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        sums.read(chunk, terms);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (elements.has(chunk, k)) partials[elements.index(chunk, k)] = terms[k];
        }
    }
}

template <class V> struct GradientSums {
    V squares, slope, products;

    __device__ static GradientSums add(const GradientSums& a, const GradientSums& b) {
        return {a.squares + b.squares, a.slope + b.slope, a.products + b.products};
    }
};

// A block takes rows until there are none. In shared memory are the weight, and of each of its rows
// of threads the sums for the gradients of weight and bias; `weight` and `bias` say which there are.
template <class T, bool CENTERED, int CHUNKS, bool VECTOR>
__device__ __forceinline__ void differentiate_rows(const Norm& args, bool weight, bool bias) {
    using V = compute_of<T>;
    constexpr int N = items_of<T>;
    using Elements = ThreadElements<T, CHUNKS, VECTOR>;
    extern __shared__ uint4 vectors[];
    auto shared = reinterpret_cast<unsigned char*>(vectors);
    uint32 slots = Elements::capacity();
    auto held = reinterpret_cast<Packed<T>*>(shared) + threadIdx.x;
    V* sums = reinterpret_cast<V*>(shared + (weight ? slots * sizeof(T) : 0));
    SharedSums<V, N> of_weight{sums + threadIdx.y * slots +
                               threadIdx.x * (VECTOR_BYTES / sizeof(V))};
    SharedSums<V, N> of_bias{of_weight.first + (weight ? blockDim.y * slots : 0)};
    const Elements whole(args.n);
    V n = V(args.n);
    if (weight) {
#pragma unroll 1
        for (int chunk = threadIdx.y; chunk < CHUNKS; chunk += blockDim.y) {
            held[chunk * blockDim.x] = whole.load(global<T>(args.weight), chunk);
        }
    }
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        if (weight) of_weight.clear(chunk);
        if (bias) of_bias.clear(chunk);
    }
    __syncthreads();
#pragma unroll 1
    for (int64 first = int64(blockIdx.x) * blockDim.y; first < args.rows;
         first += int64(gridDim.x) * blockDim.y) {
        int64 row = first + threadIdx.y;
        bool any = row < args.rows;
        const T* in = global<T>(args.x) + row * args.x_step;
        const Elements elements(any ? args.n : 0);
        Packed<T> packed[CHUNKS], g[CHUNKS];
        V x[CHUNKS][N], mean = V(0);
        elements.load(in, packed);
        elements.load(global<T>(args.gradient) + row * args.gradient_step, g);
        V pivot = pivot_of<T, CENTERED>(in, any);
        widen(packed, x);
        if constexpr (CENTERED) {
            elements.each([&](int chunk, int k) {
                x[chunk][k] -= pivot;
                mean += x[chunk][k];
            });
            mean = row_sum<true>(mean) / n;
        }
        GradientSums<V> all = {};
        elements.each([&](int chunk, int k) {
            x[chunk][k] -= mean;
            all.squares += x[chunk][k] * x[chunk][k];
        });
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            V slopes[N], weights[N];
            widen(g[chunk], slopes);  // 0 where there is no element
            if (weight) widen(held[chunk * blockDim.x], weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (weight) slopes[k] *= weights[k];
                all.slope += slopes[k];
                all.products += slopes[k] * x[chunk][k];
            }
        }
        all = row_reduce<true>(all, GradientSums<V>::add);
        if (!any) continue;
        V scale = rsqrt(all.squares / n + V(args.eps));
        V mean_slope = CENTERED ? all.slope / n : V(0), mean_product = all.products / n * scale;
        T* out = global<T>(args.out) + row * args.out_step;
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            Items<T, N> results;
            V gradients[N], products[N], weights[N];
            widen(g[chunk], gradients);
            if (weight) widen(held[chunk * blockDim.x], weights);
#pragma unroll
            for (int k = 0; k < N; ++k) {
                V normalized = x[chunk][k] * scale;
                V slope = weight ? gradients[k] * weights[k] : gradients[k];
                results.item[k] = cast<T>((slope - mean_slope - normalized * mean_product) * scale);
                products[k] = gradients[k] * normalized;
            }
            elements.store(out, chunk, results);
            if (weight) of_weight.add(chunk, products);
            if (bias) of_bias.add(chunk, gradients);
        }
    }
    V* partials = global<V>(args.partials) + blockIdx.x * args.n;
    if (weight) write_partials<Elements, V, CHUNKS, N>(whole, of_weight, slots, partials);
    if (weight) partials += args.groups * args.n;
    if (bias) write_partials<Elements, V, CHUNKS, N>(whole, of_bias, slots, partials);
}

template <class T, bool CENTERED, bool WEIGHT, bool BIAS>
__device__ inline void norm_vjp_rows(const Norm& args) {
    wait_for_dependencies(args);
    launch_dependents();
    differentiate_rows<T, CENTERED, row_chunks<T> / 2, true>(args, WEIGHT, BIAS);
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
    V pivot = pivot_of<T, CENTERED>(row, true);
    State state = {};
#pragma unroll 1
    for (int64 at = part.begin; at < part.end; at += Elements::capacity()) {
        const Elements elements(part.end - at);
        Packed<T> packed[CHUNKS], g[CHUNKS];
        V x[CHUNKS][N], slopes[CHUNKS][N];
        elements.load(row + at, packed);
        elements.load(gradient + at, g);
        widen(packed, x);
        Moments<V> moments = center<CENTERED>(elements, x, pivot);
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
    state = reduce_moments(state);
    if (threadIdx.x == 0) global<PartState<V, State>>(args.states)[blockIdx.x] = {state, pivot};
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
    V of_weight[CHUNKS][N] = {}, of_bias[CHUNKS][N] = {}, n = V(args.n);
#pragma unroll 1
    for (int64 row = group; row < args.rows; row += args.groups) {
        Packed<T> x[CHUNKS], g[CHUNKS];
        elements.load(global<T>(args.x) + row * args.x_step + at, x);
        elements.load(global<T>(args.gradient) + row * args.gradient_step + at, g);
        auto whole = state_of_row<JointMoments<V>, V>(args, row);
        V pivot = whole.pivot, mean = whole.state.mean, mean_slope = whole.state.slope;
        V scale = rsqrt(whole.state.squares / n + V(args.eps));
        V mean_product = whole.state.products / n * scale;
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
template <class T> __device__ inline void norm_vjp_columns(const Norm& args) {
    using V = compute_of<T>;
    __shared__ V shared[ROW_BLOCK / 2];
    wait_for_dependencies(args);
    launch_dependents();
    bool second = blockIdx.x >= args.strips.size, weight = args.weight && !second;
    int64 column = int64(blockIdx.x - (second ? args.strips.size : 0)) * blockDim.x + threadIdx.x;
    const V* from = global<V>(args.partials) + (second ? args.groups * args.n : 0) + column;
    V sum[1] = {V(0)};
    if (column < args.n) {
#pragma unroll 4
        for (uint32 group = threadIdx.y; group < args.groups; group += blockDim.y) {
            sum[0] += from[group * args.n];
        }
    }
    reduce_columns(sum, [](V a, V b) { return a + b; }, shared);
    if (threadIdx.y > 0 || column >= args.n) return;
    global<T>(weight ? args.weight_gradient : args.bias_gradient)[column] = cast<T>(sum[0]);
}

}  // namespace cyrt

#define CYRT_NORM_KERNEL(NAME, THREADS, BLOCKS, ...)              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) \
        NAME(const __grid_constant__ cyrt::Norm args) {           \
        __VA_ARGS__(args);                                        \
    }
#define CYRT_NORM_ROWS(NAME, TEMPLATE, T, CENTERED)                                 \
    CYRT_NORM_KERNEL(NAME, cyrt::ROW_BLOCK, 1, TEMPLATE<T, CENTERED, false, false>) \
    CYRT_NORM_KERNEL(NAME##_w, cyrt::ROW_BLOCK, 1, TEMPLATE<T, CENTERED, true, false>)
#define CYRT_NORM_ROWS_BIAS(NAME, TEMPLATE, T)                                     \
    CYRT_NORM_KERNEL(NAME##_b, cyrt::ROW_BLOCK, 1, TEMPLATE<T, true, false, true>) \
    CYRT_NORM_KERNEL(NAME##_wb, cyrt::ROW_BLOCK, 1, TEMPLATE<T, true, true, true>)
#define CYRT_NORM(NAME, T, CENTERED)                                                          \
    CYRT_NORM_ROWS(NAME, cyrt::norm_rows, T, CENTERED)                                        \
    CYRT_NORM_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1, cyrt::norm_unaligned<T, CENTERED>) \
    CYRT_NORM_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 4, cyrt::norm_parts<T, CENTERED>)        \
    CYRT_NORM_KERNEL(NAME##_long, cyrt::PART_BLOCK, 3, cyrt::norm_long<T>)
#define CYRT_NORM_BIAS(NAME, T) CYRT_NORM_ROWS_BIAS(NAME, cyrt::norm_rows, T)
#define CYRT_NORM_VJP(NAME, T, CENTERED)                                                          \
    CYRT_NORM_ROWS(NAME, cyrt::norm_vjp_rows, T, CENTERED)                                        \
    CYRT_NORM_KERNEL(NAME##_unaligned, cyrt::ROW_BLOCK, 1, cyrt::norm_vjp_unaligned<T, CENTERED>) \
    CYRT_NORM_KERNEL(NAME##_parts, cyrt::PART_BLOCK, 2, cyrt::norm_vjp_parts<T, CENTERED>)        \
    CYRT_NORM_KERNEL(NAME##_long, cyrt::PART_BLOCK, 2, cyrt::norm_vjp_long<T>)                    \
    CYRT_NORM_KERNEL(NAME##_columns, cyrt::ROW_BLOCK, 1, cyrt::norm_vjp_columns<T>)
#define CYRT_NORM_VJP_BIAS(NAME, T) CYRT_NORM_ROWS_BIAS(NAME, cyrt::norm_vjp_rows, T)
