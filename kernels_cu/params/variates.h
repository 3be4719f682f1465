// Parameters of variates.cu.
#ifndef CYRT_PARAMS_VARIATES_H
#define CYRT_PARAMS_VARIATES_H
#include "params/begin.h"

enum { VARIATES_PARAMETERS = 2 };  // of a distribution, at most

struct CYRT_PARAMETERS Variates {
    unsigned long long key;
    CYRT_POINTER(void) out;
    CYRT_POINTER(const double) array[VARIATES_PARAMETERS];  // of each element; 0: the number
    double number[VARIATES_PARAMETERS];
    long long n;
};

#include "params/end.h"
#endif
