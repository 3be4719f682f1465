// Sliding windows: which element of the source a tap of a window is.
#pragma once

#include "params/window.h"
#include "strided.cuh"

namespace cyrt {

// Where the window of an output begins: positions and the element's offset; of spaced elements, the
// offset of the batch alone. Outputs are numbered with the batch slowest.
struct Origin {
    int64 offset;
    int at[WINDOW_AXES];
};

// No tap of this one is in the source: taps are less than 2^28 away.
__device__ inline Origin nowhere() { return {0, {-(1 << 30), 0, 0}}; }

__device__ inline Origin origin_of(const Windows& windows, uint32 output) {
    Origin origin = {};
#pragma unroll
    for (int d = WINDOW_AXES - 1; d >= 0; --d) {
        if (d >= windows.num_axes) continue;
        const Axis& axis = windows.axis[d];
        uint32 next = divide(output, axis.outputs);
        origin.at[d] = int(output - next * axis.outputs.size) * axis.stride + axis.origin;
        if (!windows.spaced) origin.offset += origin.at[d] * axis.source_step;
        output = next;
    }
    origin.offset += output * windows.batch_step;
    return origin;
}

// What a tap adds to them.
struct Tap {
    int64 offset;
    int at[WINDOW_AXES];
};

__device__ inline Tap tap_of(const Windows& windows, uint32 tap) {
    Tap found = {};
#pragma unroll
    for (int d = WINDOW_AXES - 1; d >= 0; --d) {
        if (d >= windows.num_axes) continue;
        const Axis& axis = windows.axis[d];
        uint32 next = divide(tap, axis.taps);
        found.at[d] = int(tap - next * axis.taps.size) * axis.step;
        found.offset += found.at[d] * axis.source_step;
        tap = next;
    }
    return found;
}

// Sets the offset of an element of the source; returns false if there is none.
__device__ inline bool find(const Windows& windows, const Origin& origin, const Tap& tap,
                            int64& offset) {
    bool found = true;
    offset = origin.offset;
    if (!windows.spaced) {
        offset += tap.offset;
#pragma unroll
        for (int d = 0; d < WINDOW_AXES; ++d) {
            found = found && uint32(origin.at[d] + tap.at[d]) < windows.axis[d].limit;
        }
        return found;
    }
#pragma unroll
    for (int d = 0; d < WINDOW_AXES; ++d) {
        const Axis& axis = windows.axis[d];
        uint32 position = origin.at[d] + tap.at[d];
        uint32 index = divide(position & 0x7fffffff, axis.spacing);
        found = found && position < axis.limit && index * axis.spacing.size == position;
        offset += index * axis.source_step;
    }
    return found;
}

}  // namespace cyrt
