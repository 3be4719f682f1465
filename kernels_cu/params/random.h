// Parameters of random.cu.
#ifndef CYRT_PARAMS_RANDOM_H
#define CYRT_PARAMS_RANDOM_H
#include "params/begin.h"

enum { RANDOM_WORDS = 5 };  // that a distribution takes, at most

struct CYRT_PARAMETERS Random {
    unsigned long long key;
    CYRT_POINTER(void) out;
    long long n;
    unsigned long long word[RANDOM_WORDS];  // of the distribution: integers or doubles
    unsigned int steps;                     // how often a thread takes its items
};

#include "params/end.h"
#endif
