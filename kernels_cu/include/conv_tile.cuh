// Tiles of two factors in shared memory, and their products in registers: by multiply-add in the
// compute type, and of 16-bit floats by tensor cores.
//
// A tile has DEPTH elements of the summed dimension k: LANES vectors of 16 bytes. What a factor's
// vectors run along in memory is k, or the other dimension (ACROSS).
#pragma once

#include "memory.cuh"
#include "mma.cuh"

namespace cyrt {

template <class T, int M_, int N_, int THREADS_> struct Shape {
    static constexpr int M = M_, N = N_, THREADS = THREADS_;
    static constexpr int VECTOR = VECTOR_BYTES / sizeof(T), LANES = 4, DEPTH = LANES * VECTOR;
};

// -- multiply-add ---------------------------------------------------------------------------------

// Elements in their compute type; those of one k are side by side.
template <class T, int SIZE, int DEPTH, bool ACROSS> struct alignas(16) WideTile {
    using C = compute_of<T>;
    static constexpr int VECTOR = VECTOR_BYTES / sizeof(T), WORD = VECTOR_BYTES / sizeof(C);
    C item[DEPTH][SIZE + WORD];

    __device__ void put(uint32 row, uint32 k, T x) { item[k][row] = widen(x); }
    __device__ void put_vector(uint32 row, uint32 k, uint4 vector) {
        Items<T, VECTOR> items;
        memcpy(&items, &vector, sizeof(vector));
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            item[ACROSS ? k : k + i][ACROSS ? row + i : row] = widen(items.item[i]);
        }
    }
};

// Threads are SIDE wide, each with R by R sums.
template <class T, class Shape, bool ACROSS_A, bool ACROSS_B> struct MultiplyAdd {
    using C = compute_of<T>;
    static constexpr int M = Shape::M, N = Shape::N, DEPTH = Shape::DEPTH;
    static constexpr int R = M * N / Shape::THREADS >= 64 ? 8 : 4, SIDE = N / R;
    static constexpr int WORD = VECTOR_BYTES / sizeof(C);
    static_assert(M / R * SIDE == Shape::THREADS && SIDE == 8, "a warp is 8 threads wide");
    using TileA = WideTile<T, M, DEPTH, ACROSS_A>;
    using TileB = WideTile<T, N, DEPTH, ACROSS_B>;

    C sums[R][R] = {};

    // Sum number i of a thread, of `side` threads, is number index(i, thread, side) of the tile.
    __device__ static uint32 index(int i, uint32 thread, int side) {
        return (i / WORD * side + thread) * WORD + i % WORD;
    }
    __device__ void add(const TileA& a, const TileB& b) {
        uint32 x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll 4
        for (int k = 0; k < DEPTH; ++k) {
            C of_a[R], of_b[R];
#pragma unroll
            for (int i = 0; i < R; i += WORD) {
                auto word_a = load_vector<WORD>(&a.item[k][index(i, y, M / R)]);
                auto word_b = load_vector<WORD>(&b.item[k][index(i, x, SIDE)]);
#pragma unroll
                for (int v = 0; v < WORD; ++v) {
                    of_a[i + v] = word_a.item[v];
                    of_b[i + v] = word_b.item[v];
                }
            }
#pragma unroll
            for (int i = 0; i < R; ++i) {
#pragma unroll
                for (int j = 0; j < R; ++j) sums[i][j] += of_a[i] * of_b[j];
            }
        }
    }
    __device__ void put(C (&to)[M][N + WORD]) const {
        uint32 x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < R; j += WORD) {
                Items<C, WORD> word;
#pragma unroll
                for (int v = 0; v < WORD; ++v) word.item[v] = sums[i][j + v];
                store_vector<WORD>(&to[index(i, y, M / R)][index(j, x, SIDE)], word);
            }
        }
    }
};

// -- tensor cores ---------------------------------------------------------------------------------

// Elements as they are, in rows along k, or across it. Eight rows are in different banks.
template <class T, int SIZE, int DEPTH, bool ACROSS> struct alignas(16) NarrowTile {
    T item[ACROSS ? DEPTH : SIZE][(ACROSS ? SIZE : DEPTH) + 8];

    __device__ T* at(uint32 row, uint32 k) { return ACROSS ? &item[k][row] : &item[row][k]; }
    __device__ const T* at(uint32 row, uint32 k) const {
        return const_cast<NarrowTile*>(this)->at(row, k);
    }
    __device__ void put(uint32 row, uint32 k, T x) { *at(row, k) = x; }
    __device__ void put_vector(uint32 row, uint32 k, uint4 vector) {
        *reinterpret_cast<uint4*>(at(row, k)) = vector;
    }
};

// A warp has WARP_M by 32 sums, in tiles of 16 by 8.
template <class T, class Shape, bool ACROSS_A, bool ACROSS_B> struct TensorCores {
    using C = float;
    static constexpr int M = Shape::M, N = Shape::N, DEPTH = Shape::DEPTH, WARP_N = 32;
    static constexpr int WARPS_N = N / WARP_N, WARP_M = M * WARPS_N / (Shape::THREADS / 32);
    static constexpr int TILES_M = WARP_M / 16, TILES_N = WARP_N / 8;
    using TileA = NarrowTile<T, M, DEPTH, ACROSS_A>;
    using TileB = NarrowTile<T, N, DEPTH, ACROSS_B>;

    float sums[TILES_M][TILES_N][4] = {};

    __device__ static uint32 first_row() { return threadIdx.x / 32 / WARPS_N * WARP_M; }
    __device__ static uint32 first_column() { return threadIdx.x / 32 % WARPS_N * WARP_N; }

    __device__ void add(const TileA& a, const TileB& b) {
        // ldmatrix loads four matrices: a's second is below its first, b's second is further along k.
        uint32 lane = threadIdx.x % 32, second = lane / 8 % 2 * 8, third = lane / 16 * 8;
        uint32 m = first_row() + lane % 8, n = first_column() + lane % 8;
        uint32 a_row = second, a_k = third, b_row = third, b_k = second;
        if (ACROSS_A) m = first_row(), a_k += lane % 8;
        if (ACROSS_B) n = first_column(), b_k += lane % 8;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            uint32 of_a[TILES_M][4], of_b[TILES_N / 2][4];
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
                load_matrices<ACROSS_A>(of_a[i], a.at(m + 16 * i + a_row, k + a_k));
            }
#pragma unroll
            for (int j = 0; j < TILES_N / 2; ++j) {
                load_matrices<ACROSS_B>(of_b[j], b.at(n + 16 * j + b_row, k + b_k));
            }
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
#pragma unroll
                for (int j = 0; j < TILES_N; ++j) {
                    multiply_tiles<T>(sums[i][j], of_a[i][0], of_a[i][1], of_a[i][2], of_a[i][3],
                                      of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }
    __device__ void put(float (&to)[M][N + 4]) const {
        uint32 row = first_row() + threadIdx.x % 32 / 4;
        uint32 column = first_column() + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < TILES_M; ++i) {
#pragma unroll
            for (int j = 0; j < TILES_N; ++j) {
                float* at = &to[row + 16 * i][column + 8 * j];
                store_vector<2>(at, Items<float, 2>{sums[i][j][0], sums[i][j][1]});
                store_vector<2>(at + 8 * (N + 4), Items<float, 2>{sums[i][j][2], sums[i][j][3]});
            }
        }
    }
};

template <class T, class Shape, bool ACROSS_A, bool ACROSS_B> struct Multiplier {
    using type = MultiplyAdd<T, Shape, ACROSS_A, ACROSS_B>;
};
template <class Shape, bool ACROSS_A, bool ACROSS_B>
struct Multiplier<float16, Shape, ACROSS_A, ACROSS_B> {
    using type = TensorCores<float16, Shape, ACROSS_A, ACROSS_B>;
};
template <class Shape, bool ACROSS_A, bool ACROSS_B>
struct Multiplier<bfloat16, Shape, ACROSS_A, ACROSS_B> {
    using type = TensorCores<bfloat16, Shape, ACROSS_A, ACROSS_B>;
};

}  // namespace cyrt
