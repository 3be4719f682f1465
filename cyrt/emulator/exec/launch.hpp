// Running a grid.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "exec/arena.hpp"
#include "exec/program.hpp"
#include "exec/ranges.hpp"
#include "exec/watch.hpp"

namespace cyrt::emu {

struct Dim3 {
    uint32_t x = 1, y = 1, z = 1;
    uint64_t count() const { return uint64_t(x) * y * z; }
};

enum class FaultKind : uint8_t {
    illegal_address,
    misaligned_address,
    uninitialized_read,
    unordered_access,
    hazard,  // a race for shared memory
    assertion,
    trap,
    deadlock,
    illegal_instruction,
    invalid_pc,
    stack_overflow,
    cancelled,
};

struct Fault {
    FaultKind kind;
    std::string text;  // kernel, block, thread, PTX line, address, nearest allocation
};

class Heap;

struct Launch {
    const Program* program = nullptr;
    std::string kernel_name;
    Dim3 grid, block;
    Dim3 cluster;                   // number of blocks; the grid is a multiple of it
    bool explicit_cluster = false;  // requested explicitly, possibly with one block
    uint32_t dynamic_shared = 0;
    const std::byte* params = nullptr;     // laid out by KernelInfo::params
    const UsableRanges* ranges = nullptr;  // what it may use of guarded memory; nullptr: all
    // "variable table, 32 bytes at 0x…" for the address of one of the module's; else ""
    std::function<std::string(uint64_t)> variable_at;
    bool cooperative = false;  // every block makes progress (grid-wide barriers)
    Arena* arena = nullptr;
    Heap* heap = nullptr;
    uint32_t stack_limit = 0;  // bytes a thread for the frames of a program with an open stack
    uint64_t grid_id = 0;
    uint32_t multiprocessors = 1;
    const std::atomic<bool>* cancel = nullptr;  // polled on backward branches
    // griddepcontrol.wait; empty if there is nothing to wait for
    std::function<void()> wait_dependencies;
    std::function<void()> launch_dependents;         // griddepcontrol.launch_dependents
    std::function<void(const char*, size_t)> print;  // device printf's text
    AccessWatch* watch = nullptr;                    // sees each access to device memory
};

// Runs the grid on the process's thread pool and the calling thread, and returns when it has ended;
// the result is the first fault, if any (the remaining blocks are abandoned).
std::optional<Fault> run(const Launch& launch);

// Threads that run a grid at once; initially the number of processors available to this process.
void set_thread_count(unsigned count);

}  // namespace cyrt::emu
