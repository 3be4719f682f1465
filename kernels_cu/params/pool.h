// Parameters of pool.cu.
#ifndef CYRT_PARAMS_POOL_H
#define CYRT_PARAMS_POOL_H
#include "params/window.h"
#include "params/begin.h"

enum { POOL_CHUNK = 64 };  // taps whose sum is added to the total at once

struct CYRT_PARAMETERS Pool {
    CYRT_POINTER(const void) source;  // channels are adjacent
    CYRT_POINTER(unsigned int) tap;   // the tap of the greatest element in each window; contiguous
    CYRT_POINTER(void) out;           // contiguous
    struct Windows windows;
    struct Divider chunks;  // blocks that share an output
    unsigned int outputs, channels, taps;
};

#include "params/end.h"
#endif
