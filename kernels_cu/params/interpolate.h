// Parameters of interpolate.cu.
#ifndef CYRT_PARAMS_INTERPOLATE_H
#define CYRT_PARAMS_INTERPOLATE_H
#include "params/space.h"
#include "params/begin.h"

enum { INTERPOLATE_AXES = 3 };

// A spatial axis: the input's size, and the output's.
struct InterpolateAxis {
    int input, output;
    double scale;  // positions of the input from output to output
};

// Images whose channels are last, contiguous. The divider of an axis is by the size that a thread's
// position is in: the output's, or of a gradient the input's.
struct CYRT_PARAMETERS Interpolate {
    CYRT_POINTER(const void) source;
    CYRT_POINTER(void) out;
    struct InterpolateAxis axis[INTERPOLATE_AXES];
    struct Divider sizes[INTERPOLATE_AXES];
    struct Divider chunks;  // blocks that share a position
    unsigned int positions, channels;
    unsigned int corners;  // whether the outermost positions of input and output are the same
    unsigned int halfway;  // nearest: whether an output is compared by its middle
};

#include "params/end.h"
#endif
