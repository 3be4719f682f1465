// Parameters of search.cu.
#ifndef CYRT_PARAMS_SEARCH_H
#define CYRT_PARAMS_SEARCH_H
#include "params/sort_key.h"
#include "params/begin.h"

struct CYRT_PARAMETERS Search {
    CYRT_POINTER(const void) sorted;
    CYRT_POINTER(const long long) sorter;  // the elements' indices in order; 0: 0, 1, ...
    CYRT_POINTER(const void) values;
    CYRT_POINTER(void) out;
    long long n, count;   // elements; values
    unsigned int right;   // flag
    unsigned int invert;  // flag: whether a value is not there
    struct KeyOrder order;
};

#include "params/end.h"
#endif
