// Dropout: elements chosen at random stay, and are scaled; the others become 0.
//
// Element i stays where number i of the key, as the operation bernoulli has it, is true: nothing but
// the key is needed to choose the same elements again. CYRT_DROPOUT(name, type) makes one kernel.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "philox.cuh"
#include "params/dropout.h"

namespace cyrt {

template <class T> __device__ inline void dropout(const Dropout& args) {
    using C = compute_of<T>;
    constexpr int N = items_of<T>,
                  W = N < 4 ? N : 4;  // elements of a thread, and of a Philox block
    C scale = C(args.scale);
    int64 step = int64(gridDim.x) * blockDim.x * N;
    wait_for_dependencies(args);
    launch_dependents();
    const T* x = global<T>(args.x);
    T* out = global<T>(args.out);
    for (int64 i = (int64(blockIdx.x) * blockDim.x + threadIdx.x) * N; i < args.n; i += step) {
        bool whole = i + N <= args.n;
        Items<T, N> items = {};
        if (whole && args.vectors) {
            items = load_vector<N>(x + i);
        } else {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (i + k < args.n) items.item[k] = x[i + k];
            }
        }
#pragma unroll
        for (int k = 0; k < N; k += W) {
            Bits bits = philox(uint64(i + k) / 4, 0, DRAW, args.key);
#pragma unroll
            for (int j = 0; j < W; ++j) {
                uint32 word = W == 4 ? bits.word[j] : i & 2 ? bits.word[2 + j] : bits.word[j];
                C kept = widen(items.item[k + j]) * scale;
                items.item[k + j] = cast<T>(word < args.threshold ? kept : C(0));
            }
        }
        if (whole) {
            store_vector<N>(out + i, items);
        } else {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                if (i + k < args.n) out[i + k] = items.item[k];
            }
        }
    }
}

}  // namespace cyrt

#define CYRT_DROPOUT(NAME, TYPE)                                                  \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Dropout args) { \
        cyrt::dropout<TYPE>(args);                                                \
    }
