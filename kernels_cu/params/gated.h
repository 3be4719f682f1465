// Parameters of gated.cu.
#ifndef CYRT_PARAMS_GATED_H
#define CYRT_PARAMS_GATED_H
#include "params/space.h"
#include "params/begin.h"

enum {
    GATED_BLOCK = 256,  // threads, at most
    GATED_VECTORS = 1   // flag: the rows of all arrays are aligned to vectors
};

// Rows of n elements side by side; steps are in elements. The results are contiguous.
struct CYRT_PARAMETERS Gated {
    CYRT_POINTER(const void) gate;
    CYRT_POINTER(const void) up;
    CYRT_POINTER(const void) gradient;  // the gradient of the result
    CYRT_POINTER(void) gate_gradient;
    CYRT_POINTER(void) up_gradient;
    long long gate_step, up_step, gradient_step;  // from row to row
    long long rows;
    unsigned int n, flags;
    struct Divider chunks;  // blocks that share rows
};

#include "params/end.h"
#endif
