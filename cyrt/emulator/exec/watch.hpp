// The observer of a kernel's accesses to device memory.
#pragma once

#include <cstdint>
#include <string>

namespace cyrt::emu {

enum class Access : uint8_t { read, write, update };  // update: an atomic instruction

class AccessWatch {
  public:
    virtual ~AccessWatch() = default;
    // `waited`: the thread is past griddepcontrol.wait. Returns a description of the error for the
    // fault's text, or empty. Called by several threads at once.
    virtual std::string see(Access access, uint64_t address, uint64_t bytes, bool waited) = 0;
    // That memory belonged to the launch, and is released.
    virtual void forget(uint64_t address, uint64_t bytes) = 0;
};

}  // namespace cyrt::emu
