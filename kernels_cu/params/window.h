// Sliding windows over a source, in up to three spatial dimensions.
#ifndef CYRT_PARAMS_WINDOW_H
#define CYRT_PARAMS_WINDOW_H
#include "params/space.h"
#include "params/begin.h"

enum { WINDOW_AXES = 3 };

// Tap t of the window of output o is at the position o * stride + t * step + origin. The source's
// elements are at multiples of the spacing; at all other positions there are zeros.
struct Axis {
    struct Divider outputs, taps, spacing;
    int stride, step, origin;
    unsigned int limit;     // the position behind the last element
    long long source_step;  // from element to element
};

struct Windows {
    struct Axis axis[WINDOW_AXES];
    long long batch_step;   // the step from one image of the source to the next
    unsigned int num_axes;  // further axes have one output and one tap
    unsigned int spaced;    // whether a spacing is more than 1
};

#include "params/end.h"
#endif
