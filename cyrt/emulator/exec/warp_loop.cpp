// The inner loop: a warp runs, group by group, until all its groups wait or its budget is
// exhausted.
#include <algorithm>

#include "exec/block.hpp"
#include "exec/hazards.hpp"

namespace cyrt::emu {

namespace {

constexpr uint32_t kNever = 0xffffffffu;

}  // namespace

void Block::make_ready(WarpState& warp, uint32_t pc, uint32_t mask) {
    for (int i = 0; i < warp.ready_count; ++i) {
        if (warp.ready[i].pc != pc) continue;
        warp.ready[i].mask |= mask;
        return;
    }
    warp.ready[warp.ready_count++] = {pc, mask, ++warp.time};
}

// Makes a ready group the running one: the group with the lowest pc, so that groups behind can
// reach it; after an exhausted budget the least recently run one, so that no group starves.
bool Block::pick(WarpState& warp) {
    if (warp.ready_count == 0) return false;
    int best = 0;
    for (int i = 1; i < warp.ready_count; ++i) {
        const Group& a = warp.ready[i];
        const Group& b = warp.ready[best];
        if (warp.rotates ? a.since < b.since : a.pc < b.pc) best = i;
    }
    const Group group = warp.ready[best];
    warp.ready[best] = warp.ready[--warp.ready_count];

    warp.threshold = kNever;
    if (!warp.rotates)
        for (int i = 0; i < warp.ready_count; ++i)
            warp.threshold = std::min(warp.threshold, warp.ready[i].pc);
    warp.rotates = false;
    warp.pc = group.pc;
    set_active(warp.warp, group.mask);
    return true;
}

Block::Turn Block::run_warp(WarpState& warp) {
    warp.budget = kBranchBudget;
    if (!pick(warp)) return Turn::parked;
    Warp& lanes = warp.warp;
    const Control* controls = program_->controls.data();
    const Inst* inst = code_ + warp.pc;
    try {
        for (;;) {
            while (inst->run) {
                inst->run(lanes, *inst);
                ++inst;
            }
            const Control& control = controls[inst->extra];
            uint32_t next;
            uint32_t mask = lanes.active;
            switch (control.kind) {
            case ControlKind::join:
                next = pc_of(inst);
                if (next < warp.threshold) {
                    ++inst;
                    continue;
                }
                break;
            case ControlKind::guard: inst = run_guarded(warp, inst, control); continue;
            case ControlKind::member_sync:
                if (members_are_here(warp, inst->s[0])) {
                    inst[1].run(lanes, inst[1]);
                    inst += 2;
                    continue;
                }
                wait_for_members(warp, *inst);
                next = kNever;
                break;
            case ControlKind::warp_barrier:
                if (members_are_here(warp, inst->s[0])) {
                    ++inst;
                    continue;
                }
                wait_for_members(warp, *inst);
                next = kNever;
                break;
            case ControlKind::jump:
                next = control.target;
                warp.budget -= control.cost;
                break;
            case ControlKind::branch: {
                const uint32_t holds = lanes_that_hold(lanes, inst->s[0]);
                const uint32_t taken = mask & (control.negated ? ~holds : holds);
                if (taken == 0) {
                    next = pc_of(inst) + 1;
                    break;
                }
                warp.budget -= control.cost;
                next = control.target;
                if (taken == mask) break;
                make_ready(warp, pc_of(inst) + 1, mask & ~taken);
                mask = taken;
                warp.threshold = 0;  // select a group again
                break;
            }
            default: run_control(warp, *inst, control); next = kNever;
            }
            if (next < warp.threshold && warp.budget > 0) {
                inst = code_ + next;
                continue;
            }
            if (next != kNever) make_ready(warp, next, mask);
            if (warp.budget <= 0) {
                warp.rotates = true;
                return control.cost == 1 ? Turn::used_up : Turn::spun;
            }
            if (!pick(warp)) return Turn::parked;
            inst = code_ + warp.pc;
        }
    } catch (const FaultSignal& signal) {
        throw fault_of(warp, *inst, signal);
    }
}

const Inst* Block::run_guarded(WarpState& warp, const Inst* guard, const Control& control) {
    Warp& lanes = warp.warp;
    const uint32_t before = lanes.active;
    const uint32_t holds = lanes_that_hold(lanes, guard->s[0]);
    const uint32_t mask = before & (control.negated ? ~holds : holds);
    if (mask == before) return guard + 1;
    const Inst* end = guard + 1 + control.count;
    if (mask == 0) return end;
    set_active(lanes, mask);
    for (const Inst* inst = guard + 1; inst != end; ++inst) inst->run(lanes, *inst);
    set_active(lanes, before);
    return end;
}

// Afterwards there is no running group: it is ready, parked, or ended.
void Block::run_control(WarpState& warp, const Inst& inst, const Control& control) {
    const uint32_t mask = warp.warp.active;
    const uint32_t next = pc_of(&inst) + 1;
    switch (control.kind) {
    case ControlKind::table: return branch_by_table(warp, inst, control);
    case ControlKind::call: return call(warp, control.target, mask, next);
    case ControlKind::call_indirect: return call_by_pointer(warp, inst);
    case ControlKind::ret: return return_lanes(warp, mask);
    case ControlKind::exit: return exit_lanes(warp, mask);
    case ControlKind::barrier: return arrive(warp, inst, BarrierOp(control.target));
    case ControlKind::cluster_arrive: return arrive_in_cluster(warp, inst);
    case ControlKind::cluster_wait: return wait_in_cluster(warp, inst);
    case ControlKind::system: call_system(warp, SystemCall(control.target)); break;
    case ControlKind::wait_dependencies:
        if (grid_->launch.wait_dependencies) grid_->launch.wait_dependencies();
        warp.context.waited = true;
        break;
    case ControlKind::launch_dependents:
        if (!released_dependents_) grid_->release_dependents();
        released_dependents_ = true;
        break;
    case ControlKind::yield: warp.budget = 0; break;
    case ControlKind::trap:
        throw FaultSignal{FaultKind::trap, first_lane(mask), trap_text(*program_, inst.line)};
    case ControlKind::breakpoint:
        throw FaultSignal{FaultKind::trap, first_lane(mask), "brkpt, and no debugger is there"};
    default: break;  // run_warp handles the others
    }
    make_ready(warp, next, mask);
}

void Block::branch_by_table(WarpState& warp, const Inst& inst, const Control& control) {
    const std::vector<uint32_t>& targets = program_->tables[control.target];
    const auto* index = cells<uint32_t>(warp.warp, inst.s[0]);
    for_lanes(warp.warp.active, [&](int lane) {
        if (index[lane] >= targets.size())
            throw FaultSignal{FaultKind::illegal_instruction, lane,
                              "brx.idx with index " + std::to_string(index[lane]) + " of " +
                                  std::to_string(targets.size()) + " targets"};
        make_ready(warp, targets[index[lane]], 1u << lane);
    });
    warp.budget -= control.cost;
}

void Block::exit_lanes(WarpState& warp, uint32_t mask) {
    if (program_->uses_stack) leave_frames(warp, mask);
    if (warp.context.hazards) warp.context.hazards->leave(warp.context.warp, rank_);
    if (program_->uses_cluster_barrier) leave_cluster(warp, mask);
    warp.live &= ~mask;
    live_threads_ -= uint32_t(count_lanes(mask));
    if (warp.parked_count) release_members(warp);
    for (uint32_t id = 0; id < kBarriers; ++id)
        if (barriers_[id].arrived && barriers_[id].needed == 0) complete_if_full(id);
}

}  // namespace cyrt::emu
