// Data shared by the threads that run one launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "exec/code.hpp"
#include "exec/launch.hpp"

namespace cyrt::emu {

class Grid {
  public:
    explicit Grid(const Launch& launch)
        : launch(launch), program(*launch.program), blocks(launch.grid.count()),
          clusters{launch.grid.x / launch.cluster.x, launch.grid.y / launch.cluster.y,
                   launch.grid.z / launch.cluster.z},
          stack_bytes(program.has_open_stack ? launch.stack_limit : program.stack_bytes),
          cluster_count(clusters.count()), cluster_blocks(uint32_t(launch.cluster.count())),
          cluster_threads(cluster_blocks * uint32_t(launch.block.count())) {}

    const Launch& launch;
    const Program& program;
    const uint64_t blocks;
    const Dim3 clusters;
    const uint32_t stack_bytes;  // a thread's stack after the kernel's own frame
    const uint64_t cluster_count;
    const uint32_t cluster_blocks, cluster_threads;
    uint64_t workspace = 0;  // memory of cooperative groups; 0: the kernel uses none

    // The next cluster to start, in order; `cluster_count` or more if all have started.
    uint64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }
    bool has_more() const { return next_.load(std::memory_order_relaxed) < cluster_count; }

    // The first fault is kept; the other blocks are abandoned.
    void fail(Fault fault) {
        std::lock_guard lock(mutex_);
        if (!fault_) fault_ = std::move(fault);
        stopped_.store(true, std::memory_order_release);
    }
    bool stopped() const {
        return stopped_.load(std::memory_order_relaxed) ||
               (launch.cancel && launch.cancel->load(std::memory_order_relaxed));
    }
    std::optional<Fault> take_fault() { return std::move(fault_); }

    // Prints one thread's text without interleaving.
    void print(const std::string& text) {
        std::lock_guard lock(mutex_);
        if (launch.print) launch.print(text.data(), text.size());
    }

    // A block lets dependents start, or has ended: dependents start after the last one has.
    void release_dependents() {
        if (dependents_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks &&
            launch.launch_dependents)
            launch.launch_dependents();
    }

  private:
    std::atomic<uint64_t> next_{0};
    std::atomic<uint64_t> dependents_{0};
    std::atomic<bool> stopped_{false};
    std::mutex mutex_;
    std::optional<Fault> fault_;
};

}  // namespace cyrt::emu
