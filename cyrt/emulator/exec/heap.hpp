// The heap of malloc and free in kernels. Its size is a limit of the context.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "exec/arena.hpp"

namespace cyrt::emu {

// Thread safe. INVARIANT: the sum of its blocks' sizes is at most the limit that was set when the
// last of them was allocated.
class Heap {
  public:
    explicit Heap(uint64_t limit) : limit_(limit) {}

    uint64_t limit() const { return limit_.load(); }
    void set_limit(uint64_t limit) { limit_.store(limit); }

    // 0 if the limit or the device leaves no room.
    uint64_t allocate(Arena& arena, uint64_t size) {
        constexpr uint64_t kUnit = 16;
        if (size == 0 || size > limit_.load()) return 0;
        const uint64_t bytes = (size + kUnit - 1) / kUnit * kUnit;
        std::lock_guard lock(mutex_);
        if (used_ + bytes > limit_.load()) return 0;
        const uint64_t address = arena.allocate(size);
        if (address == 0) return 0;
        used_ += bytes;
        blocks_.emplace(address, bytes);
        return address;
    }

    // False if no block begins there.
    bool release(Arena& arena, uint64_t address) {
        std::lock_guard lock(mutex_);
        const auto found = blocks_.find(address);
        if (found == blocks_.end()) return false;
        used_ -= found->second;
        blocks_.erase(found);
        return arena.release(address);
    }

    void clear(Arena& arena) {
        std::lock_guard lock(mutex_);
        for (const auto& [address, bytes] : blocks_) arena.release(address);
        blocks_.clear();
        used_ = 0;
    }

  private:
    std::atomic<uint64_t> limit_;
    std::mutex mutex_;
    uint64_t used_ = 0;
    std::unordered_map<uint64_t, uint64_t> blocks_;  // sizes by address
};

}  // namespace cyrt::emu
