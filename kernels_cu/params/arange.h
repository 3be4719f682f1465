// Parameters of arange.cu.
#ifndef CYRT_PARAMS_ARANGE_H
#define CYRT_PARAMS_ARANGE_H
#include "params/space.h"
#include "params/begin.h"

struct CYRT_PARAMETERS Arange {
    struct Source start, step;  // numbers of the widest type of the output's kind
    CYRT_POINTER(void) out;
    long long n;
};

#include "params/end.h"
#endif
