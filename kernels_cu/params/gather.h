// Parameters of gather.cu, for one array of indices and for several.
#ifndef CYRT_PARAMS_GATHER_H
#define CYRT_PARAMS_GATHER_H
#include "params/space.h"
#include "params/begin.h"

enum {
    MAX_INDICES = 6,   // arrays of indices
    GATHER_VALUE = 1,  // flag: `here` is one word, passed by value
    GATHER_TRAP = 2    // flag: an index out of range traps
};

struct Index {
    CYRT_POINTER(const void) indices;
    long long size;    // the size of the dimension that it indexes
    long long stride;  // the stride of that dimension, in words
};

// Counts and strides are in words. OPERANDS: N and two.
#define CYRT_GATHER_PARAMETERS(N, OPERANDS)                                     \
    struct CYRT_PARAMETERS Gather##N {                                          \
        struct Source here;                                                     \
        CYRT_POINTER(void) there;                                               \
        struct Index index[N];                                                  \
        long long inner_strides[OPERANDS]; /* of here, there and the indices */ \
        struct Outer##OPERANDS outer;                                           \
        struct Divider inner;                                                   \
        unsigned int num_outer, num_indices, flags;                             \
        unsigned int kinds; /* of the indices, 4 bits each */                   \
        unsigned int count;                                                     \
    };
CYRT_GATHER_PARAMETERS(1, 3)
CYRT_GATHER_PARAMETERS(6, 8)
#undef CYRT_GATHER_PARAMETERS

#include "params/end.h"
#endif
