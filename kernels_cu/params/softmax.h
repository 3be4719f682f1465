// Parameters of softmax.cu.
#ifndef CYRT_PARAMS_SOFTMAX_H
#define CYRT_PARAMS_SOFTMAX_H
#include "params/row.h"
#include "params/space.h"
#include "params/begin.h"

enum {
    SOFTMAX_WIDE_TARGETS = 2,  // flag: targets are int64; otherwise int32
    SOFTMAX_TRAP = 4,          // flag: a target out of range traps
    SOFTMAX_STAGES = 2         // rows under way while a block works on one
};

// Steps are in elements.
struct CYRT_PARAMETERS Softmax {
    CYRT_POINTER(const void) x;                 // or the softmax, of its gradient
    CYRT_POINTER(const void) gradient;          // the result's: rows, or a number for each row
    CYRT_POINTER(const void) targets;           // a column of each row
    CYRT_POINTER(void) out;                     // rows, or losses
    CYRT_POINTER(void) states;                  // states of the parts of rows
    long long rows, n;                          // n elements a row
    long long x_step, gradient_step, out_step;  // from row to row
    long long part;                             // elements of a part of a row
    long long ignored;                          // the target whose loss and gradient are 0
    struct Divider parts;                       // the parts of a row
    unsigned int flags;
};

#include "params/end.h"
#endif
