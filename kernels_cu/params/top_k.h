// Parameters of top_k.cu.
#ifndef CYRT_PARAMS_TOP_K_H
#define CYRT_PARAMS_TOP_K_H
#include "params/sort_key.h"
#include "params/begin.h"

enum {
    TOP_K_BLOCK = 256,  // threads, at most
    TOP_K_ITEMS = 16,   // elements of a thread
    TOP_K_MOST = 128    // elements of a row that are selected, at most
};

struct CYRT_PARAMETERS TopK {
    CYRT_POINTER(const void) input;            // rows of n elements
    CYRT_POINTER(const unsigned int) origins;  // their indices in the whole row; 0: their own
    CYRT_POINTER(void) out;                    // k elements of each tile
    CYRT_POINTER(void) to;                     // the indices of the results in the whole row
    long long n, step;                         // from row to row
    unsigned int k, tiles;                     // tiles of a row: a block each
    unsigned int last;      // flag: rows are of one tile, and indices have 64 bits, else 32
    struct KeyOrder order;  // descending
};

#include "params/end.h"
#endif
