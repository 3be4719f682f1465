// run(): clusters in order, on this thread and the pool's.
#include "exec/launch.hpp"

#include <fenv.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <thread>

#include "exec/cluster.hpp"
#include "exec/grid.hpp"
#include "exec/pool.hpp"
#include "exec/worker.hpp"

namespace cyrt::emu {

namespace {

// Number of waiting clusters at which a worker starts no more, unless the launch is cooperative:
// then all must make progress.
constexpr size_t kMostWaiting = 64;

// Below this number of warp instructions, waking a thread costs more than it saves.
constexpr uint64_t kWorthWaking = 4096;
constexpr uint64_t kLoopWeight = 8;

// Clusters start in the order of their numbers, so a block may wait for one of a lower number: that
// one has ended, or is running.
void work_on_clusters(Grid& grid) {
    WorkerLease worker;
    ProgramStore& store = worker->store(grid.program, grid.stack_bytes);
    store.regions.assign(grid.program.memory_ops.size(), {});
    store.earlier.assign(grid.program.memory_ops.size(), {});
    store.recent = {};
    store.set_params(grid.program, grid.launch.params);
    const size_t most_waiting = grid.launch.cooperative ? size_t(grid.cluster_count) : kMostWaiting;
    std::deque<std::unique_ptr<Cluster>> waiting;

    const auto end = [&](std::unique_ptr<Cluster> cluster) {
        cluster->end();
        worker->give_cluster(std::move(cluster));
    };
    while (!grid.stopped()) {
        std::unique_ptr<Cluster> cluster;
        uint64_t number = grid.cluster_count;
        if (waiting.size() < most_waiting && grid.has_more()) number = grid.take();
        if (number < grid.cluster_count) {
            cluster = worker->take_cluster();
            cluster->start(grid, *worker, store, number);
        } else if (waiting.empty()) {
            break;
        } else {
            cluster = std::move(waiting.front());
            waiting.pop_front();
        }
        try {
            if (cluster->run() == Cluster::State::finished) {
                end(std::move(cluster));
                continue;
            }
            waiting.push_back(std::move(cluster));
            if (waiting.size() == 1 && !grid.has_more()) std::this_thread::yield();
        } catch (Fault& fault) {
            grid.fail(std::move(fault));
            end(std::move(cluster));
        }
    }
    for (auto& cluster : waiting) end(std::move(cluster));
}

// Handlers require the default floating-point environment; the launching program may have set
// another one (a rounding direction, flushing of denormal numbers).
class DefaultFloats {
  public:
    DefaultFloats() {
        fegetenv(&before_);
        fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloats() { fesetenv(&before_); }
    DefaultFloats(const DefaultFloats&) = delete;
    DefaultFloats& operator=(const DefaultFloats&) = delete;

  private:
    fenv_t before_;
};

void work_on(Grid& grid) {
    const DefaultFloats floats;
    try {
        work_on_clusters(grid);
    } catch (const std::bad_alloc&) {
        grid.fail({FaultKind::trap, "kernel " + grid.launch.kernel_name +
                                        ": the host has no memory for its registers and stacks"});
    }
}

// The barrier of cooperative groups in the driver's memory: a size, then the state.
class Workspace {
  public:
    explicit Workspace(Grid& grid) : arena_(grid.launch.arena), watch_(grid.launch.watch) {
        if (!grid.launch.cooperative || !grid.program.uses_workspace) return;
        address_ = arena_->allocate(kBytes);
        Region region;
        if (address_ == 0 || !arena_->find(address_, region)) return;
        std::memset(region.at(address_), 0, kBytes);
        if (region.valid) std::memset(region.valid, 1, kBytes);
        grid.workspace = address_;
    }
    ~Workspace() {
        if (!address_) return;
        if (watch_) watch_->forget(address_, kBytes);
        arena_->release(address_);
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

  private:
    static constexpr uint64_t kBytes = 16;
    Arena* arena_;
    AccessWatch* watch_;
    uint64_t address_ = 0;
};

unsigned helpers_for(const Grid& grid) {
    const uint64_t warps =  // larger numbers make no difference
        std::min(grid.blocks, kWorthWaking) *
        ((grid.launch.block.count() + kWarpSize - 1) / kWarpSize);
    const uint64_t weight = grid.program.has_loops ? kLoopWeight : 1;
    if (grid.cluster_count == 1 || warps * weight * grid.program.code.size() < kWorthWaking)
        return 0;
    return unsigned(std::min<uint64_t>(Pool::instance().threads() - 1, grid.cluster_count - 1));
}

}  // namespace

std::optional<Fault> run(const Launch& launch) {
    Grid grid(launch);
    const Workspace workspace(grid);
    PoolJob job;
    job.wanted = helpers_for(grid);
    if (job.wanted == 0) {
        work_on(grid);
    } else {
        Pool& pool = Pool::instance();
        job.work = [&grid] { work_on(grid); };
        pool.help(job);
        work_on(grid);
        pool.finish(job);
    }
    if (auto fault = grid.take_fault()) return fault;
    if (launch.cancel && launch.cancel->load())
        return Fault{FaultKind::cancelled, "kernel " + launch.kernel_name + " was cancelled"};
    return std::nullopt;
}

void set_thread_count(unsigned count) { Pool::instance().set_threads(count); }

}  // namespace cyrt::emu
