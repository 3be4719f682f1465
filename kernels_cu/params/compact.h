// Parameters of compact.cu.
#ifndef CYRT_PARAMS_COMPACT_H
#define CYRT_PARAMS_COMPACT_H
#include "params/begin.h"

enum {
    COMPACT_BLOCK = 256,  // threads
    COMPACT_TILE = 8192   // elements of the mask: two vectors of 16 a thread
};

struct CYRT_PARAMETERS Compact {
    CYRT_POINTER(const void) mask;       // bytes; any but 0 is true
    CYRT_POINTER(const void) input;      // the elements to choose from
    CYRT_POINTER(void) out;              // or the positions, or the counts of the tiles
    CYRT_POINTER(const long long) sums;  // true ones before each tile
    long long n;
    long long vector;  // flag: the mask is aligned to vectors
};

#include "params/end.h"
#endif
