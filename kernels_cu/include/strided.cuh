// Index spaces of many dimensions.
#pragma once

#include "params/space.h"
#include "types.cuh"

namespace cyrt {

__device__ inline uint32 divide(uint32 n, const Divider& divider) {
    return (__umulhi(n, divider.multiplier) + n) >> divider.shift;
}

// Where row number `row` of each operand begins, in elements.
template <class Outer, int OPERANDS>
__device__ inline void locate_row(const Outer& outer, uint32 row, uint32 num_dims,
                                  int64 (&offset)[OPERANDS]) {
#pragma unroll
    for (int i = 0; i < OPERANDS; ++i) offset[i] = 0;
#pragma unroll 1
    for (uint32 d = 0; d < num_dims; ++d) {
        uint32 next = divide(row, outer.dims[d]);
        int64 index = row - next * outer.dims[d].size;
        row = next;
#pragma unroll
        for (int i = 0; i < OPERANDS; ++i) offset[i] += index * outer.strides[d][i];
    }
}

}  // namespace cyrt
