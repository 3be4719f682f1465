// Conversion of the addresses that the lanes of a warp access to host addresses, with checks.
//
// INVARIANTS
// - The functions here are local to the file that includes this: some files are compiled for two
//   instruction sets (exec/handlers_table.hpp).
// - An instruction that writes reaches read-only memory only through locate_each(), which faults:
//   its remembered regions are writable, and parameters are never remembered for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/context.hpp"
#include "exec/inst.hpp"
#include "exec/lanes.hpp"
#include "exec/memory_ops.hpp"

namespace cyrt::emu {

// The meaning of an address. `window`: an offset into shared, local or param memory
// (MemoryOp::space).
enum class AddressKind : uint8_t { window, device, generic };

// Host addresses of the bytes that lanes access. Those of inactive lanes are readable too.
struct HostAddresses {
    alignas(64) uint64_t lane[kWarpSize];
};

// A range of addresses and its host memory; each lane's copy is `lane_stride` after the previous
// one.
struct Stretch {
    uint64_t lo, hi;
    std::byte* host;
    uint8_t* valid;
    uint64_t lane_stride;
};

// Resolves each lane with all checks. `addresses.lane` contains the active lanes' addresses (at
// least one), and receives host addresses. Throws FaultSignal.
void locate_each(const Warp& warp, const MemoryOp& op, AddressKind kind, Access access,
                 HostAddresses& addresses);

namespace {

inline Stretch shared_stretch(const WarpContext& context, uint64_t lo) {
    return {lo, lo + context.shared_bytes, context.shared, context.shared_valid, 0};
}
inline Stretch local_stretch(const WarpContext& context, uint64_t lo) {
    return {lo, lo + context.local_bytes, context.local, nullptr, context.local_stride};
}
inline Stretch param_stretch(const WarpContext& context, uint64_t lo) {
    return {lo, lo + context.param_bytes, context.params, nullptr, 0};
}
inline Stretch window_stretch(const WarpContext& context, ptx::Space space) {
    if (space == ptx::Space::shared) return shared_stretch(context, 0);
    if (space == ptx::Space::local) return local_stretch(context, 0);
    return param_stretch(context, 0);
}

// The most likely target of a warp's generic address.
inline Stretch generic_stretch(const WarpContext& context, const Region& cached, uint64_t address,
                               Access access) {
    switch (address & kWindowMask) {
    case kSharedWindow: return shared_stretch(context, kSharedWindow);
    case kLocalWindow: return local_stretch(context, kLocalWindow);
    case kParamWindow:
        if (access == Access::read) return param_stretch(context, kParamWindow);
        return {};
    default: return {cached.lo, cached.hi, cached.host, cached.valid, 0};
    }
}

template <AddressKind kind>
inline Stretch likely_stretch(const WarpContext& context, const MemoryOp& op, uint64_t address,
                              Access access) {
    if (kind == AddressKind::window) return window_stretch(context, op.space);
    const Region& cached = context.regions[op.cache];
    if (kind == AddressKind::generic) return generic_stretch(context, cached, address, access);
    return {cached.lo, cached.hi, cached.host, cached.valid, 0};
}

// Accesses of all 32 lanes whose host addresses are `step` bytes apart: they form one range, have
// one address (0), or are one variable of local memory, of which each lane has a copy.
struct AddressRun {
    uint64_t host = 0;  // the first lane's; 0 if there is no such run
    uint64_t step = 0;
};

template <typename Cell>
inline bool steps_evenly(const Cell* addresses, Cell step) {
    // The ends exclude most warps without one.
    Cell differs = (addresses[kWarpSize - 1] - addresses[0]) ^ (step * (kWarpSize - 1));
    if (differs != 0) return false;
    for (int i = 1; i < kWarpSize; ++i) differs |= (addresses[i] - addresses[i - 1]) ^ step;
    return differs == 0;
}

// The most common accesses, found without a test of each address. A run that fails a test is left
// to locate(), which determines the reason.
template <AddressKind kind>
inline AddressRun find_run(const Warp& warp, const Inst& inst, const MemoryOp& op, Access access) {
    if (warp.active != kFullMask) return {};
    const uint64_t bytes = uint64_t(op.size) * op.count;
    uint64_t first = op.offset, step = 0;
    if (inst.s[0] != kNoSlot && op.address_cell == 8) {
        const uint64_t* from = cells<uint64_t>(warp, inst.s[0]);
        first += from[0];
        step = from[1] - from[0];
        if ((step != 0 && step != bytes) || !steps_evenly<uint64_t>(from, step)) return {};
    } else if (inst.s[0] != kNoSlot) {
        const uint32_t* from = cells<uint32_t>(warp, inst.s[0]);
        first += from[0];
        step = from[1] - from[0];
        if ((step != 0 && step != bytes) || !steps_evenly<uint32_t>(from, uint32_t(step)))
            return {};
    }
    if (kind == AddressKind::window) first &= 0xffffffffull;
    const Stretch stretch = likely_stretch<kind>(*warp.context, op, first, access);
    const uint64_t length = step * (kWarpSize - 1) + bytes;
    if (stretch.valid || (first & (bytes - 1)) != 0 || first < stretch.lo || first > stretch.hi ||
        stretch.hi - first < length)
        return {};
    if (kind != AddressKind::device && stretch.lane_stride != 0) {
        if (step != 0) return {};
        step = stretch.lane_stride;
    }
    return {reinterpret_cast<uint64_t>(stretch.host) + (first - stretch.lo), step};
}

// The lanes' addresses.
template <AddressKind kind>
inline void collect_addresses(const Warp& warp, const Inst& inst, const MemoryOp& op,
                              HostAddresses& out) {
    const uint64_t keep = kind == AddressKind::window ? 0xffffffffull : ~0ull;
    const uint64_t offset = op.offset;
    if (inst.s[0] == kNoSlot) {
        for (uint64_t& address : out.lane) address = offset & keep;
    } else if (op.address_cell == 8) {
        const uint64_t* from = cells<uint64_t>(warp, inst.s[0]);
        for (int i = 0; i < kWarpSize; ++i) out.lane[i] = (from[i] + offset) & keep;
    } else {
        const uint32_t* from = cells<uint32_t>(warp, inst.s[0]);
        for (int i = 0; i < kWarpSize; ++i) out.lane[i] = (from[i] + offset) & keep;
    }
}

// Offsets of all lanes' accesses from one host address. Those of inactive lanes are readable too.
struct SharedAddresses {
    std::byte* host;
    alignas(64) uint32_t at[kWarpSize];
};

// The fast path into shared memory: 32 bits are sufficient. False if a test fails; locate() then
// takes over.
inline bool locate_shared(const Warp& warp, const Inst& inst, const MemoryOp& op,
                          SharedAddresses& out) {
    const WarpContext& context = *warp.context;
    const uint32_t bytes = uint32_t(op.size) * op.count;
    if (op.space != ptx::Space::shared || op.address_cell != 4 || inst.s[0] == kNoSlot ||
        context.shared_valid || context.shared_bytes < bytes)
        return false;
    const uint32_t last = context.shared_bytes - bytes;  // less than 2^31
    const uint32_t offset = uint32_t(op.offset);
    const uint32_t* from = cells<uint32_t>(warp, inst.s[0]);
    uint32_t outside = 0, all = 0;
    for (int i = 0; i < kWarpSize; ++i) {
        const uint32_t at = (from[i] + offset) & warp.lane_on[i];
        outside |= at | (last - at);
        all |= at;
        out.at[i] = at;
    }
    out.host = context.shared;
    return outside >> 31 == 0 && (all & (bytes - 1)) == 0;
}

// Converts addresses, which are multiples of `bytes`, if each is in one of the instruction's last two
// regions: lanes that alternate between two arrays are as frequent as those that stay in one. False:
// `out` is as before.
inline bool resolve_in_two(const Warp& warp, const MemoryOp& op, uint64_t bytes,
                           HostAddresses& out) {
    const Region& a = warp.context->regions[op.cache];
    const Region& b = warp.context->earlier[op.cache];
    if (a.hi - a.lo < bytes || b.hi - b.lo < bytes || a.valid || b.valid) return false;
    const uint64_t last_a = a.hi - a.lo - bytes, last_b = b.hi - b.lo - bytes;
    const uint64_t host_a = reinterpret_cast<uint64_t>(a.host);
    const uint64_t host_b = reinterpret_cast<uint64_t>(b.host);
    alignas(64) uint64_t host[kWarpSize];
    uint64_t outside = 0;  // as in resolve()
    for (int i = 0; i < kWarpSize; ++i) {
        const uint64_t on = uint64_t(int64_t(int32_t(warp.lane_on[i])));
        const uint64_t at_a = (out.lane[i] - a.lo) & on, at_b = out.lane[i] - b.lo;
        const uint64_t not_a = at_a | (last_a - at_a);
        outside |= not_a & (at_b | (last_b - at_b));
        host[i] = int64_t(not_a) < 0 ? host_b + at_b : host_a + at_a;
    }
    if (outside >> 63) return false;
    for (int i = 0; i < kWarpSize; ++i) out.lane[i] = host[i];
    return true;
}

// Converts the addresses in `out` to host addresses, for the accesses of all active lanes (at least
// one).
template <AddressKind kind>
inline void resolve(const Warp& warp, const MemoryOp& op, Access access, HostAddresses& out) {
    const Stretch stretch =
        likely_stretch<kind>(*warp.context, op, out.lane[first_lane(warp.active)], access);
    const uint64_t bytes = uint64_t(op.size) * op.count;
    if (stretch.hi - stretch.lo < bytes || stretch.valid)
        return locate_each(warp, op, kind, access, out);

    // All lanes at once: the top bit of `outside` is set at the end if an address is below the
    // range or too close to its end (no range is 2^63 bytes long). An inactive lane counts as the
    // range's first bytes.
    const uint64_t last = stretch.hi - stretch.lo - bytes;
    alignas(64) uint64_t at[kWarpSize];
    uint64_t outside = 0, all = 0;
    for (int i = 0; i < kWarpSize; ++i) {
        const uint64_t on = uint64_t(int64_t(int32_t(warp.lane_on[i])));
        at[i] = (out.lane[i] - stretch.lo) & on;
        outside |= at[i] | (last - at[i]);
        all |= out.lane[i] & on;
    }
    if (outside >> 63 || (all & (bytes - 1)) != 0) {
        if (kind == AddressKind::window || (all & (bytes - 1)) != 0 ||
            !resolve_in_two(warp, op, bytes, out))
            locate_each(warp, op, kind, access, out);
        return;
    }
    const uint64_t host = reinterpret_cast<uint64_t>(stretch.host);
    for (int i = 0; i < kWarpSize; ++i) out.lane[i] = at[i] + host;
    if (kind != AddressKind::device && stretch.lane_stride != 0)
        for (int i = 0; i < kWarpSize; ++i) out.lane[i] += uint64_t(i) * stretch.lane_stride;
}

template <AddressKind kind>
inline void locate(const Warp& warp, const Inst& inst, const MemoryOp& op, Access access,
                   HostAddresses& out) {
    collect_addresses<kind>(warp, inst, op, out);
    resolve<kind>(warp, op, access, out);
}

}  // namespace
}  // namespace cyrt::emu
