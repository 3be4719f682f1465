// Convolutions of a source whose elements are a stride apart, to few channels: the gradient of the
// input of a strided convolution, or a transposed one.
//
// The outputs of a position (i, j) are the phases (a, b) at (stride * i + a, stride * j + b) less a
// shift, of all channels: at most 16 sums, over one window of the source, whose elements lie side by
// side. It has as many taps as the phases' windows together. The weight is arranged so that it has a
// vector of the source's channels for each tap and sum, and zeros where a phase has no such tap:
// these are multiplied, but not those between the source's elements.
//
// A block takes a tile of positions of an image. It goes through the source's channels in steps,
// whose part of the tile's source and of the weight are copied to shared memory while the step
// before is multiplied. There both are in planes of a vector each, so that neighbouring positions
// are in different banks.
#pragma once

#include "async_copy.cuh"
#include "conv_epilogue.cuh"
#include "mma.cuh"

namespace cyrt {

// A step in shared memory, as a thread finds it: its vectors of the source and of the weight.
struct PhaseStep {
    const uint4 *source, *weight;
    uint32 positions, width;
    uint32 taps_y, taps_x;
    const uint32 *used_y, *used_x;  // taps of each quarter of the sums, a bit each
};

// -- multiply-add ---------------------------------------------------------------------------------

// A thread has the sums of P positions one below the other. What would be products with zeros for a
// quarter of them is left out.
template <class T, int N_, int P = N_ < PHASE_SUMS ? PHASE_LINES : PHASE_LINES_OF_MOST>
struct PhaseMultiplyAdd {
    static constexpr int N = N_, THREADS = PHASE_BLOCK_MULTIPLY_ADD, LINES = PHASE_STRIPS * P;

    float sums[P][N] = {};

    __device__ static uint32 line() { return threadIdx.x / PHASE_COLUMNS * P; }
    __device__ static uint32 column() { return threadIdx.x % PHASE_COLUMNS; }

    template <int PLANES> __device__ void add(const PhaseStep& step) {
        const uint4* source = step.source + line() * step.width + column();
        const uint4* weight = step.weight;
#pragma unroll 1
        for (uint32 y = 0; y < step.taps_y; ++y) {
#pragma unroll 1
            for (uint32 x = 0; x < step.taps_x; ++x) {
                const uint4* from = source + y * step.width + x;
                bool used[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) used[i] = step.used_y[i] >> y & step.used_x[i] >> x & 1;
#pragma unroll 1
                for (int plane = 0; plane < PLANES; ++plane) {
                    // All is loaded before the first of it is used.
                    float of_source[P][4], of_weight[N][4];
#pragma unroll
                    for (int n = 0; n < N; ++n) load(weight + n, of_weight[n]);
#pragma unroll
                    for (int i = 0; i < P; ++i) load(from + i * step.width, of_source[i]);
#pragma unroll
                    for (int quarter = 0; quarter < 4; ++quarter) {
                        if (!used[quarter]) continue;
#pragma unroll
                        for (int n = quarter * (N / 4); n < (quarter + 1) * (N / 4); ++n) {
#pragma unroll
                            for (int k = 0; k < 4; ++k) {
#pragma unroll
                                for (int i = 0; i < P; ++i) {
                                    sums[i][n] += of_source[i][k] * of_weight[n][k];
                                }
                            }
                        }
                    }
                    from += step.positions;
                    weight += N;
                }
            }
        }
    }
    __device__ static void load(const uint4* from, float (&to)[4]) {
        uint4 vector = *from;
        compute_now(vector.x, vector.y, vector.z, vector.w);
        memcpy(to, &vector, sizeof(to));
    }
    template <int PITCH> __device__ void put(float* to) const {
#pragma unroll
        for (int i = 0; i < P; ++i) {
            float* at = to + ((line() + i) * PHASE_COLUMNS + column()) * PITCH;
#pragma unroll
            for (int n = 0; n < N; ++n) at[n] = sums[i][n];
        }
    }
};

// -- tensor cores ---------------------------------------------------------------------------------

// mma.m16n8k8 of the PTX ISA, of float32 rounded to TF32.
template <>
__device__ inline void multiply_tiles<float32>(float (&sums)[4], uint32 a0, uint32 a1, uint32 a2,
                                               uint32 a3, uint32 b0, uint32 b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A warp has the sums of P lines of 16 positions, in tiles of 16 by 8. Four matrices of 8 rows of a
// vector are the same lanes' elements in 16 bits and in TF32.
template <class T, int N_> struct PhaseTensorCores {
    static constexpr int N = N_, P = PHASE_LINES, TILES = N / 8;
    static constexpr int THREADS = PHASE_BLOCK, LINES = PHASE_STRIPS * P;
    static constexpr int GROUP = 4;  // taps that are taken at once: they share lines of the source

    float sums[P][TILES][4] = {};

    __device__ static uint32 line() { return threadIdx.x / 32 * P; }

    template <int PLANES> __device__ void add(const PhaseStep& step) {
        static_assert(PLANES % 2 == 0, "a product takes two vectors of channels");
        // Of the source, the second matrix has the next positions, the third the next plane; of the
        // weight, the second has the next plane, the third the next sums.
        uint32 lane = threadIdx.x % 32, second = lane / 8 % 2, third = lane / 16;
        const uint4* source =
            step.source + third * step.positions + line() * step.width + second * 8 + lane % 8;
        const uint4* weights = step.weight + second * N + third * (N - 8) + lane % 8;
        // Else addresses in shared memory are computed anew at each load.
        compute_now(source, weights);
#pragma unroll 1
        for (uint32 x = 0; x < step.taps_x; ++x) {
#pragma unroll 1
            for (uint32 y = 0; y < step.taps_y; y += GROUP) {
#pragma unroll
                for (int plane = 0; plane < PLANES; plane += 2) {
                    const uint4* from = source + plane * step.positions + y * step.width + x;
                    const uint4* weight =
                        weights + (y * step.taps_x + x) * (PLANES * N) + plane * N;
                    uint32 of_source[P + GROUP - 1][4], of_weight[GROUP][4];
#pragma unroll
                    for (int g = 0; g < GROUP; ++g) {
                        uint32 tap = y + g < step.taps_y ? g : 0;
                        load(weight + tap * step.taps_x * (PLANES * N), of_weight[g]);
                    }
#pragma unroll
                    for (int i = 0; i < P + GROUP - 1; ++i) {
                        if (i < P || y + i < step.taps_y + P - 1) {
                            load(from + i * step.width, of_source[i]);
                        }
                    }
#pragma unroll
                    for (int g = 0; g < GROUP; ++g) {
                        if (y + g >= step.taps_y) continue;
#pragma unroll
                        for (int i = 0; i < P; ++i) {
#pragma unroll
                            for (int n = 0; n < TILES; ++n) {
                                uint32(&a)[4] = of_source[i + g], (&b)[4] = of_weight[g];
                                multiply_tiles<T>(sums[i][n], a[0], a[1], a[2], a[3], b[2 * n],
                                                  b[2 * n + 1]);
                            }
                        }
                    }
                }
            }
        }
    }
    __device__ static void load(const uint4* from, uint32 (&matrix)[4]) {
        load_matrices<false>(matrix, from);
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(matrix[i]) : "f"(__uint_as_float(matrix[i])));
            }
        }
    }
    template <int PITCH> __device__ void put(float* to) const {
        uint32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < P; ++i) {
            float* at = to + ((line() + i) * PHASE_COLUMNS + lane / 4) * PITCH + lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < TILES; ++n) {
                at[8 * n] = sums[i][n][0];
                at[8 * n + 1] = sums[i][n][1];
                at[8 * PITCH + 8 * n] = sums[i][n][2];
                at[8 * PITCH + 8 * n + 1] = sums[i][n][3];
            }
        }
    }
};

// -- kernels --------------------------------------------------------------------------------------

template <class T, class Sums> __device__ inline void conv_phases(const ConvPhases& args) {
    constexpr int PLANES = PHASE_VECTORS, STAGES = PHASE_STAGES;
    constexpr int VECTOR = VECTOR_BYTES / sizeof(T), N = Sums::N, PITCH = N + 1;
    extern __shared__ uint4 vectors[];  // steps; in the end the sums of all positions
    uint32 above = divide(blockIdx.x, args.tiles_m);
    uint32 image = divide(above, args.tiles_n);
    uint32 tile_x = (blockIdx.x - above * args.tiles_m.size) * PHASE_COLUMNS;
    uint32 tile_y = (above - image * args.tiles_n.size) * Sums::LINES;
    uint32 first_y = tile_y + args.first[0], first_x = tile_x + args.first[1];
    PhaseStep step;
    step.taps_y = args.taps[0], step.taps_x = args.taps[1];
    step.width = args.width.size;
    step.used_y = args.used[0], step.used_x = args.used[1];
    step.positions = step.width * (Sums::LINES + step.taps_y - 1);
    uint32 of_source = step.positions * PLANES, of_weight = step.taps_y * step.taps_x * PLANES * N;
    // What a thread copies of a step's source: a vector of every JUMP-th position.
    constexpr uint32 JUMP = Sums::THREADS / PLANES;
    uint32 plane = threadIdx.x % PLANES, first = threadIdx.x / PLANES;
    uint32 begin_y = divide(first, args.width), begin_x = first_x + first - begin_y * step.width;
    begin_y += first_y;
    uint32 jump_y = divide(JUMP, args.width), jump_x = JUMP - jump_y * step.width;
    int64 jump = jump_y * args.step[0] + jump_x * args.step[1];
    int64 wrap = args.step[0] - step.width * args.step[1];
    const T* source = global<T>(args.source) + image * args.batch_step;
    const T* begin =
        source + int(begin_y) * args.step[0] + int(begin_x) * args.step[1] + plane * VECTOR;
    const uint4* weight = global<uint4>(args.other);
    compute_now(begin, weight, begin_y, begin_x, jump, wrap);
    wait_for_dependencies(args);
    launch_dependents();

    auto copy = [&](uint32 number) {
        if (number < args.steps) {
            uint4* to = vectors + number % STAGES * (of_source + of_weight);
            bool any = number * PLANES + plane < args.vectors;
            const T* from = begin + number * (PLANES * VECTOR);
            uint32 y = begin_y, x = begin_x;
#pragma unroll 2
            for (uint32 position = first; position < step.positions; position += JUMP) {
                bool there = any && y < args.sources[0] && x < args.sources[1];
                copy_async<VECTOR_BYTES>(to + plane * step.positions + position,
                                         there ? from : source, there);
                y += jump_y, x += jump_x, from += jump;
                if (x - first_x >= step.width) ++y, x -= step.width, from += wrap;
            }
#pragma unroll 2
            for (uint32 i = threadIdx.x; i < of_weight; i += Sums::THREADS) {
                copy_async<VECTOR_BYTES>(to + of_source + i, weight + number * of_weight + i, true);
            }
        }
        commit_copies();
    };
    Sums sums;
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) copy(i);
#pragma unroll 1
    for (uint32 number = 0; number < args.steps; ++number) {
        await_copies<STAGES - 2>();
        __syncthreads();
        copy(number + STAGES - 1);
        step.source = vectors + number % STAGES * (of_source + of_weight);
        step.weight = step.source + of_source;
        sums.template add<PLANES>(step);
    }
    __syncthreads();
    float* results = reinterpret_cast<float*>(vectors);
    sums.template put<PITCH>(results);
    __syncthreads();

    // A warp stores lines of results, a lane every 32nd of each.
    constexpr uint32 WARPS = Sums::THREADS / 32;
    uint32 run = args.run.size, x = tile_x * args.stride - args.shift[1];
    int64 line = int64(args.outputs[1]) * args.channels.size;
#pragma unroll 1
    for (uint32 i = threadIdx.x % 32; i < PHASE_COLUMNS * run; i += 32) {
        uint32 column = divide(i, args.run), output = divide(i, args.channels);
        if (x + output >= args.outputs[1]) continue;
        uint32 channel = i - output * args.channels.size;
#pragma unroll 1
        for (uint32 phase = 0; phase < args.stride; ++phase) {
            uint32 warp = threadIdx.x / 32;
            const float* from = results + (warp * PHASE_COLUMNS + column) * PITCH + phase * run +
                                (i - column * run);
            uint32 y = (tile_y + warp) * args.stride + phase - args.shift[0];
            T* to = global<T>(args.out) + (image * int64(args.outputs[0]) + int(y)) * line +
                    int64(int(x)) * args.channels.size + i;
#pragma unroll 2
            for (uint32 position = warp; position < Sums::LINES; position += WARPS) {
                if (y < args.outputs[0]) {
                    Items<float, 1> sum = {*from};
                    *to = finish<T>(args, channel, 1, sum).item[0];
                }
                from += WARPS * PHASE_COLUMNS * PITCH;
                to += WARPS * args.stride * line;
                y += WARPS * args.stride;
            }
        }
    }
}

// A thread arranges an element of the weight.
template <class T> __device__ inline void arrange_weight(const ConvPhaseWeight& args) {
    constexpr uint32 VECTOR = VECTOR_BYTES / sizeof(T), PLANES = PHASE_VECTORS;
    wait_for_dependencies(args);
    launch_dependents();
    uint32 element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= args.n) return;
    uint32 rest = element / VECTOR, channel = element % VECTOR;
    uint32 sum = rest % args.sums;
    rest /= args.sums;
    uint32 plane = rest % PLANES;
    rest /= PLANES;
    uint32 x = rest % args.taps[1];
    rest /= args.taps[1];
    uint32 y = rest % args.taps[0];
    channel += (rest / args.taps[0] * PLANES + plane) * VECTOR;
    uint32 phase = sum / args.results, result = sum % args.results;
    // Of the filter; those before it are large.
    y = args.first[0] - y * args.stride + phase / args.stride;
    x = args.first[1] - x * args.stride + phase % args.stride;
    T value = {};
    if (phase < args.stride * args.stride && y < args.filter[0] && x < args.filter[1] &&
        channel < args.sources) {
        uint32 tap = y * args.filter[1] + x;
        if (args.backwards) tap = args.filter[0] * args.filter[1] - 1 - tap;
        value = global<T>(args.weight)[channel * args.source_step + result * args.result_step +
                                       tap * args.tap_step];
    }
    global<T>(args.out)[element] = value;
}

}  // namespace cyrt

// Few enough registers for as many blocks on a multiprocessor as its shared memory lets run.
#define CYRT_CONV_PHASES_BY(NAME, TYPE, BLOCKS, KIND, N)                               \
    extern "C" __global__ void __launch_bounds__(cyrt::KIND<TYPE, N>::THREADS, BLOCKS) \
        NAME(const __grid_constant__ cyrt::ConvPhases args) {                          \
        cyrt::conv_phases<TYPE, cyrt::KIND<TYPE, N>>(args);                            \
    }

#define CYRT_CONV_PHASES(NAME, TYPE)                                              \
    extern "C" __global__ void __launch_bounds__(256)                             \
        NAME##_phase_weight(const __grid_constant__ cyrt::ConvPhaseWeight args) { \
        cyrt::arrange_weight<TYPE>(args);                                         \
    }                                                                             \
    CYRT_CONV_PHASES_BY(NAME##_phases_tensor8, TYPE, 3, PhaseTensorCores, 8)      \
    CYRT_CONV_PHASES_BY(NAME##_phases_tensor16, TYPE, 3, PhaseTensorCores, 16)

#define CYRT_CONV_PHASES_MULTIPLY_ADD(NAME, TYPE)                       \
    CYRT_CONV_PHASES_BY(NAME##_phases4, TYPE, 4, PhaseMultiplyAdd, 4)   \
    CYRT_CONV_PHASES_BY(NAME##_phases8, TYPE, 4, PhaseMultiplyAdd, 8)   \
    CYRT_CONV_PHASES_BY(NAME##_phases12, TYPE, 4, PhaseMultiplyAdd, 12) \
    CYRT_CONV_PHASES_BY(NAME##_phases16, TYPE, 4, PhaseMultiplyAdd, 16)
