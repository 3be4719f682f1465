// Small tools over the 32 lanes of a warp, local to the file that includes them: some are compiled
// for two instruction sets (exec/handlers_table.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/inst.hpp"

namespace cyrt::emu {
namespace {

template <typename Cell>
inline Cell* cells(const Warp& warp, uint32_t slot) {
    return reinterpret_cast<Cell*>(warp.slots + slot);
}

inline int first_lane(uint32_t mask) { return __builtin_ctz(mask); }
inline int count_lanes(uint32_t mask) { return __builtin_popcount(mask); }

alignas(64) constexpr uint32_t kLaneBit[kWarpSize] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

// The lanes of all 32 whose predicate is true. Written to be vectorised: no variable shift.
inline uint32_t lanes_that_hold(const Warp& warp, uint32_t slot) {
    const auto* predicate = cells<const uint32_t>(warp, slot);
    uint32_t mask = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) mask |= predicate[lane] & kLaneBit[lane];
    return mask;
}

// INVARIANT: the only place that changes `active`, so that `lane_on` always agrees with it.
inline void set_active(Warp& warp, uint32_t mask) {
    if (warp.active == mask) return;
    warp.active = mask;
    for (int lane = 0; lane < kWarpSize; ++lane)
        warp.lane_on[lane] = (mask & kLaneBit[lane]) ? 0xffffffffu : 0;
}

template <typename Each>
inline void for_lanes(uint32_t mask, Each each) {
    for (; mask; mask &= mask - 1) each(first_lane(mask));
}

}  // namespace
}  // namespace cyrt::emu
