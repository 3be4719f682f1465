// Calls and returns.
//
// INVARIANT: the cells of a function's slots belong to each lane's innermost activation of it. A
// call of a function that can recur saves all of them; the return restores those of the returning
// lanes. So lanes at different depths run together.
#include <algorithm>
#include <cstring>

#include "exec/block.hpp"

namespace cyrt::emu {

void Block::call(WarpState& warp, uint32_t function, uint32_t mask, uint32_t return_pc) {
    const FunctionCode& callee = program_->functions[function];
    Warp& lanes = warp.warp;
    auto* stack = cells<uint64_t>(lanes, program_->stack_slot);
    for_lanes(mask, [&](int lane) {
        if (stack[lane] + callee.frame.bytes > warp.context.stack_limit)
            throw FaultSignal{FaultKind::stack_overflow, lane,
                              "call of " + callee.name + ": the thread's stack of " +
                                  std::to_string(warp.context.stack_bytes) + " bytes is full"};
    });

    Frame* frame = worker_->take_frame();
    frame->return_pc = return_pc;
    frame->function = function;
    frame->lanes = count_lanes(mask);
    std::copy(warp.frames.begin(), warp.frames.end(), frame->parent);
    if (callee.recursive)
        frame->saved.assign(lanes.slots + callee.first_slot, lanes.slots + callee.end_slot);

    auto* base = cells<uint64_t>(lanes, callee.base_slot);
    for_lanes(mask, [&](int lane) {
        warp.frames[size_t(lane)] = frame;
        base[lane] = stack[lane];
        stack[lane] += callee.frame.bytes;
    });
    make_ready(warp, callee.entry, mask);
}

void Block::call_by_pointer(WarpState& warp, const Inst& inst) {
    const auto* address = cells<uint64_t>(warp.warp, inst.s[0]);
    for (uint32_t rest = warp.warp.active; rest;) {
        const int lane = first_lane(rest);
        const uint64_t target = address[lane];
        const auto callee = program_->by_address.find(target);
        if (callee == program_->by_address.end())
            throw FaultSignal{FaultKind::invalid_pc, lane,
                              "call through a pointer to no function: " + std::to_string(target)};
        uint32_t mask = 0;
        for_lanes(rest, [&](int other) {
            if (address[other] == target) mask |= 1u << other;
        });
        rest &= ~mask;
        call(warp, callee->second, mask, pc_of(&inst) + 1);
    }
}

void Block::return_lanes(WarpState& warp, uint32_t mask) {
    Warp& lanes = warp.warp;
    auto* stack = cells<uint64_t>(lanes, program_->stack_slot);
    while (mask) {
        Frame* frame = warp.frames[size_t(first_lane(mask))];
        const FunctionCode& callee = program_->functions[frame->function];
        uint32_t together = 0;
        for_lanes(mask, [&](int lane) {
            if (warp.frames[size_t(lane)] == frame) together |= 1u << lane;
        });
        mask &= ~together;

        const auto* base = cells<uint64_t>(lanes, callee.base_slot);
        for_lanes(together, [&](int lane) {
            stack[lane] = base[lane];
            warp.frames[size_t(lane)] = frame->parent[lane];
        });
        if (callee.recursive) restore(lanes, callee, *frame, together);
        make_ready(warp, frame->return_pc, together);
        frame->lanes -= count_lanes(together);
        if (frame->lanes == 0) worker_->give_frame(frame);
    }
}

// Lanes that end inside functions do not return from them.
void Block::leave_frames(WarpState& warp, uint32_t mask) {
    for_lanes(mask, [&](int lane) {
        for (Frame* frame = warp.frames[size_t(lane)]; frame;) {
            Frame* parent = frame->parent[lane];
            if (--frame->lanes == 0) worker_->give_frame(frame);
            frame = parent;
        }
        warp.frames[size_t(lane)] = nullptr;
    });
}

void Block::restore(Warp& lanes, const FunctionCode& callee, const Frame& frame,
                    uint32_t mask) const {
    if (mask == kFullMask) {
        std::memcpy(lanes.slots + callee.first_slot, frame.saved.data(), frame.saved.size());
        return;
    }
    uint32_t at = callee.first_slot;
    for (uint8_t cell : callee.cells) {
        const std::byte* from = frame.saved.data() + (at - callee.first_slot);
        for_lanes(mask, [&](int lane) {
            std::memcpy(lanes.slots + at + uint32_t(lane) * cell, from + uint32_t(lane) * cell,
                        cell);
        });
        at += cell * kWarpSize;
    }
}

}  // namespace cyrt::emu
