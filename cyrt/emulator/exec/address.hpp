// The 64-bit generic address space of an emulated device.
//
// INVARIANTS
// - Addresses of device memory and of the windows are above 2^47: no host pointer equals one, and
//   the host faults when it dereferences one.
// - Windows are 4 GiB aligned: `window | low 32 bits` restores an address that PTX narrowed.
// - A host address (pinned, managed) is its own generic address: unified addressing.
#pragma once

#include <cstdint>

namespace cyrt::emu {

constexpr uint64_t kWindowMask = 0xffffffff00000000ull;
constexpr uint64_t kSharedWindow = 0x0001000100000000ull;
constexpr uint64_t kLocalWindow = 0x0001000200000000ull;
constexpr uint64_t kParamWindow = 0x0001000300000000ull;
constexpr uint64_t kCodeWindow = 0x0001000400000000ull;  // addresses of functions
// In the shared window: rank + 1 of a block of the cluster; 0 for the thread's own block.
constexpr uint32_t kRankShift = 24;
constexpr uint64_t kRankMask = 0xffull << kRankShift;
constexpr uint64_t kDeviceBase = 0x0002000000000000ull;    // device 0's memory
constexpr uint64_t kDeviceStride = 0x0000010000000000ull;  // 1 TiB from device to device

}  // namespace cyrt::emu
