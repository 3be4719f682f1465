// The view of the block and the launch for a warp's memory, control and system handlers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "exec/address.hpp"
#include "exec/arena.hpp"
#include "exec/inst.hpp"
#include "exec/launch.hpp"
#include "exec/limits.hpp"

namespace cyrt::emu {

struct MemoryOp;
class Hazards;

// Thrown by a handler, caught by run(): `lane` is the faulting one.
struct FaultSignal {
    FaultKind kind;
    int lane;
    std::string text;
    uint32_t line = 0;  // line of the PTX; 0: that of the instruction that runs
};

// Bytes moved from one call frame to another, at offsets from their bases.
struct FrameCopy {
    uint32_t from, to, bytes;
};

// A block's shared memory, for access by the other blocks of its cluster.
struct BlockMemory {
    std::byte* shared;
    uint8_t* valid;  // checking mode: one byte for each
    uint32_t bytes;
    bool ended;  // no thread may access it any more
};
struct ClusterMemory {
    std::array<BlockMemory, limits::kOptinClusterBlocks> blocks;  // by rank
    uint32_t count = 0;
};

struct WarpContext {
    const MemoryOp* memory_ops = nullptr;  // the program's; Inst::extra indexes it
    Region* regions = nullptr;             // per worker: the last region of each memory instruction
    Region* earlier = nullptr;             // likewise: the one before it
    RecentRegions* recent = nullptr;       // per worker: those of all instructions
    const Arena* arena = nullptr;
    bool checking = false;
    // the thread is past griddepcontrol.wait, or synchronised with one that is
    bool waited = false;

    std::byte* shared = nullptr;             // the block's
    uint8_t* shared_valid = nullptr;         // checking mode: one byte for each
    uint32_t shared_bytes = 0;               // static + dynamic
    const ClusterMemory* cluster = nullptr;  // all blocks of the cluster, including this one
    uint32_t rank = 0;                       // rank of the block in the cluster
    Hazards* hazards = nullptr;              // checking mode, and there are several warps
    uint32_t warp = 0;                       // the warp's number in the cluster
    std::byte* local = nullptr;              // lane 0's; the next lane's is `local_stride` later
    uint32_t local_stride = 0;
    uint32_t local_bytes = 0;
    std::byte* params = nullptr;  // the kernel's parameters (read only)
    uint32_t param_bytes = 0;

    const FrameCopy* frame_copies = nullptr;  // the program's
    uint32_t stack_limit = 0;                 // bytes of local memory that frames may fill
    uint32_t stack_bytes = 0;                 // those of them that the device's limit gives

    const Launch* launch = nullptr;
};

}  // namespace cyrt::emu
