// What the emulated device is said to hold: attributes, loading, launch and occupancy agree on it.
#pragma once

#include <cstdint>

namespace cyrt::emu {

namespace limits {
constexpr uint32_t kWarp = 32;
constexpr uint32_t kBlockThreads = 1024;
constexpr uint32_t kBlockX = 1024, kBlockY = 1024, kBlockZ = 64;
constexpr uint32_t kGridX = 2147483647, kGridY = 65535, kGridZ = 65535;
constexpr uint32_t kStaticShared = 48 << 10;          // also the dynamic limit without opt-in
constexpr uint32_t kOptinShared = 227 << 10;
constexpr uint32_t kMultiprocessorShared = 228 << 10;
constexpr uint32_t kReservedShared = 1 << 10;         // of each block, by the system
constexpr uint32_t kRegisters = 65536;
constexpr uint32_t kMultiprocessorThreads = 2048;
constexpr uint32_t kMultiprocessorBlocks = 32;
constexpr uint32_t kMultiprocessors = 8;
constexpr uint32_t kClusterBlocks = 8;                // in a cluster, and with the opt-in:
constexpr uint32_t kOptinClusterBlocks = 16;
constexpr uint64_t kConstant = 64 << 10;              // of a module
constexpr uint64_t kLocal = 512 << 10;                // of a thread
constexpr uint64_t kParameters = 32764;               // of a kernel since PTX 8.1; before:
constexpr uint64_t kOldParameters = 4352;
}  // namespace limits

}  // namespace cyrt::emu
