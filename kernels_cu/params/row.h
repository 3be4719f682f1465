// How rows are divided among threads and blocks, where a kernel keeps them in registers.
#ifndef CYRT_PARAMS_ROW_H
#define CYRT_PARAMS_ROW_H
#include "params/begin.h"

enum {
    ROW_BLOCK = 1024,  // the most threads of a block that holds rows
    PART_BLOCK = 256,  // threads of a block that works on a part of a long row
    STREAM_BLOCK =
        512,          // threads of a multiprocessor, and at most of a block, to which rows stream
    MAX_PARTS = 256,  // the most parts of a row: a block combines their states, a thread each
    ROW_VECTORS = 1   // flag: the rows of all arrays are aligned to vectors
};

// The vectors of ITEMS elements that a thread holds: 32 elements of types of up to 4 bytes. A kernel
// that holds two rows has half as many of each.
#define ROW_CHUNKS(ITEMS) ((ITEMS) >= 8 ? 4 : 8)

#include "params/end.h"
#endif
