// Philox4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011): 128 random bits are a function of a counter and a key.
#pragma once

#include "types.cuh"

namespace cyrt {

// The last word of a counter, by its use, so that no counter is used twice with a key. The host uses
// 2 to 4, for the keys that it derives from a key.
constexpr uint32 DRAW = 0, REDRAW = 1;

struct Bits {
    uint32 word[4];

    __device__ uint64 pair(int i) const { return uint64(word[2 * i + 1]) << 32 | word[2 * i]; }
};

// Of the product in C++ the compiler adds zeros to the upper half.
__device__ inline uint64 wide_product(uint32 a, uint32 b) {
    uint64 product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
}

__device__ inline Bits philox(uint64 count, uint32 attempt, uint32 purpose, uint64 key) {
    uint32 c[4] = {uint32(count), uint32(count >> 32), attempt, purpose};
    uint32 k[2] = {uint32(key), uint32(key >> 32)};
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        uint64 a = wide_product(c[0], 0xD2511F53u), b = wide_product(c[2], 0xCD9E8D57u);
        c[0] = uint32(b >> 32) ^ c[1] ^ k[0];
        c[1] = uint32(b);
        c[2] = uint32(a >> 32) ^ c[3] ^ k[1];
        c[3] = uint32(a);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return {{c[0], c[1], c[2], c[3]}};
}

// -- random bits to numbers -----------------------------------------------------------------------

// Integers, evenly spread, below 1 / UNIT.
template <class T> constexpr T UNIT = sizeof(T) == 4 ? T(0x1p-24) : T(0x1p-53);
__device__ inline float units(uint32 bits) { return float(bits >> 8); }
__device__ inline double units(uint64 bits) { return double(bits >> 11); }
// A number in (0, 1], finer near 0.
__device__ inline float positive_fraction(uint32 bits) {
    return __fmaf_rn(__uint2float_rn(bits), 0x1p-32f, 0x1p-33f);
}
__device__ inline double positive_fraction(uint64 bits) {
    return __fma_rn(double(bits), 0x1p-64, 0x1p-65);
}

}  // namespace cyrt
