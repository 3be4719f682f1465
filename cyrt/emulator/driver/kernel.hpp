// A launch of a kernel, as an operation of a stream.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "driver/api.hpp"
#include "exec/launch.hpp"

namespace cyrt::emu {

class Context;
class Function;
class LaunchAttributes;

// A kernel's parameters, packed, and the ranges behind them. Small ones need no heap memory.
class ParamBlock {
  public:
    // Allocates `size` bytes, all zero.
    std::byte* reset(size_t size) {
        size_ = size;
        if (size <= sizeof inline_) {
            std::memset(inline_, 0, size);
            return inline_;
        }
        large_.assign(size, std::byte{0});
        return large_.data();
    }
    const std::byte* data() const { return size_ <= sizeof inline_ ? inline_ : large_.data(); }
    size_t size() const { return size_; }

  private:
    size_t size_ = 0;
    alignas(16) std::byte inline_[320];
    std::vector<std::byte> large_;
};

struct LaunchShape {
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;
    bool cooperative = false;
    Dim3 cluster = kNoCluster;  // number of blocks; zeros: the kernel's own, or 1
    static constexpr Dim3 kNoCluster{0, 0, 0};
};

// A graph's additions to one launch of a kernel.
struct KernelHooks {
    std::function<void()> wait_dependencies;  // what griddepcontrol.wait calls; may be empty
    AccessWatch* watch = nullptr;
};

struct KernelOperation : LaunchShape {
    std::shared_ptr<Function> function;
    ParamBlock params;
    bool ranged = false;  // ranges are behind the parameters
    static constexpr bool runs_after_fault = false;
    void run(Context& context) const { run(context, {}); }
    void run(Context& context, const KernelHooks& hooks) const;
};

LaunchShape shape_from(const CUlaunchConfig& config, const LaunchAttributes& attributes);
// Throws the driver's error for an invalid launch.
void check_launch(const Function& function, const LaunchShape& shape);
// The launch with its parameters packed, validated as the driver does at the call.
KernelOperation kernel_operation(std::shared_ptr<Function> function, const LaunchShape& shape,
                                 void** params, void** extra);

}  // namespace cyrt::emu
