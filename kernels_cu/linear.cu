// Linear layers of a few rows: norm, product with a matrix whose rows are along the summed
// dimension, bias, activation or gate, and residual, in one launch. A single row is computed by
// gemv.cuh and gemv_once.cuh, more rows by skinny.cuh.
#pragma once

#include "gemv.cuh"
#include "gemv_once.cuh"
#include "skinny.cuh"

#define CYRT_LINEAR_ROWS(NAME, TYPE, EIGHTS, ROWS)                                               \
    extern "C" __global__ void __launch_bounds__(32 * SKINNY_WARPS(EIGHTS, sizeof(TYPE)),        \
                                                 SKINNY_BLOCKS(sizeof(TYPE)))                    \
        NAME##_##ROWS(const __grid_constant__ cyrt::Linear args) {                               \
        cyrt::skinny<TYPE, cyrt::AlongSum<TYPE, 1>, EIGHTS, SKINNY_STEPS(EIGHTS, sizeof(TYPE))>( \
            args);                                                                               \
    }
#define CYRT_LINEAR_ONCE(NAME, TYPE, CENTERED)                                                    \
    extern "C" __global__ void __launch_bounds__(                                                 \
        32 * cyrt::GEMV_ONCE_WARPS, cyrt::GEMV_BLOCKS * cyrt::GEMV_WARPS / cyrt::GEMV_ONCE_WARPS) \
        NAME(const __grid_constant__ cyrt::Linear args) {                                         \
        cyrt::gemv_once<TYPE, CENTERED>(args);                                                    \
    }
#define CYRT_LINEAR(NAME, TYPE)                                                            \
    extern "C" __global__ void __launch_bounds__(32 * cyrt::GEMV_WARPS, cyrt::GEMV_BLOCKS) \
        NAME(const __grid_constant__ cyrt::Linear args) {                                  \
        cyrt::gemv<TYPE>(args);                                                            \
    }                                                                                      \
    CYRT_LINEAR_ONCE(NAME##_once, TYPE, false)                                             \
    CYRT_LINEAR_ONCE(NAME##_centered, TYPE, true)                                          \
    CYRT_LINEAR_ROWS(NAME, TYPE, 1, 8)                                                     \
    CYRT_LINEAR_ROWS(NAME, TYPE, 2, 16)
