// Parameters of rope.cu.
#ifndef CYRT_PARAMS_ROPE_H
#define CYRT_PARAMS_ROPE_H
#include "params/space.h"
#include "params/begin.h"

enum {
    ROPE_HEADS = 4,        // heads that a thread rotates by the same angles
    ROPE_TRADITIONAL = 1,  // flags: neighbouring features are a pair,
    ROPE_WIDE_FREQS = 2    // freqs are double; otherwise float
};

// x is (batch, heads, positions, features), its features contiguous. Strides are in elements.
struct CYRT_PARAMETERS Rope {
    CYRT_POINTER(const void) input;
    CYRT_POINTER(void) out;
    CYRT_POINTER(const long long) offsets;  // the first position of each batch; or NULL
    CYRT_POINTER(const void) freqs;         // the radians' divisor of each pair; or NULL
    long long offsets_step, freqs_step;
    long long in_batch, in_head, in_position;
    long long out_batch, out_head, out_position;
    long long first;   // added to every position
    double turns;      // full turns of the first pair from one position to the next
    double log2_step;  // log2 of the ratio of a pair's turns to those of the pair before
    struct Divider chunks, positions, groups;           // chunks of features, groups of heads
    unsigned int heads, pairs, features, flags, count;  // count: of threads
};

#include "params/end.h"
#endif
