// Synchronisation of lanes: member masks within a warp, barriers of the block.
#include <cstring>
#include <iterator>

#include "exec/block.hpp"
#include "exec/cluster.hpp"

namespace cyrt::emu {

// The common case of a *.sync instruction: all members of all active lanes are in this group. Lanes
// may name different members, and may, as on hardware, omit themselves.
bool Block::members_are_here(const WarpState& warp, uint32_t slot) const {
    const Warp& lanes = warp.warp;
    const auto* members = cells<const uint32_t>(lanes, slot);
    uint32_t named = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) named |= members[lane] & lanes.lane_on[lane];
    return (named & warp.live & ~lanes.active) == 0;
}

// Parks the running group, one part per member mask, and releases the complete parts.
void Block::wait_for_members(WarpState& warp, const Inst& inst) {
    const auto* members = cells<uint32_t>(warp.warp, inst.s[0]);
    const uint32_t pc = pc_of(&inst);
    for (uint32_t rest = warp.warp.active; rest;) {
        const uint32_t key = members[first_lane(rest)];
        uint32_t mask = 0;
        for_lanes(rest, [&](int lane) {
            if (members[lane] == key) mask |= 1u << lane;
        });
        rest &= ~mask;
        int i = 0;
        while (i < warp.parked_count && (warp.parked[i].pc != pc || warp.parked[i].key != key)) ++i;
        if (i < warp.parked_count)
            warp.parked[i].mask |= mask;
        else
            warp.parked[warp.parked_count++] = {pc, mask, key, false};
    }
    release_members(warp);
}

// Lanes at different instructions may wait for each other: a compiler duplicates code. The
// instructions must be of the same kind.
bool Block::waits_like(const Parked& parked, uint32_t members, const Inst& first) const {
    if (parked.at_barrier || parked.key != members) return false;
    const Inst& other = code_[parked.pc];
    const ControlKind kind = program_->controls[first.extra].kind;
    if (program_->controls[other.extra].kind != kind) return false;
    return kind == ControlKind::warp_barrier || (&first)[1].run == (&other)[1].run;
}

void Block::release_members(WarpState& warp) {
    for (int i = 0; i < warp.parked_count;) {
        const Parked parked = warp.parked[i++];
        if (parked.at_barrier) continue;
        const Inst& first = code_[parked.pc];
        uint32_t here = 0;
        for (int k = 0; k < warp.parked_count; ++k)
            if (waits_like(warp.parked[k], parked.key, first)) here |= warp.parked[k].mask;
        if (parked.key & warp.live & ~here) continue;
        run_together(warp, parked.key, first);
        i = 0;
    }
}

// Runs the instruction for all lanes that wait at a similar one. If they wait at several, its
// operands are collected in scratch slots and its results distributed.
void Block::run_together(WarpState& warp, uint32_t members, const Inst& first) {
    Warp& lanes = warp.warp;
    const bool runs = program_->controls[first.extra].kind == ControlKind::member_sync;
    std::array<Parked, kWarpSize> parties;
    int count = 0;
    int kept = 0;
    uint32_t all = 0;
    for (int i = 0; i < warp.parked_count; ++i) {
        if (waits_like(warp.parked[i], members, first)) {
            parties[count++] = warp.parked[i];
            all |= warp.parked[i].mask;
        } else {
            warp.parked[kept++] = warp.parked[i];
        }
    }
    warp.parked_count = kept;

    if (runs && count == 1) {
        set_active(lanes, all);
        (&first)[1].run(lanes, (&first)[1]);
    } else if (runs) {
        constexpr uint32_t kSlot = 16 * kWarpSize;
        const Inst& pattern = (&first)[1];
        Inst together = pattern;
        uint32_t next = program_->scratch_slot;
        for (uint32_t* operands : {together.d, together.s}) {
            const size_t length =
                operands == together.d ? std::size(pattern.d) : std::size(pattern.s);
            for (size_t k = 0; k < length; ++k, next += kSlot)
                if (operands[k] != kNoSlot) operands[k] = next;
        }
        const auto copy = [&](uint32_t to, uint32_t from, uint32_t size, uint32_t mask) {
            if (to == kNoSlot || from == kNoSlot) return;
            for_lanes(mask, [&](int lane) {
                std::memcpy(lanes.slots + to + uint32_t(lane) * size,
                            lanes.slots + from + uint32_t(lane) * size, size);
            });
        };
        // `extra` has the cell size of s[0] (match has b64 there); the others are 32 bits.
        for (int i = 0; i < count; ++i) {
            const Inst& party = code_[parties[i].pc + 1];
            for (size_t k = 0; k < std::size(party.s); ++k)
                copy(together.s[k], party.s[k], k == 0 ? party.extra : 4, parties[i].mask);
        }
        set_active(lanes, all);
        together.run(lanes, together);
        for (int i = 0; i < count; ++i) {
            const Inst& party = code_[parties[i].pc + 1];
            for (size_t k = 0; k < std::size(party.d); ++k)
                copy(party.d[k], together.d[k], 4, parties[i].mask);
        }
    }
    for (int i = 0; i < count; ++i)
        make_ready(warp, parties[i].pc + (runs ? 2 : 1), parties[i].mask);
}

void Block::arrive(WarpState& warp, const Inst& inst, BarrierOp op) {
    const Warp& lanes = warp.warp;
    const uint32_t mask = lanes.active;
    const int lane = first_lane(mask);
    const uint32_t id = cells<uint32_t>(lanes, inst.s[0])[lane];
    if (id >= kBarriers)
        throw FaultSignal{FaultKind::illegal_instruction, lane,
                          "barrier " + std::to_string(id) + " of 16"};
    Barrier& barrier = barriers_[id];
    barrier.needed = inst.s[1] == kNoSlot ? 0 : cells<uint32_t>(lanes, inst.s[1])[lane];
    if (barrier.needed % kWarpSize)
        throw FaultSignal{FaultKind::illegal_instruction, lane,
                          "a barrier of " + std::to_string(barrier.needed) +
                              " threads: expected whole warps of 32"};
    // A barrier with a count counts whole warps, including partly filled ones.
    barrier.arrived += barrier.needed && mask == warp.live ? kWarpSize : count_lanes(mask);
    if (inst.s[2] != kNoSlot) {
        const uint32_t holds = lanes_that_hold(lanes, inst.s[2]) & mask;
        barrier.all &= holds == mask;
        barrier.any |= holds != 0;
        barrier.holding += count_lanes(holds);
    }
    barrier.waited |= warp.context.waited;
    if (warp.context.hazards) warp.context.hazards->arrive(warp.context.warp, rank_, id);
    const uint32_t pc = pc_of(&inst);
    if (op == BarrierOp::arrive)
        make_ready(warp, pc + 1, mask);
    else
        warp.parked[warp.parked_count++] = {pc, mask, id, true};
    complete_if_full(id);
}

// --- the cluster's barrier -----------------------------------------------------------------------

void Block::arrive_in_cluster(WarpState& warp, const Inst& inst) {
    const uint32_t mask = warp.warp.active;
    for_lanes(mask, [&](int lane) {
        if (warp.arrivals[size_t(lane)] != 0)
            throw FaultSignal{FaultKind::illegal_instruction, lane,
                              "barrier.cluster.arrive again, with no wait after the last one"};
        warp.arrivals[size_t(lane)] = cluster_->phase() + 1;
    });
    make_ready(warp, pc_of(&inst) + 1, mask);
    if (warp.context.hazards && !program_->controls[inst.extra].target)
        warp.context.hazards->arrive_in_cluster(warp.context.warp);
    cluster_->arrive(uint32_t(count_lanes(mask)), warp.context.waited);
}

void Block::wait_in_cluster(WarpState& warp, const Inst& inst) {
    uint32_t passing = 0;
    for_lanes(warp.warp.active, [&](int lane) {
        uint32_t& arrival = warp.arrivals[size_t(lane)];
        if (arrival == 0)
            throw FaultSignal{FaultKind::illegal_instruction, lane,
                              "barrier.cluster.wait, with no arrive before it"};
        if (arrival == cluster_->phase() + 1) return;  // it has not ended
        arrival = 0;
        passing |= 1u << lane;
    });
    const uint32_t pc = pc_of(&inst);
    const uint32_t staying = warp.warp.active & ~passing;
    if (staying) warp.parked[warp.parked_count++] = {pc, staying, kClusterBarrier, true};
    if (!passing) return;
    if (warp.context.hazards) warp.context.hazards->pass_in_cluster(warp.context.warp);
    make_ready(warp, pc + 1, passing);
}

void Block::leave_cluster(WarpState& warp, uint32_t mask) {
    uint32_t arrived = 0;
    for_lanes(mask,
              [&](int lane) { arrived += warp.arrivals[size_t(lane)] == cluster_->phase() + 1; });
    cluster_->leave(uint32_t(count_lanes(mask)), arrived);
}

void Block::pass_cluster_barrier() {
    for (size_t w = 0; w < warp_count_; ++w) {
        WarpState& warp = *warps_[w];
        warp.context.waited |= cluster_->waited();
        int kept = 0;
        for (int i = 0; i < warp.parked_count; ++i) {
            const Parked parked = warp.parked[i];
            if (!parked.at_barrier || parked.key != kClusterBarrier) {
                warp.parked[kept++] = parked;
                continue;
            }
            for_lanes(parked.mask, [&](int lane) { warp.arrivals[size_t(lane)] = 0; });
            if (warp.context.hazards) warp.context.hazards->pass_in_cluster(warp.context.warp);
            make_ready(warp, parked.pc + 1, parked.mask);
        }
        warp.parked_count = kept;
    }
}

void Block::complete_if_full(uint32_t id) {
    const Barrier barrier = barriers_[id];
    if (barrier.arrived < (barrier.needed ? barrier.needed : live_threads_)) return;
    barriers_[id] = {};
    Hazards* const hazards = cluster_->hazards();
    if (hazards) hazards->complete(rank_, id, barrier.needed == 0);
    for (size_t w = 0; w < warp_count_; ++w) {
        WarpState& warp = *warps_[w];
        int kept = 0;
        for (int i = 0; i < warp.parked_count; ++i) {
            const Parked parked = warp.parked[i];
            if (!parked.at_barrier || parked.key != id) {
                warp.parked[kept++] = parked;
                continue;
            }
            warp.context.waited |= barrier.waited;
            if (hazards) hazards->pass(warp.context.warp);
            const Inst& inst = code_[parked.pc];
            if (inst.d[0] != kNoSlot) {
                const auto op = BarrierOp(program_->controls[inst.extra].target);
                const uint32_t result = op == BarrierOp::red_popc ? barrier.holding
                                        : (op == BarrierOp::red_and ? barrier.all : barrier.any)
                                            ? 0xffffffffu
                                            : 0;
                auto* into = cells<uint32_t>(warp.warp, inst.d[0]);
                for_lanes(parked.mask, [&](int lane) { into[lane] = result; });
            }
            make_ready(warp, parked.pc + 1, parked.mask);
        }
        warp.parked_count = kept;
    }
}

}  // namespace cyrt::emu
