// Stream-ordered allocation: pools, and allocation and release in stream order.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/api.hpp"
#include "driver/handles.hpp"

namespace cyrt::emu {

class Device;

// A pool keeps no memory: freed memory returns to the device's arena. It counts, and stores its
// attributes.
class MemoryPool {
  public:
    explicit MemoryPool(Device& owner) : device(owner) {}

    Device& device;
    uintptr_t handle = 0;

    void taken(uint64_t size);
    void returned(uint64_t size);
    // `value` points to an int or a uint64_t, depending on the attribute.
    void get(CUmemPool_attribute which, void* value) const;
    void set(CUmemPool_attribute which, const void* value);

  private:
    mutable std::mutex mutex_;
    int reuse_[3] = {1, 1, 1};
    uint64_t release_threshold_ = 0;
    uint64_t used_ = 0, used_high_ = 0;
};

HandleTable<MemoryPool>& memory_pools();

}  // namespace cyrt::emu
