// Parameters of sort.cu.
#ifndef CYRT_PARAMS_SORT_H
#define CYRT_PARAMS_SORT_H
#include "params/sort_key.h"
#include "params/begin.h"

enum {
    SORT_BLOCK = 512,  // threads
    SORT_DIGITS = 256  // values of a digit
};

struct CYRT_PARAMETERS Sort {
    CYRT_POINTER(const void) input;
    CYRT_POINTER(void) out;  // sorted elements; the last pass of an argsort writes none
    CYRT_POINTER(const unsigned int) origins;  // sweeps of an argsort: where elements come from;
                                               // 0: from here
    CYRT_POINTER(void) to;                     // indices: 32 bits, 64 of the last pass
    long long n;                               // elements of a row
    unsigned int rows, tiles;                  // tiles of a row
    unsigned int digit, last;                  // the digit of a sweep; a flag
    CYRT_POINTER(unsigned long long) totals;   // by row, pass and digit; 0 at first
    CYRT_POINTER(unsigned long long) counts;   // by row, tile and digit: a state and a number
    CYRT_POINTER(unsigned int) turns;          // by pass; 0 at first
    struct KeyOrder order;
};

#include "params/end.h"
#endif
