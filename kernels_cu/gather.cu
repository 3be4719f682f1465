// Elements picked by arrays of indices, and put there.
//
// Two operands share an index space: the address of an element of `here` depends on strides alone,
// that of one of `there` on arrays of indices, too. So one kernel takes rows, single elements,
// elements along an axis, and those of arrays of indices mixed with slices. Elements are only
// moved, as words of their size, or of a larger one where rows of them allow it.
//
// CYRT_TAKE(name, word) makes the kernels here = there[indices], CYRT_PUT there[indices] = here, and
// CYRT_OFFSETS(name, type) here = offset of there[indices] in elements, to which `there` is added:
//   name          one array of indices
//   name_many     up to MAX_INDICES
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "strided.cuh"
#include "params/gather.h"

namespace cyrt {

template <class T> __device__ inline int64 widened(T i) { return i; }
// An index that int64 does not hold is beyond any size.
__device__ inline int64 widened(uint64 i) { return i >> 63 ? int64(~0ull >> 1) : int64(i); }

// All loads are issued before the first index is used.
template <class T, int N>
__device__ inline void load_indices(const void* from, const int64 (&at)[N], int64 (&index)[N]) {
    const T* indices = static_cast<const T*>(from);
    __builtin_assume(__isGlobal(indices));
    T loaded[N];
#pragma unroll
    for (int k = 0; k < N; ++k) loaded[k] = indices[at[k]];
#pragma unroll
    for (int k = 0; k < N; ++k) index[k] = widened(loaded[k]);
}

// Adds the offsets of the indices at `at`: negative ones count from the end, and those that are out
// of bounds become the nearest one inside, or trap. kind: log2 of an index's bytes, plus 4 if
// unsigned.
template <int N>
__device__ inline void add_index(const Index& args, const int64 (&at)[N], uint32 kind, uint32 flags,
                                 int64 (&there)[N]) {
    int64 index[N];
    switch (kind) {
    case 0: load_indices<int8>(args.indices, at, index); break;
    case 1: load_indices<int16>(args.indices, at, index); break;
    case 2: load_indices<int32>(args.indices, at, index); break;
    case 3: load_indices<int64>(args.indices, at, index); break;
    case 4: load_indices<uint8>(args.indices, at, index); break;
    case 5: load_indices<uint16>(args.indices, at, index); break;
    case 6: load_indices<uint32>(args.indices, at, index); break;
    default: load_indices<uint64>(args.indices, at, index);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
        int64 i = index[k] < 0 ? index[k] + args.size : index[k];
        // The label is in the emulated device's report.
        if (flags & GATHER_TRAP && uint64(i) >= uint64(args.size))
            asm volatile("{\n\tindex_out_of_range: trap;\n\t}");
        there[k] += (i < 0 ? 0 : i < args.size ? i : args.size - 1) * args.stride;
    }
}

// Called for each of many arrays, not inlined: the code would be long.
__device__ __noinline__ int64 called_offset(Index index, int64 at, uint32 kind, uint32 flags) {
    int64 from[1] = {at}, there[1] = {0};
    add_index(index, from, kind, flags, there);
    return there[0];
}

template <int N> struct GatherParameters;
template <> struct GatherParameters<1> {
    using type = Gather1;
};
template <> struct GatherParameters<MAX_INDICES> {
    using type = Gather6;
};

enum Picking { TAKE, PUT, OFFSETS };

template <class T, int N, Picking HOW> __device__ inline void
pick(const typename GatherParameters<N>::type& args) {
    constexpr int ITEMS = N == 1 ? 4 : 2;
    uint32 begin = blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
    int64 here[ITEMS], there[ITEMS], at[N][ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        uint32 i = begin + k * blockDim.x;
        if (i >= args.count) i = begin;  // done twice, stored once
        uint32 row = divide(i, args.inner);
        int64 column = i - row * args.inner.size;
        int64 offsets[2 + N];
        locate_row(args.outer, row, args.num_outer, offsets);
#pragma unroll
        for (int j = 0; j < 2 + N; ++j) offsets[j] += column * args.inner_strides[j];
        here[k] = offsets[0];
        there[k] = offsets[1];
#pragma unroll
        for (int j = 0; j < N; ++j) at[j][k] = offsets[2 + j];
        if (N == 1) compute_now(here[k], there[k], at[0][k]);
    }
    wait_for_dependencies(args);
    launch_dependents();
    if (begin >= args.count) return;
    if (N == 1) add_index(args.index[0], at[0], args.kinds, args.flags, there);
#pragma unroll
    for (int k = 0; N > 1 && k < ITEMS; ++k) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            if (j >= args.num_indices) break;
            there[k] +=
                called_offset(args.index[j], at[j][k], args.kinds >> 4 * j & 15, args.flags);
        }
    }
    T* inside = static_cast<T*>(args.there);
    if constexpr (HOW != OFFSETS) __builtin_assume(__isGlobal(inside));
    T word[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if constexpr (HOW == TAKE) {
            word[k] = inside[there[k]];
        } else if constexpr (HOW == OFFSETS) {
            word[k] = T(reinterpret_cast<int64>(args.there) + there[k]);
        } else {
            word[k] = args.flags & GATHER_VALUE ? value_of<T>(args.here)
                                                : pointer_of<T>(args.here)[here[k]];
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (begin + k * blockDim.x >= args.count) break;
        if (HOW == PUT) {
            inside[there[k]] = word[k];
        } else {
            T* out = reinterpret_cast<T*>(args.here.word[0]);
            __builtin_assume(__isGlobal(out));
            out[here[k]] = word[k];
        }
    }
}

}  // namespace cyrt

#define CYRT_PICK(NAME, TYPE, N, HOW)                                   \
    extern "C" __global__ void NAME(                                    \
        const __grid_constant__ cyrt::GatherParameters<N>::type args) { \
        cyrt::pick<TYPE, N, cyrt::HOW>(args);                           \
    }
#define CYRT_PICKS(NAME, TYPE, HOW) \
    CYRT_PICK(NAME, TYPE, 1, HOW)   \
    CYRT_PICK(NAME##_many, TYPE, cyrt::MAX_INDICES, HOW)
#define CYRT_TAKE(NAME, BYTES) CYRT_PICKS(NAME, cyrt::Word<BYTES>::type, TAKE)
#define CYRT_PUT(NAME, BYTES) CYRT_PICKS(NAME, cyrt::Word<BYTES>::type, PUT)
#define CYRT_OFFSETS(NAME, TYPE) CYRT_PICKS(NAME, TYPE, OFFSETS)
