// The emulated devices of this process.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "driver/api.hpp"
#include "exec/arena.hpp"
#include "exec/limits.hpp"

namespace cyrt::emu {

class MemoryPool;

// INVARIANT: devices are made at cuInit and never destroyed; threads may still use them at exit.
class Device {
  public:
    explicit Device(CUdevice ordinal);
    ~Device();

    const CUdevice ordinal;
    Arena arena;

    std::shared_ptr<Context> retain_primary();
    void release_primary();
    void reset_primary();
    void set_primary_flags(unsigned flags);
    void primary_state(unsigned& flags, bool& active);

    // The first fault since the start, or since the last reset of its primary context.
    void record_fault(const std::string& text);
    std::string fault_text();

    const std::shared_ptr<MemoryPool> default_pool;
    std::shared_ptr<MemoryPool> current_pool();
    void set_current_pool(std::shared_ptr<MemoryPool> pool);

  private:
    std::mutex mutex_;
    std::shared_ptr<Context> primary_;
    unsigned retained_ = 0;
    unsigned primary_flags_ = 0;
    std::string fault_;
    std::shared_ptr<MemoryPool> pool_;
};

int device_count();
Device& device_at(CUdevice ordinal);  // throws CUDA_ERROR_INVALID_DEVICE

// The device whose memory range contains this address, or nullptr; allocations are not examined.
Device* device_of(uint64_t address);

}  // namespace cyrt::emu
