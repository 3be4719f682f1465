// Parameters of transpose.cu.
#ifndef CYRT_PARAMS_TRANSPOSE_H
#define CYRT_PARAMS_TRANSPOSE_H
#include "params/space.h"
#include "params/begin.h"

enum { TRANSPOSE_ROWS = 8 };  // a block is 32 threads by so many

struct CYRT_PARAMETERS Transpose {
    struct Source input;
    CYRT_POINTER(void) out;
    long long in_stride, out_stride;  // strides of the dimension that is contiguous in the other
    struct Outer2 batch;              // the output's stride first
    struct Divider tiles_in, tiles_out;
    unsigned int size_in, size_out;  // sizes of the dimensions contiguous in the input, the output
    unsigned int num_batch;
};

#include "params/end.h"
#endif
