// Parameters of scan.cu.
#ifndef CYRT_PARAMS_SCAN_H
#define CYRT_PARAMS_SCAN_H
#include "params/begin.h"

enum {
    SCAN_BLOCK = 256,          // threads
    SCAN_VECTORS = 8,          // vectors of a thread
    SCAN_RESIDENT_BLOCKS = 4,  // blocks of a multiprocessor, which take turns at tiles
    SCAN_VECTOR_IN = 1,        // flags: rows of the input, of the output are aligned
    SCAN_VECTOR_OUT = 2        // to vectors
};

struct CYRT_PARAMETERS Scan {
    CYRT_POINTER(const void) input;
    CYRT_POINTER(void) out;
    long long n;               // elements of a row
    long long out_row;         // elements of an output's row: n, or n + 1 with the initial one
    unsigned int rows, tiles;  // tiles of a row
    unsigned int initial;      // 1: the initial one is written
    unsigned int vector;       // flags
    CYRT_POINTER(unsigned int) next;  // turns of tiles, or flags of columns; 0 at first
    CYRT_POINTER(void) sums;  // sums of tiles, groups and runs; those of rows are 0 at first
    long long inner;          // columns
    unsigned int strips;      // strips of columns, each as wide as a warp's vectors
};

#include "params/end.h"
#endif
