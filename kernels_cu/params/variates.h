// Parameters of variates.cu.
#ifndef CYRT_PARAMS_VARIATES_H
#define CYRT_PARAMS_VARIATES_H
#include "params/begin.h"

enum { VARIATES_PARAMETERS = 2 };  // the most of a distribution

struct CYRT_PARAMETERS Variates {
    unsigned long long key;
    CYRT_POINTER(void) out;
    CYRT_POINTER(const double) array[VARIATES_PARAMETERS];  // numbers of elements; 0: one for all
    double number[VARIATES_PARAMETERS];
    long long n;
};

#include "params/end.h"
#endif
