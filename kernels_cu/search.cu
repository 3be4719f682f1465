// Binary search in a sorted row, of elements by their keys; see sort_key.cuh for their order.
//
// CYRT_SEARCH(name, type) makes
//   name            how many elements are before each value, or, from the right, not after it
//   name_contains   whether a value is there
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "sort_key.cuh"
#include "params/search.h"

namespace cyrt {

// The index of the i-th element in order; one that is out of range counts as the nearest.
__device__ inline int64 index_of(const Search& args, int64 i) {
    if (!args.sorter) return i;
    i = args.sorter[i];
    return i < 0 ? 0 : i < args.n ? i : args.n - 1;
}

// The first element, in order, that is not before the key; from the right, that is after it.
template <class U>
__device__ inline int64 find_index(const Search& args, const SortKey<U>& order, U key, bool right) {
    const U* sorted = static_cast<const U*>(args.sorted);
    __builtin_assume(__isGlobal(sorted));
    int64 low = 0, high = args.n;
    while (low < high) {
        int64 middle = low + (high - low) / 2;
        U other = order.of(sorted[index_of(args, middle)]);
        if (right ? other <= key : other < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

template <class U, bool CONTAINS> __device__ inline void search(const Search& args) {
    wait_for_dependencies(args);
    launch_dependents();
    SortKey<U> order(args.order);
    const U* values = static_cast<const U*>(args.values);
    __builtin_assume(__isGlobal(values));
    int64 step = int64(gridDim.x) * blockDim.x;
    for (int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step) {
        U bits = values[i], key = order.of(bits);
        int64 index = find_index(args, order, key, args.right);
        if (CONTAINS) {
            const U* sorted = static_cast<const U*>(args.sorted);
            // What is above all, NaN, equals nothing; any true boolean equals another.
            bool found = index < args.n && order.of(sorted[index]) == key &&
                         (!order.above_all(bits) || args.order.largest == 0);
            static_cast<uint8*>(args.out)[i] = found != bool(args.invert);
        } else {
            static_cast<int64*>(args.out)[i] = index;
        }
    }
}

}  // namespace cyrt

#define CYRT_SEARCH(NAME, TYPE)                                                             \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Search args) {            \
        cyrt::search<TYPE, false>(args);                                                    \
    }                                                                                       \
    extern "C" __global__ void NAME##_contains(const __grid_constant__ cyrt::Search args) { \
        cyrt::search<TYPE, true>(args);                                                     \
    }
