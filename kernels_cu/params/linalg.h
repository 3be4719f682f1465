// Parameters of linalg.cu.
#ifndef CYRT_PARAMS_LINALG_H
#define CYRT_PARAMS_LINALG_H
#include "params/begin.h"

enum LinalgFlags {
    LINALG_UPPER = 1,        // the upper triangle is read, or written, instead of the lower one
    LINALG_TRANSPOSED = 2,   // the matrix is used transposed
    LINALG_CONJUGATE = 4,    // a transposed matrix is conjugated, too
    LINALG_UNIT = 8,         // the diagonal of a triangular matrix is 1 and is not read
    LINALG_IDENTITY = 16,    // the right-hand sides are the identity
    LINALG_LOG = 32,         // a determinant's sign and the logarithm of its magnitude are written
    LINALG_VECTORS = 64,     // vectors are computed, too
    LINALG_HERMITIAN = 128,  // the eigenvalues of a Hermitian matrix are computed
    LINALG_REFLECTIONS = 256,  // Householder's vectors are written, not Q
    LINALG_LOWER = 512         // the lower triangle is copied, not the whole matrix
};

enum {
    LINALG_PART = 4,           // elements of a vector that a lane has, a power of two
    LINALG_ROWS = 32,          // the most rows of a matrix whose vectors are in registers, ...
    LINALG_ROW_BYTES = 256,    // ... and the most bytes of such a vector
    LINALG_TILE = 32,          // right-hand sides that a block solves for
    LINALG_SWEEPS = 24,        // the most sweeps of Jacobi's method by several launches
    LINALG_BLOCK_SWEEPS = 60,  // the most sweeps in one block
    LINALG_SPARE = 64          // elements of the workspace for scalars
};

// Batches of matrices, each row-major and contiguous, one after the other.
struct CYRT_PARAMETERS Linalg {
    CYRT_POINTER(const void) a;                // m x n
    CYRT_POINTER(const void) b;                // right-hand sides, n x k
    CYRT_POINTER(void) x;                      // results
    CYRT_POINTER(void) y;                      // more results, or 0
    CYRT_POINTER(void) z;                      // more results, or 0
    CYRT_POINTER(int) info;                    // by matrix: 0, or where it failed; 0: not written
    CYRT_POINTER(unsigned long long) failure;  // see cyrt/runtime/failure; 0: not written
    CYRT_POINTER(void) work;                   // what does not fit into shared memory
    long long work_size;                       // elements of the workspace of a matrix
    unsigned int site;                         // the number of the call's function and line
    unsigned int m, n, k;
    unsigned int flags;
    unsigned int tiles;  // blocks of a matrix
    unsigned int round;  // the round of Jacobi's method, counted through all sweeps
};

#include "params/end.h"
#endif
