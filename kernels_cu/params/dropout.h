// Parameters of dropout.cu.
#ifndef CYRT_PARAMS_DROPOUT_H
#define CYRT_PARAMS_DROPOUT_H
#include "params/begin.h"

// n contiguous elements; the output is aligned to 16 bytes.
struct CYRT_PARAMETERS Dropout {
    CYRT_POINTER(const void) x;
    CYRT_POINTER(void) out;
    unsigned long long key;
    long long n;
    unsigned long long threshold;  // elements whose 32 random bits are below it stay
    double scale;                  // the factor of elements that stay
    unsigned int vectors;          // whether x is aligned, too
};

#include "params/end.h"
#endif
