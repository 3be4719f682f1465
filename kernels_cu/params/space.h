// Index spaces of many dimensions, and inputs, as kernels take them by value.
#ifndef CYRT_PARAMS_SPACE_H
#define CYRT_PARAMS_SPACE_H
#include "params/begin.h"

enum { MAX_OUTER = 8 };  // dimensions of a space besides the innermost

// Division by a number known on the host, of numerators below 2^31: the quotient is
// (high half of n * multiplier + n) >> shift.
struct Divider {
    unsigned int size, multiplier, shift;
};

// The dimensions besides the innermost, of N operands: the last one varies slowest. Strides are in
// elements.
#define CYRT_OUTER(N)                    \
    struct Outer##N {                    \
        struct Divider dims[MAX_OUTER];  \
        long long strides[MAX_OUTER][N]; \
    };
CYRT_OUTER(2)
CYRT_OUTER(3)
CYRT_OUTER(4)
CYRT_OUTER(8)
#undef CYRT_OUTER

// An input: its address, or the number itself in its bytes.
struct CYRT_PARAMETERS Source {
    unsigned long long word[2];
};

#include "params/end.h"
#endif
