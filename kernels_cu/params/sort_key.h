// The order of elements, as kernels of sort.cu and search.cu take it.
#ifndef CYRT_PARAMS_SORT_KEY_H
#define CYRT_PARAMS_SORT_KEY_H
#include "params/begin.h"

// Words of 64 bits, of which a key takes its lower ones.
struct KeyOrder {
    unsigned long long if_negative;  // bits to invert where the top bit is set,
    unsigned long long if_positive;  // the bits that are flipped where it is not
    unsigned long long magnitude;    // mask of what is compared with `largest`:
    unsigned long long largest;      // above it, one is as great as the other
    unsigned long long reverse;      // all ones: descending
};

#include "params/end.h"
#endif
