// What a warp's memory, control and system handlers see of the block and the launch.
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

// Thrown by a handler, caught by run(): `lane` is the faulting one.
struct FaultSignal {
    FaultKind kind;
    int lane;
    std::string text;
};

// Bytes moved from one call frame to another, at offsets from their bases.
struct FrameCopy {
    uint32_t from, to, bytes;
};

// A block's shared memory, as the other blocks of its cluster see it.
struct BlockMemory {
    std::byte* shared;
    uint8_t* valid;            // checking mode: one byte for each
    uint32_t bytes;
    bool ended;                // nobody may access it any more
};
struct ClusterMemory {
    std::array<BlockMemory, limits::kOptinClusterBlocks> blocks;   // by rank
    uint32_t count = 0;
};

struct WarpContext {
    const MemoryOp* memory_ops = nullptr;      // of the program; Inst::extra indexes it
    Region* regions = nullptr;                 // per worker: what each memory instruction hit last
    const Arena* arena = nullptr;
    bool checking = false;
    bool waited = false;                       // griddepcontrol.wait, or met one that has

    std::byte* shared = nullptr;               // the block's
    uint8_t* shared_valid = nullptr;           // checking mode: one byte for each
    uint32_t shared_bytes = 0;                 // static + dynamic
    const ClusterMemory* cluster = nullptr;    // of all blocks of the cluster, this one too
    uint32_t rank = 0;                         // of the block, in the cluster
    std::byte* local = nullptr;                // lane 0's; the next lane's `local_stride` further
    uint32_t local_stride = 0;
    uint32_t local_bytes = 0;
    std::byte* params = nullptr;               // the kernel's parameters (read only)
    uint32_t param_bytes = 0;

    const FrameCopy* frame_copies = nullptr;   // of the program
    uint32_t stack_limit = 0;                  // bytes of local memory that frames may fill

    const Launch* launch = nullptr;
};

}  // namespace cyrt::emu
