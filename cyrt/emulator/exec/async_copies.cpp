#include "exec/async_copies.hpp"

#include <cstring>

#include "exec/addressing.hpp"
#include "exec/hazards.hpp"

namespace cyrt::emu {

namespace {

template <int bytes>
void load_partly(Warp& warp, const Inst& inst) {
    if (warp.active == 0) return;
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    const auto* sizes = cells<uint32_t>(warp, inst.s[1]);
    std::byte* const to = warp.slots + inst.d[0];
    const uint32_t active = warp.active;
    uint32_t whole = 0;
    for_lanes(active, [&](int lane) {
        std::memset(to + lane * bytes, 0, bytes);
        if (sizes[lane] >= bytes) whole |= 1u << lane;
    });

    HostAddresses from;
    if (whole) {
        set_active(warp, whole);
        locate<AddressKind::device>(warp, inst, op, Access::read, from);
        for_lanes(whole, [&](int lane) {
            std::memcpy(to + lane * bytes, reinterpret_cast<const void*>(from.lane[lane]), bytes);
        });
    }
    MemoryOp single = op;  // bytes after the requested ones are not accessed
    single.size = 1;
    for (uint32_t k = 0; k < bytes; ++k, ++single.offset) {
        uint32_t some = 0;
        for_lanes(active & ~whole, [&](int lane) {
            if (k < sizes[lane]) some |= 1u << lane;
        });
        if (!some) break;
        set_active(warp, some);
        locate<AddressKind::device>(warp, inst, single, Access::read, from);
        for_lanes(some, [&](int lane) {
            std::memcpy(to + lane * bytes + k, reinterpret_cast<const void*>(from.lane[lane]), 1);
        });
    }
    set_active(warp, active);
}

}  // namespace

void commit_copies(Warp& warp, const Inst&) {
    if (Hazards* hazards = warp.context->hazards)
        hazards->commit_copies(warp.context->warp, warp.active);
}

void wait_for_copies(Warp& warp, const Inst& inst) {
    if (Hazards* hazards = warp.context->hazards)
        hazards->wait_for_copies(warp.context->warp, warp.active, inst.extra);
}

Handler partial_load(int bytes) {
    return bytes == 4 ? load_partly<4> : bytes == 8 ? load_partly<8> : load_partly<16>;
}

}  // namespace cyrt::emu
