#include "exec/block.hpp"

#include <algorithm>
#include <cstring>

#include "exec/cluster.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

constexpr int kBlockPoison = 0xcb;
// Rounds in which all warps only spin before other blocks run. In a cooperative launch they wait
// for other blocks; elsewhere it may be a loop of atomics that ends without help.
constexpr int kPatience = 16;

std::string text_of(const Dim3& at) {
    return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) +
           ")";
}

}  // namespace

void Block::start(Cluster& cluster, uint32_t x, uint32_t y, uint32_t z, uint32_t rank) {
    grid_ = &cluster.grid();
    worker_ = &cluster.worker();
    store_ = &cluster.store();
    const Launch& launch = grid_->launch;
    program_ = &grid_->program;
    code_ = program_->code.data();
    cluster_ = &cluster;
    index_ = {x, y, z};
    rank_ = rank;
    live_threads_ = uint32_t(launch.block.count());
    released_dependents_ = false;
    barriers_.fill({});

    own_shared_bytes_ = program_->static_shared + launch.dynamic_shared;
    reserved_offset_ = round_up(own_shared_bytes_, 16u);
    shared_bytes_ =
        program_->uses_reserved_shared ? reserved_offset_ + kReservedShared : own_shared_bytes_;
    if (shared_bytes_ > shared_capacity_) {
        shared_ = aligned_bytes(shared_bytes_);
        shared_capacity_ = shared_bytes_;
        std::memset(shared_.get(), kBlockPoison, shared_bytes_);
    }
    if (launch.arena && launch.arena->checking()) {
        if (shared_) std::memset(shared_.get(), kBlockPoison, shared_bytes_);
        shared_valid_.assign(shared_bytes_, 0);
    } else {
        shared_valid_.clear();
    }
    if (program_->uses_reserved_shared) {  // the driver clears it
        std::memset(shared_.get() + reserved_offset_, 0, kReservedShared);
        if (!shared_valid_.empty())
            std::memset(shared_valid_.data() + reserved_offset_, 1, kReservedShared);
    }

    warp_count_ = (live_threads_ + kWarpSize - 1) / kWarpSize;
    while (warps_.size() < warp_count_) warps_.push_back(std::make_unique<WarpState>());
    for (size_t i = 0; i < warp_count_; ++i) {
        WarpState& warp = *warps_[i];
        const uint32_t threads = std::min(live_threads_ - uint32_t(i) * kWarpSize, 32u);
        warp.index = uint32_t(i);
        warp.lanes = warp.live = threads == 32 ? kFullMask : (1u << threads) - 1;
        warp.rotates = false;
        warp.ready_count = warp.parked_count = 0;
        if (program_->uses_cluster_barrier) warp.arrivals.fill(0);
        make_ready(warp, program_->functions.back().entry, warp.live);
    }
    BlockMemory& memory = cluster.memory().blocks[rank];
    memory.shared = shared_.get();
    memory.valid = shared_valid_.empty() ? nullptr : shared_valid_.data();
    memory.bytes = shared_bytes_;
    memory.ended = false;
}

void Block::start_warp(WarpState& warp) {
    const Launch& launch = grid_->launch;
    warp.storage = store_->take(*program_);
    std::byte* slots = warp.storage->slots.get();
    warp.warp.slots = slots;
    warp.warp.context = &warp.context;
    const WarpPlace place{&launch,           index_,           rank_,           warp.index,
                          own_shared_bytes_, reserved_offset_, grid_->workspace};
    for (const SpecialSlot& special : program_->specials) fill_special(special, place, slots);
    for (const PoisonedSlot& poison : program_->poison)
        std::memset(slots + poison.slot, poison.is_predicate ? 0 : kBlockPoison, poison.bytes);
    if (program_->uses_stack) {
        auto* stack = cells<uint64_t>(warp.warp, program_->stack_slot);
        std::fill_n(stack, kWarpSize, program_->frame_bytes);
        warp.frames.fill(nullptr);
    }

    WarpContext& context = warp.context;
    context.memory_ops = program_->memory_ops.data();
    context.frame_copies = program_->frame_copies.data();
    context.regions = store_->regions.data();
    context.earlier = store_->earlier.data();
    context.recent = &store_->recent;
    context.arena = launch.arena;
    context.checking = launch.arena && launch.arena->checking();
    context.waited = false;
    context.shared = shared_.get();
    context.shared_valid = shared_valid_.empty() ? nullptr : shared_valid_.data();
    context.shared_bytes = shared_bytes_;
    context.cluster = &cluster_->memory();
    context.rank = rank_;
    context.hazards = cluster_->hazards();
    context.warp = uint32_t(rank_ * warp_count_ + warp.index);
    context.local = warp.storage->local.get();
    context.local_stride = store_->local_stride();
    context.stack_bytes = grid_->stack_bytes;
    context.stack_limit = program_->frame_bytes + context.stack_bytes;
    context.local_bytes = context.stack_limit + program_->staging_bytes;
    context.params = const_cast<std::byte*>(launch.params);
    context.param_bytes = program_->param_bytes;
    context.launch = &launch;
}

Block::State Block::run() {
    const int patience = grid_->launch.cooperative ? 1 : kPatience;
    bool ran_before = false;
    for (int idle = 0; idle < patience; ran_before = true) {
        bool ran = false;
        bool only_spun = true;
        for (size_t i = 0; i < warp_count_; ++i) {
            WarpState& warp = *warps_[i];
            if (warp.ready_count == 0) continue;
            if (!warp.storage) start_warp(warp);
            ran = true;
            only_spun &= run_warp(warp) == Turn::spun;
            if (warp.context.hazards) compare_writes(warp);
            if (warp.live == 0) store_->give(std::move(warp.storage));
        }
        if (live_threads_ == 0) return State::finished;
        if (!ran) return ran_before ? State::parked : State::blocked;
        if (grid_->stopped()) break;
        idle = only_spun ? idle + 1 : 0;
    }
    return State::spun;
}

void Block::end() {
    for (size_t i = 0; i < warp_count_; ++i) {
        WarpState& warp = *warps_[i];
        if (!warp.storage) continue;
        if (program_->uses_stack) leave_frames(warp, warp.live);  // after a fault
        store_->give(std::move(warp.storage));
    }
    if (program_->launches_dependents && !released_dependents_) grid_->release_dependents();
}

// The last writes of a warp's turn; others have followed when they are compared.
void Block::compare_writes(WarpState& warp) {
    try {
        warp.context.hazards->compare_writes();
    } catch (const FaultSignal& signal) {
        throw fault_of(warp, *code_, signal);
    }
}

Dim3 Block::thread_of(const WarpState& warp, int lane) const {
    const Dim3& size = grid_->launch.block;
    const uint32_t thread = warp.index * kWarpSize + uint32_t(lane);
    return {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
}

Fault Block::fault_of(const WarpState& warp, const Inst& inst, const FaultSignal& signal) const {
    const std::string& kernel = grid_->launch.kernel_name;
    return {signal.kind, "kernel " + (kernel.empty() ? program_->name : kernel) + ", block " +
                             text_of(index_) + ", thread " + text_of(thread_of(warp, signal.lane)) +
                             ", " + place_of(*program_, signal.line ? signal.line : inst.line) +
                             ": " + signal.text};
}

void Block::throw_if_deadlocked() const {
    if (live_threads_ == 0) return;
    size_t w = 0;
    while (warps_[w]->parked_count == 0) ++w;  // all remaining lanes are parked
    const Parked& parked = warps_[w]->parked[0];
    const std::string what = !parked.at_barrier ? "the other lanes of its member mask"
                             : parked.key == kClusterBarrier
                                 ? "the cluster's barrier"
                                 : "barrier " + std::to_string(parked.key);
    throw fault_of(*warps_[w], code_[parked.pc],
                   {FaultKind::deadlock, first_lane(parked.mask),
                    "waits for " + what + "; all " + std::to_string(live_threads_) +
                        " threads left of the block wait, and none can go on"});
}

}  // namespace cyrt::emu
