// Parameters of optimizer.cu.
#ifndef CYRT_PARAMS_OPTIMIZER_H
#define CYRT_PARAMS_OPTIMIZER_H
#include "params/begin.h"

enum {
    OPTIMIZER_TENSORS = 160,      // the most of a launch: its parameters have less than 4 KB
    OPTIMIZER_BLOCK = 256,        // threads of a block, which steps a tile
    OPTIMIZER_TILE_BYTES = 4096,  // bytes of a moment's tile: 16 for each thread

    OPTIMIZER_NESTEROV = 1,
    OPTIMIZER_LINEAR = 2,  // the decay is a line, or falls by a factor, instead of a cosine
    OPTIMIZER_EXPONENTIAL = 4
};

// A launch of any of the kernels. The moments of its tensors lie side by side, each from the start
// of a tile.
struct CYRT_PARAMETERS Optimizer {
    CYRT_POINTER(int) step;  // steps done, of each tile
    CYRT_POINTER(void) m;    // moments
    CYRT_POINTER(void) v;
    CYRT_POINTER(double) squares;  // the sum of the gradients' squares; 0: nothing is clipped
    CYRT_POINTER(const float) given_rate;  // the learning rate; 0: that of the schedule
    double rate, start, end;               // behind the warmup, at its start, behind the decay
    unsigned int warmup, decay;            // their steps
    double log2_factor;                    // the factor of an exponential decay over `decay` steps
    double b1, c1, log_b1;                 // a decay rate, 1 - b1, and its logarithm
    double b2, c2, log_b2;
    double eps, weight_decay, max_norm;
    unsigned int flags;
    unsigned int count;                        // tensors
    unsigned int first[OPTIMIZER_TENSORS];     // the first tile of each
    unsigned int elements[OPTIMIZER_TENSORS];  // their number
    CYRT_POINTER(const void) gradients[OPTIMIZER_TENSORS];
    CYRT_POINTER(void) tensors[OPTIMIZER_TENSORS];
};

#include "params/end.h"
#endif
