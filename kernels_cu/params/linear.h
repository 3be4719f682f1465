// Parameters of linear.cu.
#ifndef CYRT_PARAMS_LINEAR_H
#define CYRT_PARAMS_LINEAR_H
#include "params/activation.h"
#include "params/matmul.h"
#include "params/begin.h"

enum {
    GEMV_ROWS = 8,         // rows of the matrix that a block multiplies by a single one at once
    GEMV_WARPS = 8,        // the most warps of such a block
    GEMV_BLOCKS = 4,       // blocks of so many warps that a multiprocessor holds
    GEMV_ONCE_WARPS = 16,  // the most warps of a block that has a single group
    FEW_LINEAR_ROWS = 16   // the most few rows
};

// One product of a few rows and a matrix along the summed dimension, in one part, and what precedes
// and follows it.
struct CYRT_PARAMETERS Linear {
    struct Skinny product;               // wide: of the result
    CYRT_POINTER(const void) norm;       // the weight of a norm of the few rows, of k; or 0
    CYRT_POINTER(const void) norm_bias;  // its bias, if it is a layer_norm of a single row
    CYRT_POINTER(const void) bias;       // the bias of the matrix's rows; or 0
    CYRT_POINTER(const void) residual;   // as out; or 0
    float eps;                           // the norm's
    unsigned int activation;
    unsigned int gated;  // 1: a row of the matrix is a gate, the one `wide` rows behind it is gated
};

#include "params/end.h"
#endif
