// The blocks of one cluster. Every block is in a cluster: in a launch without clusters, in one of
// one block.
//
// INVARIANTS
// - They run in turn on one host thread, so their common data needs no atomic instructions; all
//   begin together, and their shared memory exists until all have ended.
// - A thread arrives at the cluster's barrier and then waits there, once in each phase. The phase
//   ends when all that have not exited have arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/block.hpp"
#include "exec/context.hpp"
#include "exec/grid.hpp"
#include "exec/hazards.hpp"
#include "exec/worker.hpp"

namespace cyrt::emu {

class Cluster {
  public:
    enum class State { finished, waiting };  // waiting: for another cluster

    void start(Grid& grid, Worker& worker, ProgramStore& store, uint64_t number);
    // Runs until all blocks have ended or some only spin; throws Fault.
    State run();
    // Releases its resources; the cluster can be started again.
    void end();

    // --- called by its blocks ---------------------------------------------------------------
    Grid& grid() const { return *grid_; }
    Worker& worker() const { return *worker_; }
    ProgramStore& store() const { return *store_; }
    ClusterMemory& memory() { return memory_; }
    Hazards* hazards() { return finds_hazards_ ? &hazards_ : nullptr; }
    uint32_t phase() const { return phase_; }
    bool waited() const { return waited_; }
    // `waited`: some of the threads came from griddepcontrol.wait.
    void arrive(uint32_t threads, bool waited);
    // Threads have exited; `arrived` is the number that had arrived in this phase.
    void leave(uint32_t threads, uint32_t arrived);

  private:
    void complete_if_full();

    Grid* grid_ = nullptr;
    Worker* worker_ = nullptr;
    ProgramStore* store_ = nullptr;
    // by rank; the first one is kept when the others are destroyed
    std::vector<std::unique_ptr<Block>> blocks_;
    ClusterMemory memory_;
    uint32_t phase_ = 0;
    uint32_t arrived_ = 0;  // threads, in this phase
    uint32_t live_threads_ = 0;
    Hazards hazards_;
    bool finds_hazards_ = false;
    bool waited_ = false;  // an arrived thread came from griddepcontrol.wait
};

}  // namespace cyrt::emu
