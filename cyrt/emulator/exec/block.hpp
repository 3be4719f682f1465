// One thread block: its warps, and their scheduling.
//
// INVARIANTS
// - The lanes of a warp that have not exited are distributed, without overlap, over the running
//   group, `ready` and `parked`.
// - The running group has the lowest pc of the warp unless the warp rotates (its branch budget ran
//   out), so groups meet at joins. `threshold` is the pc at which to look for another group.
// - A parked group becomes ready when its condition is met, and only then; if no warp has a ready
//   group and lanes are left, nothing can ever happen: a deadlock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/context.hpp"
#include "exec/grid.hpp"
#include "exec/lanes.hpp"
#include "exec/worker.hpp"

namespace cyrt::emu {

struct Group {
    uint32_t pc, mask;
    uint64_t since;  // when it last ran, in the warp's own time
};

struct Parked {
    uint32_t pc, mask;
    uint32_t key;  // a barrier's id; else the member mask
    bool at_barrier;
};

struct WarpState {
    Warp warp{};
    WarpContext context;
    std::unique_ptr<WarpStorage> storage;  // from its first turn to its last
    uint32_t index = 0;
    uint32_t lanes = 0;  // lanes within the block's size
    uint32_t live = 0;   // lanes that have not exited
    uint32_t pc = 0;
    uint32_t threshold = 0;
    int32_t budget = 0;
    bool rotates = false;
    int ready_count = 0;
    int parked_count = 0;
    uint64_t time = 0;
    std::array<Group, kWarpSize> ready;
    std::array<Parked, kWarpSize> parked;
    std::array<Frame*, kWarpSize> frames;  // each lane's innermost activation
    // Each lane's unawaited arrival at the cluster's barrier: the phase, counted from 1; 0 if there
    // is none.
    std::array<uint32_t, kWarpSize> arrivals;
};

class Cluster;

class Block {
  public:
    // spun: every warp waits for another block; parked: all wait at barriers; blocked: all waited
    // when run() began.
    enum class State { finished, spun, parked, blocked };

    // The block with these coordinates and this rank in its cluster. (Numbers, because a Dim3 would
    // pass through memory with stores and loads of different sizes: a stall for each block.)
    void start(Cluster& cluster, uint32_t x, uint32_t y, uint32_t z, uint32_t rank);
    // Runs until the block has ended or none of its warps makes progress; throws Fault.
    State run();
    // The whole cluster is blocked: throws Fault unless this block has ended.
    void throw_if_deadlocked() const;
    // The phase of the cluster's barrier has ended.
    void pass_cluster_barrier();
    // Releases its resources; the block can be started again.
    void end();

  private:
    enum class Turn { parked, used_up, spun };

    struct Barrier {
        uint32_t arrived = 0;  // threads
        uint32_t needed = 0;   // 0: all that have not exited
        bool all = true, any = false;
        uint32_t holding = 0;  // threads whose predicate is true
        bool waited = false;   // a thread came from griddepcontrol.wait
    };

    // block.cpp
    void start_warp(WarpState& warp);
    Fault fault_of(const WarpState& warp, const Inst& inst, const FaultSignal& signal) const;
    Dim3 thread_of(const WarpState& warp, int lane) const;

    // warp_loop.cpp
    Turn run_warp(WarpState& warp);
    bool pick(WarpState& warp);
    void make_ready(WarpState& warp, uint32_t pc, uint32_t mask);
    const Inst* run_guarded(WarpState& warp, const Inst* guard, const Control& control);
    void run_control(WarpState& warp, const Inst& inst, const Control& control);
    void branch_by_table(WarpState& warp, const Inst& inst, const Control& control);
    void exit_lanes(WarpState& warp, uint32_t mask);
    uint32_t pc_of(const Inst* inst) const { return uint32_t(inst - code_); }

    // synchronise.cpp
    bool members_are_here(const WarpState& warp, uint32_t slot) const;
    void wait_for_members(WarpState& warp, const Inst& inst);
    void release_members(WarpState& warp);
    void run_together(WarpState& warp, uint32_t members, const Inst& first);
    bool waits_like(const Parked& parked, uint32_t members, const Inst& first) const;
    void arrive(WarpState& warp, const Inst& inst, BarrierOp op);
    void complete_if_full(uint32_t id);
    void arrive_in_cluster(WarpState& warp, const Inst& inst);
    void wait_in_cluster(WarpState& warp, const Inst& inst);
    void leave_cluster(WarpState& warp, uint32_t mask);
    void compare_writes(WarpState& warp);

    // calls.cpp
    void call(WarpState& warp, uint32_t function, uint32_t mask, uint32_t return_pc);
    void call_by_pointer(WarpState& warp, const Inst& inst);
    void return_lanes(WarpState& warp, uint32_t mask);
    void restore(Warp& lanes, const FunctionCode& callee, const Frame& frame, uint32_t mask) const;
    void leave_frames(WarpState& warp, uint32_t mask);

    // system.cpp
    void call_system(WarpState& warp, SystemCall call);
    void print_formatted(WarpState& warp);
    void fail_assertion(WarpState& warp);
    void allocate_heap(WarpState& warp);
    void release_heap(WarpState& warp);

    Grid* grid_ = nullptr;
    Worker* worker_ = nullptr;
    ProgramStore* store_ = nullptr;
    Cluster* cluster_ = nullptr;
    const Program* program_ = nullptr;
    const Inst* code_ = nullptr;
    Dim3 index_;
    uint32_t rank_ = 0;  // the block's rank in its cluster
    uint32_t live_threads_ = 0;
    bool released_dependents_ = false;
    size_t warp_count_ = 0;
    // never shrinks: the first warp_count_ are in use
    std::vector<std::unique_ptr<WarpState>> warps_;
    std::array<Barrier, kBarriers> barriers_;
    AlignedBytes shared_;
    uint64_t shared_capacity_ = 0;
    uint32_t own_shared_bytes_ = 0;
    uint32_t reserved_offset_ = 0;  // the runtime's part, after the kernel's own
    uint32_t shared_bytes_ = 0;     // both parts
    std::vector<uint8_t> shared_valid_;
};

}  // namespace cyrt::emu
