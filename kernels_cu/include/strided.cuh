// Index spaces of many dimensions, passed by value.
#pragma once

#include "types.cuh"

namespace cyrt {

constexpr int MAX_OUTER = 8;

// Division by a number known on the host, of numerators below 2^31.
struct Divider {
    uint32 size, multiplier, shift;

    __device__ uint32 divide(uint32 n) const { return (__umulhi(n, multiplier) + n) >> shift; }
};

// The dimensions but the innermost: the last one varies slowest. Strides are in elements.
template<int OPERANDS> struct Outer {
    Divider dims[MAX_OUTER];
    int64 strides[MAX_OUTER][OPERANDS];

    // Where row number `row` of each operand begins.
    __device__ void offsets(uint32 row, uint32 num_dims, int64 (&offset)[OPERANDS]) const {
#pragma unroll
        for (int i = 0; i < OPERANDS; ++i) offset[i] = 0;
#pragma unroll 1
        for (uint32 d = 0; d < num_dims; ++d) {
            uint32 next = dims[d].divide(row);
            int64 index = row - next * dims[d].size;
            row = next;
#pragma unroll
            for (int i = 0; i < OPERANDS; ++i) offset[i] += index * strides[d][i];
        }
    }
};

}  // namespace cyrt
