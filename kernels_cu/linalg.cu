// Factorizations of matrices: a block of threads for each matrix of a batch, in shared memory if
// the matrix fits there, otherwise in a workspace or in place.
//
// Each macro makes the kernels of an operation, whose parameters are Linalg:
// CYRT_LINALG_SHARED(name, function, type) one for shared memory, CYRT_LINALG one for each kind of
// memory, CYRT_LINALG_SMALL one for registers, CYRT_JACOBI(name, type) those of a method with rounds.
#pragma once

#include "cholesky.cuh"
#include "failed.cuh"
#include "householder.cuh"
#include "jacobi.cuh"
#include "lu.cuh"
#include "schur.cuh"
#include "triangular.cuh"

#define CYRT_LINALG_KERNEL(NAME, CALL) \
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::Linalg args) { CALL; }

#define CYRT_LINALG_SHARED(NAME, FUNCTION, TYPE) \
    CYRT_LINALG_KERNEL(NAME, cyrt::FUNCTION<TYPE>(args))

#define CYRT_LINALG(NAME, FUNCTION, TYPE)                        \
    CYRT_LINALG_KERNEL(NAME, (cyrt::FUNCTION<TYPE, true>(args))) \
    CYRT_LINALG_KERNEL(NAME##_large, (cyrt::FUNCTION<TYPE, false>(args)))

#define CYRT_LINALG_SMALL(NAME, FUNCTION, TYPE) \
    CYRT_LINALG_KERNEL(NAME##_small, cyrt::FUNCTION##_small<TYPE>(args))

#define CYRT_JACOBI(NAME, TYPE)                                      \
    CYRT_LINALG_KERNEL(NAME, cyrt::jacobi<TYPE>(args))               \
    CYRT_LINALG_KERNEL(NAME##_begin, cyrt::jacobi_begin<TYPE>(args)) \
    CYRT_LINALG_KERNEL(NAME##_round, cyrt::jacobi_round<TYPE>(args)) \
    CYRT_LINALG_KERNEL(NAME##_end, cyrt::jacobi_end<TYPE>(args))
