// A kernel of a loaded module.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/api.hpp"
#include "driver/handles.hpp"
#include "exec/launch.hpp"
#include "exec/program.hpp"

namespace cyrt::emu {

class Module;

// INVARIANT: a function is part of its module: a reference to it keeps the module alive.
class Function {
  public:
    Function(Module& module, const std::string& name);

    Module& module;
    const std::string name;
    const KernelInfo info;
    uintptr_t handle = 0;

    Context& context() const;
    // Prepared at the first call.
    const Program& program();
    // True if it lets its dependents start before it ends.
    bool launches_dependents();
    // True if it may do so before it has waited for what it depends on.
    bool triggers_before_waiting();
    bool prepared() const { return prepared_.load(std::memory_order_acquire); }

    int attribute(CUfunction_attribute which) const;
    void set_attribute(CUfunction_attribute which, int value);
    uint32_t max_dynamic_shared() const { return max_dynamic_shared_.load(); }
    uint32_t max_threads() const { return info.max_threads; }
    uint32_t registers() const { return registers_; }

    // Blocks in a cluster, from .reqnctapercluster or an attribute; zeros if neither is set.
    Dim3 required_cluster() const;
    uint32_t most_cluster_blocks() const;
    // A launch's grid, counted in blocks: .blocksareclusters counts it in clusters.
    Dim3 grid_in_blocks(Dim3 grid) const;

    // From now on, and for good, launches have so many ranges behind their parameters (see
    // exec/ranges.hpp). `declarations`: of the parameters, for the texts of faults.
    void set_ranges(size_t count, std::vector<std::string> declarations);
    size_t num_ranges() const { return num_ranges_.load(std::memory_order_acquire); }
    size_t range_offset() const { return (info.param_bytes + 7) & ~size_t(7); }
    const std::vector<std::string>& declarations() const { return declarations_; }

    // These throw the driver's error for a block, or a cluster, of that shape.
    void check_block(Dim3 block) const;
    void check_cluster(Dim3 cluster, Dim3 grid) const;

  private:
    uint32_t registers_;
    Dim3 required_{0, 0, 0};  // from .reqntid
    std::atomic<uint32_t> max_dynamic_shared_;
    std::atomic<int> carveout_{-1};
    std::atomic<uint32_t> cluster_[3] = {0, 0, 0};  // from attributes
    std::atomic<bool> large_clusters_{false};
    std::atomic<int> cluster_scheduling_{CU_CLUSTER_SCHEDULING_POLICY_DEFAULT};
    std::atomic<size_t> num_ranges_{0};
    std::vector<std::string> declarations_;  // immutable once `num_ranges_` is set
    std::mutex preparing_;
    std::atomic<bool> prepared_{false};
    std::shared_ptr<const Program> program_;
};

HandleTable<Function>& functions();
// A CUfunction, or a CUkernel cast to one, for use in `context`; throws INVALID_HANDLE.
std::shared_ptr<Function> function_from(CUfunction handle, Context& context);

}  // namespace cyrt::emu
