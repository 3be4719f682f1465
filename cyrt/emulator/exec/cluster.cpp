#include "exec/cluster.hpp"

namespace cyrt::emu {

namespace {

// Divisions are slow, and most grids have one dimension.
Dim3 place_of(uint64_t number, const Dim3& clusters) {
    if (number < clusters.x) return {uint32_t(number), 0, 0};
    const uint64_t row = number / clusters.x;
    return {uint32_t(number % clusters.x), uint32_t(row % clusters.y), uint32_t(row / clusters.y)};
}

}  // namespace

void Cluster::start(Grid& grid, Worker& worker, ProgramStore& store, uint64_t number) {
    grid_ = &grid;
    worker_ = &worker;
    store_ = &store;
    phase_ = arrived_ = 0;
    waited_ = false;
    live_threads_ = grid.cluster_threads;
    memory_.count = grid.cluster_blocks;
    while (blocks_.size() < memory_.count) blocks_.push_back(worker.take_block());

    const Dim3& size = grid.launch.cluster;
    const Dim3 place = place_of(number, grid.clusters);
    Dim3 inside{0, 0, 0};
    for (uint32_t rank = 0; rank < memory_.count; ++rank) {
        blocks_[rank]->start(*this, place.x * size.x + inside.x, place.y * size.y + inside.y,
                             place.z * size.z + inside.z, rank);
        if (++inside.x < size.x) continue;
        inside.x = 0;
        if (++inside.y < size.y) continue;
        inside.y = 0;
        ++inside.z;
    }
    const Launch& launch = grid.launch;
    finds_hazards_ = launch.arena && launch.arena->checking() && memory_.blocks[0].bytes > 0 &&
                     (memory_.count > 1 || launch.block.count() > kWarpSize);
    if (finds_hazards_) hazards_.start(launch, grid.program, memory_);
}

Cluster::State Cluster::run() {
    for (;;) {
        bool finished = true, spun = false, ran = false;
        for (uint32_t rank = 0; rank < memory_.count; ++rank) {
            bool& ended = memory_.blocks[rank].ended;
            if (ended) continue;
            const Block::State state = blocks_[rank]->run();
            ended = state == Block::State::finished;
            finished &= ended;
            spun |= state == Block::State::spun;
            ran |= state != Block::State::blocked;
        }
        if (finished) return State::finished;
        if (spun) return State::waiting;
        if (ran) continue;
        for (const auto& block : blocks_) block->throw_if_deadlocked();
    }
}

void Cluster::end() {
    for (const auto& block : blocks_) block->end();
    for (; blocks_.size() > 1; blocks_.pop_back()) worker_->give_block(std::move(blocks_.back()));
}

void Cluster::arrive(uint32_t threads, bool waited) {
    arrived_ += threads;
    waited_ |= waited;
    complete_if_full();
}

void Cluster::leave(uint32_t threads, uint32_t arrived) {
    live_threads_ -= threads;
    arrived_ -= arrived;
    if (live_threads_ > 0) complete_if_full();
}

void Cluster::complete_if_full() {
    if (arrived_ < live_threads_) return;
    arrived_ = 0;
    ++phase_;
    if (finds_hazards_) hazards_.complete_in_cluster();
    for (const auto& block : blocks_) block->pass_cluster_barrier();
    waited_ = false;
}

}  // namespace cyrt::emu
