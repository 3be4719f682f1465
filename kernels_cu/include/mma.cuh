// Products of tiles by tensor cores.
#pragma once

#include "types.cuh"

namespace cyrt {

// mma.m16n8k16 of the PTX ISA: sums += a * b.
template <class T>
__device__ inline void multiply_tiles(float (&sums)[4], uint32 a0, uint32 a1, uint32 a2, uint32 a3,
                                      uint32 b0, uint32 b1);
#define CYRT_MULTIPLY_TILES(TYPE, PTX)                                                             \
    template <>                                                                                    \
    __device__ inline void multiply_tiles<TYPE>(float (&sums)[4], uint32 a0, uint32 a1, uint32 a2, \
                                                uint32 a3, uint32 b0, uint32 b1) {                 \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." PTX "." PTX                                   \
            ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                           \
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                               \
    }
CYRT_MULTIPLY_TILES(float16, "f16")
CYRT_MULTIPLY_TILES(bfloat16, "bf16")
#undef CYRT_MULTIPLY_TILES

// Four matrices of 8 by 8 elements of 16 bits in shared memory: lane l gives the address of row
// l % 8 of matrix l / 8. ACROSS: they are transposed on the way.
template <bool ACROSS>
__device__ inline void load_matrices(uint32 (&matrix)[4], const void* address) {
    uint32 from = __cvta_generic_to_shared(address);
    if (ACROSS) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                     : "r"(from)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                     : "r"(from)
                     : "memory");
    }
}

}  // namespace cyrt
