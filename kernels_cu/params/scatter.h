// Parameters of scatter.cu.
#ifndef CYRT_PARAMS_SCATTER_H
#define CYRT_PARAMS_SCATTER_H
#include "params/begin.h"

enum {
    SCATTER_BLOCK = 256,  // threads
    SCATTER_ITEMS = 7,    // items of a thread; odd, so that banks do not conflict
    SCATTER_TILE = SCATTER_BLOCK * SCATTER_ITEMS,  // values of a block
    SCATTER_PARTIAL = 16,                          // the most bytes of a partial result
    SCATTER_COLUMNS = 128,  // rows: threads of a block, each of which has a column
    SCATTER_ROWS = 32       // rows of a block
};

struct CYRT_PARAMETERS Scatter {
    CYRT_POINTER(const void) keys;
    CYRT_POINTER(const long long) order;  // the indices that sort the keys; 0: they are sorted
    CYRT_POINTER(const void) values;
    CYRT_POINTER(void) out;
    CYRT_POINTER(unsigned long long) ends;  // keys of the tiles' first and last runs; 0: one tile
    CYRT_POINTER(void) partials;            // the runs' results
    long long n;                            // values
    long long step;                         // 0: one value for all keys; else 1
    long long length;                       // elements of a row: a key is the offset of the first
    unsigned int chunks;                    // blocks for the columns of a row
    unsigned int wide;                      // whether the keys of rows are uint64
};

#include "params/end.h"
#endif
