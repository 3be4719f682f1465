// The order of elements, given their bits: one transformation for every real type.
#pragma once

#include "params/sort_key.h"
#include "types.cuh"

namespace cyrt {

// A NaN counts as the greatest, -0.0 as 0.0, and any `boolean` but 0 as true.
template <class U> struct SortKey {
    U if_negative, if_positive, magnitude, largest, reverse;

    __device__ explicit SortKey(const KeyOrder& order)
        : if_negative(order.if_negative), if_positive(order.if_positive),
          magnitude(order.magnitude), largest(order.largest), reverse(order.reverse) {}

    __device__ bool above_all(U bits) const { return U(bits & magnitude) > largest; }

    // Elements compare as these unsigned numbers do.
    __device__ U of(U bits) const {
        U size = bits & magnitude;
        U key = bits ^ (bits >> (8 * sizeof(U) - 1) ? if_negative : if_positive);
        if (size == 0) key = if_positive;
        if (size > largest) key = U(~U(0));
        return key ^ reverse;
    }
};

}  // namespace cyrt
