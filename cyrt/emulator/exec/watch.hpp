// Who wants to see each access of a kernel to device memory.
#pragma once

#include <cstdint>
#include <string>

namespace cyrt::emu {

enum class Access : uint8_t { read, write, update };    // update: by an atomic instruction

class AccessWatch {
public:
    virtual ~AccessWatch() = default;
    // `waited`: the thread is past griddepcontrol.wait. What is wrong with the access, for the
    // fault's text; empty: nothing. Called by several threads at once.
    virtual std::string see(Access access, uint64_t address, uint64_t bytes, bool waited) = 0;
    // That memory was the launch's own, and is no more.
    virtual void forget(uint64_t address, uint64_t bytes) = 0;
};

}  // namespace cyrt::emu
