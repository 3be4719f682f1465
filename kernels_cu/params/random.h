// Parameters of random.cu.
#ifndef CYRT_PARAMS_RANDOM_H
#define CYRT_PARAMS_RANDOM_H
#include "params/begin.h"

enum { RANDOM_WORDS = 5 };  // the most words that a distribution takes

struct CYRT_PARAMETERS Random {
    unsigned long long key;
    CYRT_POINTER(void) out;
    long long n;
    unsigned long long word[RANDOM_WORDS];  // the distribution's numbers: integers or doubles
    unsigned int steps;                     // how often a thread takes its items
};

#include "params/end.h"
#endif
