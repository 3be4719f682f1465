// How rows are divided among threads and blocks, where a kernel keeps them in registers.
#ifndef CYRT_PARAMS_ROW_H
#define CYRT_PARAMS_ROW_H
#include "params/begin.h"

enum {
    ROW_BLOCK = 1024,    // threads of a block that holds rows, at most
    PART_BLOCK = 256,    // of a block that works on a part of a long row
    STREAM_BLOCK = 512,  // of one to which rows stream, and of a multiprocessor that runs such
    MAX_PARTS = 256,     // of a row: a block combines their states, a thread each
    ROW_VECTORS = 1      // flag: the rows of all arrays are aligned to vectors
};

// The vectors, of this many elements, that a thread holds: 32 elements of the types up to 4 bytes.
// A kernel that holds two rows holds half as much of each.
#define ROW_CHUNKS(ITEMS) ((ITEMS) >= 8 ? 4 : 8)

#include "params/end.h"
#endif
