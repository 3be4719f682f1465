// Parameters of elementwise.cu, for one, two and three inputs.
#ifndef CYRT_PARAMS_ELEMENTWISE_H
#define CYRT_PARAMS_ELEMENTWISE_H
#include "params/space.h"
#include "params/begin.h"

// Flags. The second and the third bit are those of the first input; two bits more for each input.
enum {
    ELEMENTWISE_VECTOR = 1,     // every operand is aligned: vectors may be used
    ELEMENTWISE_BROADCAST = 2,  // the input is one element in memory for all
    ELEMENTWISE_VALUE = 4       // the input is the number itself
};

// What depends on the number of inputs comes last: the host fills one struct for any of them.
#define CYRT_ELEMENTWISE_PARAMETERS(N, OPERANDS)                                   \
    /* Contiguous operands, or one element for all. */                             \
    struct CYRT_PARAMETERS Dense##N {                                              \
        CYRT_POINTER(void) out;                                                    \
        long long n;                                                               \
        unsigned int flags, steps; /* how often a thread takes its items */        \
        struct Source inputs[N];                                                   \
    };                                                                             \
    /* Contiguous and aligned operands of whole vectors. */                        \
    struct CYRT_PARAMETERS Aligned##N {                                            \
        CYRT_POINTER(void) out;                                                    \
        unsigned int vectors, flags;                                               \
        unsigned long long inputs[N]; /* addresses, or numbers of up to 8 bytes */ \
    };                                                                             \
    /* Any strides; the output's come first. */                                    \
    struct CYRT_PARAMETERS Strided##N {                                            \
        CYRT_POINTER(void) out;                                                    \
        unsigned int num_outer, rows, inner, flags;                                \
        struct Divider chunks; /* blocks that share a row */                       \
        struct Source inputs[N];                                                   \
        long long inner_strides[OPERANDS];                                         \
        struct Outer##OPERANDS outer;                                              \
    };
CYRT_ELEMENTWISE_PARAMETERS(1, 2)
CYRT_ELEMENTWISE_PARAMETERS(2, 3)
CYRT_ELEMENTWISE_PARAMETERS(3, 4)
#undef CYRT_ELEMENTWISE_PARAMETERS

#include "params/end.h"
#endif
