// Parameters of reduce.cu.
#ifndef CYRT_PARAMS_REDUCE_H
#define CYRT_PARAMS_REDUCE_H
#include "params/space.h"
#include "params/begin.h"

enum {
    ROW_THREADS = 512,  // the most threads of a block
    COLUMN_THREADS = 256,
    // A thread has at most REDUCE_COLUMNS columns if a state has more than REDUCE_SHORT bytes;
    // otherwise as many as a vector of the input has elements.
    REDUCE_COLUMNS = 4,
    REDUCE_SHORT = 4,
    REDUCE_VECTORS = 1,      // flag: the input is read in vectors
    REDUCE_VECTORS_OUT = 2,  // flag: the output may be written in vectors
    REDUCE_ALONE = 4,        // flag: a thread has its columns alone, of one row of units
    REDUCE_ROOT = 8          // flag: the square root is taken at the end
};

// The reduced dimensions are rows of units side by side, and a grid's part is some rows of some
// units each. A unit is an element, or a vector of them.
struct CYRT_PARAMETERS Reduce {
    CYRT_POINTER(const void) input;
    CYRT_POINTER(void) out;     // states where there are several parts
    long long kept_inner;       // columns: the innermost kept dimension, which `kept` is
    long long kept_strides[2];  // without; strides of the input and the output
    long long units;            // along the innermost reduced dimension: strides of the
    long long row_strides[2];   // input, and of logical indices
    long long tail;             // elements after the units
    long long first_index;      // logical index where the input begins
    long long rows, part_rows, part_units;
    long long outputs;
    double divisor;
    struct Outer2 kept;     // strides of the input and the output
    struct Outer2 reduced;  // strides of the input and of logical indices
    unsigned int num_kept, num_reduced;
    unsigned int lanes;  // threads along a row; a power of two
    unsigned int flags;
    struct Divider parts;       // blocks that share results,
    struct Divider unit_parts;  // the parts of the same rows
    struct Divider chunks;      // columns: blocks along the innermost kept dimension
};

#include "params/end.h"
#endif
