// The emulated device's resources: attributes, loading, launch and occupancy use the same limits.
#pragma once

#include <cstdint>

namespace cyrt::emu {

namespace limits {
constexpr uint32_t kWarp = 32;
constexpr uint32_t kBlockThreads = 1024;
constexpr uint32_t kBlockX = 1024, kBlockY = 1024, kBlockZ = 64;
constexpr uint32_t kGridX = 2147483647, kGridY = 65535, kGridZ = 65535;
constexpr uint32_t kStaticShared = 48 << 10;  // also the dynamic limit without opt-in
constexpr uint32_t kOptinShared = 227 << 10;
constexpr uint32_t kMultiprocessorShared = 228 << 10;
constexpr uint32_t kReservedShared = 1 << 10;  // per block, for the system
constexpr uint32_t kSharedUnit = 128;          // a block's shared memory is a multiple of it
constexpr uint32_t kRegisters = 65536;
constexpr uint32_t kMultiprocessorThreads = 2048;
constexpr uint32_t kMultiprocessorBlocks = 32;
constexpr uint32_t kMultiprocessors = 8;
constexpr uint32_t kClusterBlocks = 8;  // per cluster; with the opt-in:
constexpr uint32_t kOptinClusterBlocks = 16;
constexpr uint64_t kConstant = 64 << 10;  // per module
constexpr uint64_t kLocal = 512 << 10;    // per thread
constexpr uint64_t kParameters = 32764;   // per kernel since PTX 8.1; earlier:
constexpr uint64_t kOldParameters = 4352;
}  // namespace limits

}  // namespace cyrt::emu
