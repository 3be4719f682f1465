// mbarrier: barriers in shared memory; threads arrive at them and test whether a phase has ended.
//
// A cluster runs on one host thread, so a barrier needs no atomic instruction. Its 64 bits are
// opaque to PTX: here the arrivals still missing in this phase (20 bits), those of every phase
// (20), and the number of phases that have ended. A state is the value of the bits at the arrival.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "exec/addressing.hpp"
#include "exec/hazards.hpp"
#include "exec/memory_forms.hpp"
#include "exec/operand_types.hpp"

namespace cyrt::emu {

namespace {

constexpr uint64_t kCount = (1 << 20) - 1;

struct Barrier {
    uint64_t pending, expected, phase;

    static Barrier from(uint64_t bits) { return {bits & kCount, bits >> 20 & kCount, bits >> 40}; }
    uint64_t bits() const { return pending | expected << 20 | phase << 40; }

    void arrive(uint64_t count) {
        pending -= std::min(pending, count);
        if (pending != 0) return;
        pending = expected;
        ++phase;
    }
};

// Each computes the new bits, and the instruction's result in `result`.
struct Initialise {
    static constexpr Access access = Access::write;
    static uint64_t of(uint64_t, uint64_t count, uint64_t&) {
        return Barrier{count & kCount, count & kCount, 0}.bits();
    }
};
struct Invalidate {
    static constexpr Access access = Access::write;
    static uint64_t of(uint64_t, uint64_t, uint64_t&) { return 0; }
};
struct Arrive {
    static constexpr Access access = Access::update;
    static uint64_t of(uint64_t old, uint64_t count, uint64_t& result) {
        Barrier barrier = Barrier::from(old);
        barrier.arrive(count);
        result = old;
        return barrier.bits();
    }
};
struct WaitForCopies {  // an arrival that it adds, and which follows the copies
    static constexpr Access access = Access::update;
    static uint64_t of(uint64_t old, uint64_t, uint64_t&) { return old; }
};
struct ArriveAndDrop {
    static constexpr Access access = Access::update;
    static uint64_t of(uint64_t old, uint64_t count, uint64_t& result) {
        Barrier barrier = Barrier::from(old);
        barrier.expected -= std::min(barrier.expected, count);
        barrier.arrive(count);
        result = old;
        return barrier.bits();
    }
};
struct TestState {
    static constexpr Access access = Access::read;
    static uint64_t of(uint64_t old, uint64_t state, uint64_t& result) {
        result = Barrier::from(old).phase != Barrier::from(state).phase ? 0xffffffffu : 0;
        return old;
    }
};
struct TestParity {  // true if the phase of that parity, the current one or the last, has ended
    static constexpr Access access = Access::read;
    static uint64_t of(uint64_t old, uint64_t parity, uint64_t& result) {
        result = (Barrier::from(old).phase & 1) != (parity & 1) ? 0xffffffffu : 0;
        return old;
    }
};

template <AddressKind kind, typename Op>
void run(Warp& warp, const Inst& inst) {
    if (warp.active == 0) return;
    HostAddresses at;
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    Hazards* const hazards = warp.context->hazards;
    locate<kind>(warp, inst, op, Op::access, at);
    const auto* operand = inst.s[1] == kNoSlot ? nullptr : cells<uint64_t>(warp, inst.s[1]);
    auto* into = inst.d[0] == kNoSlot ? nullptr : cells<uint64_t>(warp, inst.d[0]);
    for_lanes(warp.active, [&](int lane) {
        auto* const place = reinterpret_cast<std::byte*>(at.lane[lane]);
        uint64_t bits, result = 0;
        std::memcpy(&bits, place, sizeof bits);
        const uint64_t phase = Barrier::from(bits).phase;
        bits = Op::of(bits, operand ? operand[lane] : 1, result);
        if (Op::access != Access::read) std::memcpy(place, &bits, sizeof bits);
        if (hazards && Op::access == Access::update)
            hazards->arrive_at(warp.context->warp, place, Barrier::from(bits).phase != phase,
                               op.async);
        if (hazards && Op::access == Access::read && result)
            hazards->pass_at(warp.context->warp, place);
        if (into) into[lane] = result;
    });
}

void pending_count(Warp& warp, const Inst& inst) {
    auto* into = cells<uint64_t>(warp, inst.d[0]);
    const auto* state = cells<uint64_t>(warp, inst.s[1]);
    for_lanes(warp.active, [&](int lane) { into[lane] = Barrier::from(state[lane]).pending; });
}

template <typename Op>
Handler in(ptx::Space space) {
    return space == ptx::Space::shared ? run<AddressKind::window, Op>
                                       : run<AddressKind::generic, Op>;
}

}  // namespace

Handler find_copies_handler(ptx::Space space) { return in<WaitForCopies>(space); }

Handler find_mbarrier_handler(const ptx::Instruction& source, MemoryOp& op) {
    op.size = 8;
    op.count = 1;
    for (const std::string& modifier : source.modifiers) {
        if (modifier == "shared" || modifier == "shared::cta" || modifier == "shared::cluster")
            op.space = ptx::Space::shared;
        if (modifier == "shared::cluster") op.in_cluster = true;
        // Bytes of bulk copies are not counted: bulk copies are not supported.
        if (modifier == "expect_tx" || modifier == "complete_tx") return nullptr;
    }
    const bool parity = has_modifier(source, "parity");
    if (source.modifiers.empty()) return nullptr;
    const std::string_view action = source.modifiers.front();
    if (action == "init") return in<Initialise>(op.space);
    if (action == "inval") return in<Invalidate>(op.space);
    op.order = MemoryOrder::phase;
    if (action == "arrive") return in<Arrive>(op.space);
    if (action == "arrive_drop") return in<ArriveAndDrop>(op.space);
    if (action == "test_wait" || action == "try_wait")
        return parity ? in<TestParity>(op.space) : in<TestState>(op.space);
    return action == "pending_count" ? pending_count : nullptr;
}

}  // namespace cyrt::emu
