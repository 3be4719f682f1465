// The blocks of one cluster. Every block is of one: where a launch has no clusters, of its own.
//
// INVARIANTS
// - They run in turn on one thread of the host, so nothing that they share needs atomic
//   instructions; all begin together, and their shared memory lives until all have ended.
// - A thread arrives at the cluster's barrier and then waits there, once in each phase. The phase
//   ends when all that have not exited have arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/block.hpp"
#include "exec/context.hpp"
#include "exec/grid.hpp"
#include "exec/worker.hpp"

namespace cyrt::emu {

class Cluster {
public:
    enum class State { finished, waiting };   // waiting: for what another cluster does

    void start(Grid& grid, Worker& worker, ProgramStore& store, uint64_t number);
    // Runs until all blocks have ended or some only spin; throws Fault.
    State run();
    // Gives back what it holds; the cluster can be started again.
    void end();

    // --- for its blocks ---------------------------------------------------------------------
    Grid& grid() const { return *grid_; }
    Worker& worker() const { return *worker_; }
    ProgramStore& store() const { return *store_; }
    ClusterMemory& memory() { return memory_; }
    uint32_t phase() const { return phase_; }
    bool waited() const { return waited_; }
    // `waited`: some of the threads came from griddepcontrol.wait.
    void arrive(uint32_t threads, bool waited);
    // Threads have exited, of which so many had arrived in this phase.
    void leave(uint32_t threads, uint32_t arrived);

private:
    void complete_if_full();

    Grid* grid_ = nullptr;
    Worker* worker_ = nullptr;
    ProgramStore* store_ = nullptr;
    std::vector<std::unique_ptr<Block>> blocks_;   // by rank; the first stays when the others go
    ClusterMemory memory_;
    uint32_t phase_ = 0;
    uint32_t arrived_ = 0;         // threads, in this phase
    uint32_t live_threads_ = 0;
    bool waited_ = false;          // some that have arrived came from griddepcontrol.wait
};

}  // namespace cyrt::emu
